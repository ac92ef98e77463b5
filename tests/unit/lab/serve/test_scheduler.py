"""The scheduler's thread: order, limits, pauses, switches and death, with a scripted decoder."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from specctl.lab.serve import dialect, faults
from specctl.lab.serve.scheduler import Delta, Limits, PauseMode, Refusal, Scheduler
from specctl.lab.types import FinishReason, Generation, Sampling
from tests.labserver import wait_until
from tests.unit.lab.serve.scripted import ScriptedDecoder

LIMIT_S = 10.0
KNOBS = {"block_size": 8, "tree_budget": 7, "topk_cap": 4}
TREE = dialect.Speculation(algorithm=dialect.algorithm("DDTREE"), knobs=KNOBS)


class Bench:
    """A scheduler on a scripted decoder with everything that it delivers."""

    def __init__(self, decoder: ScriptedDecoder, *injected: str, max_queued: int | None = None) -> None:
        self.decoder = decoder
        self.deaths: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.deltas: dict[str, list[Delta]] = {}
        self._changed = threading.Condition()
        limits = Limits(max_queued=max_queued, decode_log_interval=40, with_metrics=True)
        found = faults.parse(injected, allowed=True)
        self.scheduler = Scheduler(
            decoder, TREE, limits, found, decodes=lambda spec: spec.mode, on_death=self.deaths.put
        )
        self.scheduler.start()

    def submit(self, rid: str, tokens: int = 10) -> None:
        """Hand over a request of five prompt tokens."""

        def deliver(delta: Delta) -> None:
            with self._changed:
                self.deltas.setdefault(rid, []).append(delta)
                self._changed.notify_all()

        generation = Generation(rid=rid, prompt=(1,) * 5, sampling=Sampling(max_new_tokens=tokens))
        self.scheduler.submit(generation, deliver)

    def ended(self, rid: str) -> list[Delta]:
        """Wait for a request's end and return its deltas."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._is_over(rid), timeout=LIMIT_S), f"{rid} did not end"
            return list(self.deltas[rid])

    def tokens(self, rid: str) -> list[int]:
        """Wait for a request's end and return its tokens."""
        return [token for delta in self.ended(rid) for token in delta.tokens]

    def do(self, act: object) -> object:
        """Run something between two steps."""
        assert callable(act)
        return self.scheduler.call(act).result(timeout=LIMIT_S)

    def _is_over(self, rid: str) -> bool:
        """Tell whether a request has ended or was refused."""
        seen = self.deltas.get(rid, [])
        return bool(seen) and (seen[-1].finish is not None or seen[-1].refused is not None)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A scheduler of two rows."""
    made = Bench(ScriptedDecoder())
    yield made
    made.do(made.scheduler.abort_all)


def test_all_tokens_arrive_in_order(bench: Bench) -> None:
    """Requests beyond the batch wait and get all their tokens in order."""
    for rid in "abcd":
        bench.submit(rid, tokens=7)
    assert [bench.tokens(rid) for rid in "abcd"] == [list(range(100, 107))] * 4
    assert all(bench.ended(rid)[-1].finish is FinishReason.LENGTH for rid in "abcd")


def test_counters_are_exact(bench: Bench) -> None:
    """Prefill and decode counters equal what was delivered, the first tokens being prefill's."""
    for rid in "abc":
        bench.submit(rid, tokens=7)
    delivered = sum(len(bench.tokens(rid)) for rid in "abc")
    totals = bench.scheduler.reporter.totals
    wait_until(lambda: totals.decode_tokens == delivered - 3, what="the decode counter")
    assert (totals.prefill_tokens, totals.prefill_passes) == (15, 3)
    assert bench.scheduler.reporter.waiting_tokens == 0


def test_queue_limit() -> None:
    """A request beyond the queue's limit is refused, those before it are served."""
    bench = Bench(ScriptedDecoder(max_running=1), max_queued=1)
    bench.do(lambda: bench.scheduler.pause(PauseMode.IN_PLACE))
    for rid in "ab":
        bench.submit(rid)
    assert bench.ended("b") == [Delta(at=bench.ended("b")[0].at, refused=Refusal.QUEUE_FULL)]
    bench.do(bench.scheduler.resume)
    assert len(bench.tokens("a")) == 10


def test_pause_in_place_loses_nothing(bench: Bench) -> None:
    """A pause in place stops the steps and a resume goes on with the next token."""
    bench.scheduler.step_sleep_s = 0.005
    bench.submit("a", tokens=60)
    wait_until(lambda: len(bench.deltas.get("a", [])) > 2, what="a first delta")
    bench.do(lambda: bench.scheduler.pause(PauseMode.IN_PLACE))
    steps = bench.scheduler.reporter.totals.decode_passes
    bench.do(lambda: None)
    assert bench.scheduler.reporter.totals.decode_passes == steps
    bench.do(bench.scheduler.resume)
    assert bench.tokens("a") == list(range(100, 160))


def test_pause_by_abort_ends_everything(bench: Bench) -> None:
    """The default pause ends running and queued requests with what they have."""
    bench.scheduler.step_sleep_s = 0.005
    for rid in "abc":
        bench.submit(rid, tokens=500)
    wait_until(lambda: len(bench.deltas.get("b", [])) > 1, what="a running batch")
    bench.do(lambda: bench.scheduler.pause(PauseMode.ABORT))
    assert [bench.ended(rid)[-1].finish for rid in "abc"] == [FinishReason.ABORT] * 3
    assert bench.do(bench.scheduler.is_idle) is True
    assert bench.scheduler.reporter.waiting_tokens == 0
    bench.do(bench.scheduler.resume)


def test_abort_of_one_leaves_the_others(bench: Bench) -> None:
    """An aborted request ends, an unknown one is told apart, the other goes on."""
    bench.scheduler.step_sleep_s = 0.005
    bench.submit("a", tokens=500)
    bench.submit("b", tokens=30)
    wait_until(lambda: bool(bench.deltas.get("a")), what="a first token")
    assert [bench.do(lambda rid=rid: bench.scheduler.abort(rid)) for rid in ("a", "zzz")] == [True, False]
    assert bench.ended("a")[-1].finish is FinishReason.ABORT
    assert bench.tokens("b") == list(range(100, 130))


def test_switch_between_steps(bench: Bench) -> None:
    """A switch in the middle of a request loses no token, and the claim follows the decoder."""
    bench.scheduler.step_sleep_s = 0.005
    bench.submit("a", tokens=60)
    wait_until(lambda: len(bench.deltas.get("a", [])) > 2, what="a first delta")
    bench.do(lambda: bench.scheduler.switch(TREE.changed("DFLASH", {})))
    assert bench.decoder.mode.algo == "dflash"
    assert bench.scheduler.speculation.draft_tokens == 8
    assert bench.tokens("a") == list(range(100, 160))


def test_a_refused_switch_changes_nothing(bench: Bench) -> None:
    """Where the decoder refuses a mode the claim stays as it was."""
    bench.decoder.refuse = "no draft model"
    with pytest.raises(ValueError, match="no draft model"):
        bench.do(lambda: bench.scheduler.switch(TREE.changed("DFLASH", {})))
    assert bench.scheduler.speculation is TREE


def test_a_failing_step_is_a_death() -> None:
    """Any exception of the decoder is told with its traceback, and the thread ends."""
    decoder = ScriptedDecoder()
    decoder.fail = RuntimeError("matrix on fire")
    bench = Bench(decoder)
    bench.submit("a")
    assert "RuntimeError: matrix on fire" in bench.deaths.get(timeout=LIMIT_S)


def test_a_callers_exception_is_the_callers(bench: Bench) -> None:
    """What fails between two steps goes to its caller; the scheduler lives."""
    with pytest.raises(ZeroDivisionError):
        bench.do(lambda: 1 // 0)
    bench.submit("a")
    assert len(bench.tokens("a")) == 10


def test_a_caller_that_gave_up_does_no_harm(bench: Bench) -> None:
    """A call that was cancelled before its turn is not run, and the scheduler lives."""
    turn, ran = threading.Event(), threading.Event()
    bench.scheduler.call(turn.wait)
    given_up = bench.scheduler.call(ran.set)
    assert given_up.cancel()
    turn.set()
    bench.submit("a")
    assert (len(bench.tokens("a")), ran.is_set()) == (10, False)


def test_crash_fault() -> None:
    """A crash on demand is a death like any other."""
    bench = Bench(ScriptedDecoder())
    bench.scheduler.crash()
    assert "InjectedCrashError" in bench.deaths.get(timeout=LIMIT_S)


def test_serving_faults_spare_the_warm_up() -> None:
    """A fault of phase serving strikes only once clients are served."""
    bench = Bench(ScriptedDecoder(), "crash:serving")
    bench.submit("warm-up")
    assert len(bench.tokens("warm-up")) == 10
    bench.scheduler.serves_clients = True
    bench.submit("client")
    assert "injected crash in phase serving" in bench.deaths.get(timeout=LIMIT_S)


def test_wrong_tokens() -> None:
    """Every Nth token of a verify step is replaced by its neighbour; the prefill's is left alone."""
    bench = Bench(ScriptedDecoder(), "wrong-token:4")
    bench.submit("a", tokens=13)
    true = list(range(100, 113))
    assert [
        index for index, (seen, wanted) in enumerate(zip(bench.tokens("a"), true, strict=True)) if seen != wanted
    ] == [4, 8, 12]


def test_a_probe_is_dropped_when_busy(bench: Bench) -> None:
    """A probe that is for idle servers only is not admitted to a busy one, whose heartbeat speaks for itself."""
    bench.scheduler.step_sleep_s = 0.005
    bench.submit("a", tokens=60)
    wait_until(lambda: bool(bench.deltas.get("a")), what="a first token")
    before = bench.scheduler.reporter.totals.prefill_passes
    bench.scheduler.submit(
        Generation(rid="probe", prompt=(1,), sampling=Sampling(max_new_tokens=1)), lambda _: None, only_when_idle=True
    )
    assert len(bench.tokens("a")) == 60
    assert bench.scheduler.reporter.totals.prefill_passes == before


def test_readings_rest_at_once(bench: Bench) -> None:
    """The snapshot of a batch that has ended is published without waiting for the next idle tick."""
    bench.submit("a")
    bench.ended("a")
    assert bench.do(lambda: bench.scheduler.reporter.snapshot.running) == 0


def test_heartbeat_moves_with_every_delta(bench: Bench) -> None:
    """The heartbeat is the time of the last delta."""
    before = bench.scheduler.heartbeat
    bench.submit("a")
    assert bench.ended("a")[-1].at == bench.scheduler.heartbeat > before
