"""Which requests a run sends."""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.measure.load import Arrival, Closed, Level, Open, Prompt, Replay
from specctl.measure.load_plan import Requests, poisson, salt
from tests.examples import examples

PROMPTS = tuple(Prompt(id=f"p{number}", kind="code", text=f"text {number}") for number in range(3))


def closed(concurrency: int = 4, **over: object) -> Level:
    """Return a closed loop."""
    return Level(pace=Closed(concurrency=concurrency), tokens=100, **over)  # type: ignore[arg-type]  # what a test overrides


def test_same_seed_same_requests() -> None:
    """Two arms of an experiment with one seed are asked the same, whoever asks first."""
    one, other = Requests(closed(seed=7), PROMPTS), Requests(closed(seed=7), PROMPTS)
    places = [(slot, turn) for slot in range(4) for turn in range(3)]
    forward = {place: one.closed(*place) for place in places}
    backward = {place: other.closed(*place) for place in reversed(places)}
    assert forward == backward


@given(seeds=st.lists(st.integers(0, 2**31), min_size=2, max_size=2, unique=True))
@settings(max_examples=examples(50))
def test_no_two_requests_begin_alike(seeds: list[int]) -> None:
    """A salt of its own stands before each prompt of a run, so that no prefix cache serves one from another."""
    requests = Requests(closed(seed=seeds[0]), PROMPTS)
    beginnings = [requests.closed(slot, turn).text.split("\n")[0] for slot in range(4) for turn in range(20)]
    assert len(set(beginnings)) == len(beginnings)
    assert salt(seeds[0], 0) != salt(seeds[1], 0)


def test_every_run_asks_the_same_prompts_in_the_same_order() -> None:
    """Runs of other seeds differ by their salts alone."""
    ids = [[Requests(closed(seed=seed), PROMPTS).closed(0, turn).prompt.id for turn in range(5)] for seed in (1, 2)]
    assert ids[0] == ids[1]


def test_first_requests_have_lengths_from_short_to_whole() -> None:
    """Slots that begin at once do not end at once: the first warm-up of each has a length of its own."""
    requests = Requests(closed(warmup=2), PROMPTS)
    assert [requests.closed(slot, 0).tokens for slot in range(4)] == [25, 50, 75, 100]
    assert {requests.closed(slot, 1).tokens for slot in range(4)} == {100}
    assert [requests.closed(0, turn).warmup for turn in range(3)] == [True, True, False]


def test_without_warm_up_every_request_is_whole() -> None:
    """What counts has the length that was asked for."""
    assert {Requests(closed(warmup=0), PROMPTS).closed(slot, 0).tokens for slot in range(4)} == {100}


def test_body_asks_for_an_exact_length() -> None:
    """The end token is ignored, so that lengths are equal; greedy, and streamed."""
    body = Requests(closed(), PROMPTS).closed(0, 1).body(closed())
    assert body["sampling_params"] == {"temperature": 0.0, "max_new_tokens": 100, "ignore_eos": True}
    assert body["stream"] is True


def test_sampling_has_a_seed_of_the_request() -> None:
    """With temperature each request is drawn by a seed, so that the run can be told again."""
    level = closed(temperature=0.8)
    sampling = Requests(level, PROMPTS).closed(1, 1).body(level)["sampling_params"]
    assert isinstance(sampling, dict)
    assert sampling["sampling_seed"] == 5


def test_poisson_has_its_rate_and_its_spread() -> None:
    """Gaps have the mean of the rate, and a deviation as large as the mean, as exponential ones do."""
    at_s = list(poisson(5.0, 4000, seed=1))
    gaps = [after - before for before, after in itertools.pairwise(at_s)]
    mean = fmean(gaps)
    assert mean == pytest.approx(0.2, rel=0.05)
    assert fmean((gap - mean) ** 2 for gap in gaps) ** 0.5 == pytest.approx(0.2, rel=0.1)


def test_open_loop_lasts_its_seconds() -> None:
    """So many requests come as fill the seconds at that rate; the first ones are warm-up."""
    level = Level(pace=Open(requests_s=4.0), tokens=10, seconds=5.0, warmup=3, rounds=1)
    sends = list(Requests(level, PROMPTS).arriving())
    assert len(sends) == 23
    assert sum(each.warmup for each in sends) == 3
    assert all(
        before.due_s <= after.due_s for before, after in itertools.pairwise(sends) if before.due_s and after.due_s
    )


def test_trace_keeps_moments_and_lengths() -> None:
    """A trace's request comes at its moment, asks for its tokens, and has about as long a prompt."""
    pace = Replay(
        arrivals=(Arrival(at_s=0.5, prompt_tokens=10, tokens=7), Arrival(at_s=2.0, prompt_tokens=1, tokens=1))
    )
    sends = list(Requests(Level(pace=pace, warmup=0), PROMPTS).arriving(chars_a_token=3.0))
    assert [(each.due_s, each.tokens) for each in sends] == [(0.5, 7), (2.0, 1)]
    assert [len(each.text.split("\n", 1)[1]) for each in sends] == [30, 3]


def test_no_prompt_is_refused() -> None:
    """Without a prompt there is nothing to send."""
    with pytest.raises(ValueError, match="no prompt"):
        Requests(closed(), ())
