"""A level of load on a small engine on the loopback: what is sent, what is noted, and how a run ends."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from specctl.measure.figures import figures
from specctl.measure.load import Arrival, Closed, Level, Open, Prompt, Replay
from specctl.ops.load import Progress, expected_requests, expected_tokens, run_level
from tests.labserver import wait_until
from tests.unit.measure.loads import most_in_flight
from tests.unit.ops.engines import Asked, SmallEngine, chunk, paced, whole

pytestmark = pytest.mark.slow

PROMPTS = (Prompt(id="a", kind="code", text="def f():"), Prompt(id="b", kind="chat", text="hello"))


def closed(concurrency: int, **over: object) -> Level:
    """Return a small closed loop."""
    return Level(pace=Closed(concurrency=concurrency), **{"tokens": 10, "rounds": 3, **over})  # type: ignore[arg-type]  # what a test overrides


def once(claim: Callable[[], bool], then: threading.Event) -> threading.Thread:
    """Set an event as soon as a claim holds, from a thread of its own."""

    def wait() -> None:
        wait_until(claim)
        then.set()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_closed_loop_keeps_so_many_in_flight_and_no_more(concurrency: int) -> None:
    """The engine never sees more requests at once than asked for, and each slot sends its rounds."""
    meeting = threading.Barrier(concurrency)
    first = itertools.count()

    def together(asked: Asked) -> Iterator[bytes]:
        if next(first) < concurrency:
            meeting.wait(10.0)
        yield from whole(asked)

    with SmallEngine(together) as engine:
        run = run_level(engine.client, closed(concurrency), PROMPTS)
    assert run.stopped is None
    assert engine.most == concurrency
    assert most_in_flight(run.timings) == concurrency
    for slot in range(concurrency):
        assert sum(not each.warmup for each in run.timings if each.slot == slot) >= 3


def test_tokens_are_the_engines_count() -> None:
    """Chunks of three tokens: tokens, verify steps and lengths come from the engine's words, not from counting chunks."""
    with SmallEngine() as engine:
        run = run_level(engine.client, closed(2), PROMPTS)
    whole_ones = [each for each in run.timings if not each.warmup]
    assert {each.output_tokens for each in whole_ones} == {10}
    assert {tuple(each.counts) for each in whole_ones} == {(1, 4, 7, 10)}
    assert {each.verify_steps for each in whole_ones} == {3}
    assert figures(run).accept_length == pytest.approx(3.0)
    assert all(each.sent_s <= (each.first_s or 0.0) <= each.ended_s for each in whole_ones)


def test_same_seed_sends_the_same() -> None:
    """Two runs with one seed send the same bodies; another seed sends other salts before the same prompts."""
    sent = []
    for seed in (1, 1, 2):
        with SmallEngine() as engine:
            run_level(engine.client, closed(1, seed=seed), PROMPTS)
            sent.append([each["text"] for each in engine.asked])
    assert sent[0] == sent[1] != sent[2]
    assert [text.split("\n", 1)[1] for text in sent[0]] == [text.split("\n", 1)[1] for text in sent[2]]


def full(asked: Asked) -> int:
    """Refuse."""
    return 503


def cut(asked: Asked) -> Iterator[bytes]:
    """Break off in the middle."""
    yield chunk(1)
    yield chunk(4)


def errs(asked: Asked) -> Iterator[bytes]:
    """Send an error in the stream."""
    yield chunk(1)
    yield b'data: {"error": {"message": "the scheduler died"}}\n\ndata: [DONE]\n\n'


def short(asked: Asked) -> Iterator[bytes]:
    """End before the length that was asked for."""
    yield chunk(2, finish={"type": "stop", "matched": 1})


def aborts(asked: Asked) -> Iterator[bytes]:
    """End as SGLang ends what it refuses inside a stream."""
    yield chunk(0, finish={"type": "abort", "message": "The request queue is full."})


def silent(asked: Asked) -> Iterator[bytes]:
    """Tell no count at all."""
    yield b'data: {"text": "x", "meta_info": {"finish_reason": {"type": "length"}}}\n\n'


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (full, "status 503: The request queue is full."),
        (cut, "the stream ended before the answer did"),
        (errs, "the scheduler died"),
        (short, "2 of 10 tokens came (stop)"),
        (aborts, "aborted by the engine: The request queue is full."),
        (silent, "the engine does not say how many tokens it generated (completion_tokens)"),
    ],
)
def test_answers_that_are_not_whole_are_failures_with_words(answer: object, words: str) -> None:
    """Whatever breaks an answer is told, nothing of it counts, and the run ends instead of going on for ever."""
    assert callable(answer)
    with SmallEngine(answer) as engine:
        run = run_level(engine.client, closed(1, warmup=0), PROMPTS)
    assert run.stopped is not None
    assert run.stopped.startswith("request after request failed")
    assert run.gave_up
    assert all(each.failure is not None and each.failure.startswith(words) for each in run.timings)
    assert figures(run).requests == 0
    assert len(run.timings) < 20


def test_one_failure_among_many_does_not_end_the_run() -> None:
    """A request that fails is counted, and its slot goes on."""
    numbers = itertools.count()

    def now_and_then(asked: Asked) -> Iterator[bytes] | int:
        return 503 if next(numbers) == 3 else whole(asked)

    with SmallEngine(now_and_then) as engine:
        run = run_level(engine.client, closed(2), PROMPTS)
    assert run.stopped is None
    assert figures(run).failed == 1
    assert figures(run).tokens_s is not None


def test_nobody_there_is_told() -> None:
    """Where nothing listens, every request says so and the run ends."""
    with SmallEngine() as engine:
        client = engine.client
    run = run_level(client, closed(2), PROMPTS)
    assert {each.failure for each in run.timings} == {"refused"}
    assert run.before is not None
    assert run.before.page is None


def test_cancel_hangs_up_and_keeps_what_there_is() -> None:
    """Ctrl-C ends the answers under way, which are no failures, and what was whole by then is kept."""
    cancel, hold = threading.Event(), threading.Event()
    numbers = itertools.count()

    def then_hangs(asked: Asked) -> Iterator[bytes]:
        if next(numbers) < 4:
            yield from whole(asked)
            return
        yield chunk(1)
        hold.wait(10.0)

    with SmallEngine(then_hangs) as engine:
        ending = once(lambda: len(engine.asked) >= 6, cancel)
        run = run_level(engine.client, closed(2), PROMPTS, cancel=cancel)
        ending.join()
        hold.set()
    assert run.stopped == "interrupted"
    assert sum(each.whole for each in run.timings) == 4
    assert [(each.failure, list(each.counts)) for each in run.timings if each.unfinished] == [(None, [1]), (None, [1])]


def test_time_limit_sends_no_more_and_lets_answers_end() -> None:
    """At its limit a run sends nothing new; what is in flight ends by itself."""
    with SmallEngine() as engine:
        run = run_level(engine.client, closed(1, rounds=10**6, limit_s=0.3), PROMPTS)
    assert (run.stopped, run.gave_up) == ("the limit of 0 s was over", False)
    assert all(each.failure is None and not each.unfinished for each in run.timings)


def test_seconds_make_a_run_longer() -> None:
    """The window lasts at least the seconds that were asked for, however soon the rounds are over."""
    with SmallEngine() as engine:
        run = run_level(engine.client, closed(1, rounds=1, seconds=0.4), PROMPTS)
    window_s = figures(run).window_s
    assert window_s is not None
    assert window_s >= 0.4


def test_open_loop_sends_whether_or_not_answers_came() -> None:
    """Requests come at their moments though none of the earlier ones has ended."""
    hold = threading.Event()

    def held(asked: Asked) -> Iterator[bytes]:
        yield chunk(1)
        hold.wait(10.0)
        yield from whole(asked)

    level = Level(pace=Open(requests_s=50.0), tokens=10, warmup=1, rounds=1, seconds=0.2)
    with SmallEngine(held) as engine:
        ending = once(lambda: engine.inside == 11, hold)
        run = run_level(engine.client, level, PROMPTS)
        ending.join()
    assert engine.most == 11
    in_order = sorted(run.timings, key=lambda each: each.number)
    assert [each.due_s for each in in_order] == sorted(each.due_s or 0.0 for each in run.timings)
    assert all(each.sent_s >= (each.due_s or 0.0) for each in run.timings)


def test_trace_is_sent_as_it_is() -> None:
    """A trace's requests come with their lengths, at their moments."""
    arrivals = (Arrival(at_s=0.0, prompt_tokens=4, tokens=5), Arrival(at_s=0.2, prompt_tokens=9, tokens=7))
    with SmallEngine() as engine:
        run = run_level(engine.client, Level(pace=Replay(arrivals=arrivals), warmup=0), PROMPTS)
    assert [each["sampling_params"]["max_new_tokens"] for each in engine.asked] == [5, 7]
    assert run.timings[1].sent_s >= 0.2
    assert run.client.late_s < 0.2


def test_progress_ends_whole() -> None:
    """Whoever watches sees requests and tokens grow, and at the end that all have ended."""
    seen: list[Progress] = []
    with SmallEngine() as engine:
        run = run_level(engine.client, closed(2), PROMPTS, show=seen.append)
    last = seen[-1]
    assert (last.sent, last.ended, last.failed, last.in_flight) == (len(run.timings), len(run.timings), 0, 0)
    assert last.tokens == sum(each.output_tokens or 0 for each in run.timings)
    assert all(0 <= each.share <= 1 for each in seen)


def test_expectation_is_near_what_is_sent() -> None:
    """What is said beforehand is about what is sent then."""
    level = closed(8, tokens=20)
    with SmallEngine(paced) as engine:
        run = run_level(engine.client, level, PROMPTS)
    assert expected_requests(level) == pytest.approx(len(run.timings), rel=0.4)
    assert expected_tokens(level) == pytest.approx(sum(each.output_tokens or 0 for each in run.timings), rel=0.4)
