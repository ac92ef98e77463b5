"""What a bench is asked for: what can be meant, and what is refused before anything is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.errors import UsageError
from specctl.measure.load import Arrival, Closed, Open, Replay
from specctl.ops.bench_wish import Options, fitted, read_prompts, wish

TRACES = Path("tests/data/traces")


def test_defaults_are_a_closed_loop_of_six_levels() -> None:
    """Without options: 1 to 32 in flight, 512 tokens, three runs, the mixed prompts, a seed by chance."""
    found = wish(Options())
    assert found.paces == tuple(Closed(concurrency=count) for count in (1, 2, 4, 8, 16, 32))
    assert (found.setting.tokens, found.setting.runs, found.setting.pace, len(found.prompts)) == (512, 3, "closed", 24)
    assert wish(Options()).setting.seed != found.setting.seed


def test_every_run_of_every_level_has_a_seed_of_its_own() -> None:
    """No two runs of a bench send a prompt with the same salt."""
    found = wish(Options(concurrency="1,2,4", runs=5, seed=3))
    seeds = [found.level(pace, run).seed for pace in range(3) for run in range(5)]
    assert len(set(seeds)) == 15
    assert seeds[0] == 3


def test_rates_are_an_open_loop() -> None:
    """Rates are requests a second, half a minute each unless seconds are given."""
    found = wish(Options(rate="0.5, 2", seconds=None))
    assert found.paces == (Open(requests_s=0.5), Open(requests_s=2.0))
    assert (found.setting.pace, found.setting.seconds, found.setting.warmup) == ("open", 30.0, 4)
    assert [found.name(number) for number in (0, 1)] == ["0.5/s", "2/s"]


def test_trace_is_its_requests_up_to_the_seconds(tmp_path: Path) -> None:
    """A trace has its own moments and lengths; --seconds cuts it."""
    path = tmp_path / "day.csv"
    path.write_text("timestamp_s,input_tokens,output_tokens\n10,5,6\n11.5,7,8\n99,1,1\n")
    found = wish(Options(trace=str(path), seconds=30.0))
    assert found.paces == (
        Replay(arrivals=(Arrival(at_s=0.0, prompt_tokens=5, tokens=6), Arrival(at_s=1.5, prompt_tokens=7, tokens=8))),
    )
    assert (found.setting.tokens, found.setting.trace, found.name(0)) == (None, "day.csv", "day.csv")


def test_trace_is_cut_to_a_context() -> None:
    """What does not fit into the engine's context is cut, and counted; what fits stays as it is."""
    long, short = Arrival(at_s=0.0, prompt_tokens=5000, tokens=900), Arrival(at_s=1.0, prompt_tokens=10, tokens=20)
    found, changed = fitted(Replay(arrivals=(long, short)), 1000)
    assert changed == 1
    assert found.arrivals[1] == short
    assert found.arrivals[0].prompt_tokens + found.arrivals[0].tokens <= 1000
    assert fitted(Replay(arrivals=(long,)), None) == (Replay(arrivals=(long,)), 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(concurrency="1,x"), "x is not a number from 1 to 1024"),
        (Options(concurrency="1,,2"), "nothing is not a number"),
        (Options(concurrency="0"), "0 is not a number"),
        (Options(concurrency="99999"), "99999 is not a number"),
        (Options(concurrency="2,2"), "names a level twice"),
        (Options(rate="fast"), "fast is not a number of requests a second"),
        (Options(rate="nan"), "nan is not a number"),
        (Options(rate="-1"), "-1 is not a number"),
        (Options(concurrency="1", rate="1"), "--concurrency and --rate are two kinds of load"),
        (Options(tokens=1), "--tokens is 2 to"),
        (Options(seconds=600.0), "--seconds 600 is no shorter than --limit 600"),
        (Options(prompts="poems"), "there is no prompt set poems"),
        (Options(prompts="./none.jsonl"), "cannot be read"),
        (Options(trace="none.csv"), "none.csv: cannot be read"),
        (Options(trace="none.csv", tokens=5), "--tokens has no meaning with --trace"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: Options, words: str) -> None:
    """Each is one usage error with a hint."""
    with pytest.raises(UsageError) as caught:
        wish(options)
    assert words in caught.value.message
    assert caught.value.hint


def test_concurrency_over_time_is_no_trace_of_requests(tmp_path: Path) -> None:
    """A series says how many were there, not when which came."""
    path = tmp_path / "series.csv"
    path.write_text("time_s,concurrency\n0,1\n1,2\n")
    with pytest.raises(UsageError, match="no list of requests"):
        wish(Options(trace=str(path)))


def test_every_shipped_set_is_there() -> None:
    """Each set has prompts of its kinds, each once, and none is empty."""
    for name in ("mixed", "code", "maths", "chat", "long"):
        found = read_prompts(name)
        assert len({prompt.id for prompt in found}) == len({prompt.text for prompt in found}) == len(found)
        assert all(prompt.text.strip() for prompt in found)
    assert {prompt.kind for prompt in read_prompts("mixed")} == {"code", "maths", "chat"}
    assert all(len(prompt.text) > 20_000 for prompt in read_prompts("long"))
