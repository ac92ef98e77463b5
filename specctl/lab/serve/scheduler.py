"""The engine's thread: it alone touches the decoder, runs one step after another, and between two steps whatever was asked of it.

Other threads hand it requests and calls; it hands back what each step committed. It knows no HTTP and no text.
"""

from __future__ import annotations

import contextlib
import enum
import queue
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from specctl.lab.serve import dialect, strikes
from specctl.lab.serve.decoder import Decoder
from specctl.lab.serve.faults import Faults
from specctl.lab.serve.reporter import Reporter
from specctl.lab.serve.verifytrace import VerifyTrace
from specctl.lab.serve.wrongtoken import WrongToken
from specctl.lab.types import Emission, FinishReason, Generation, Mode, StepReport, Verify

IDLE_TICK_S = 0.1
"""An idle scheduler looks at its inbox and publishes its readings this often."""
T = TypeVar("T")


class Refusal(enum.Enum):
    """Why the scheduler would not take a request."""

    QUEUE_FULL = "The request queue is full."


class PauseMode(enum.Enum):
    """How /pause_generation leaves the running requests."""

    ABORT = "abort"
    RETRACT = "retract"
    IN_PLACE = "in_place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What one step changed for one request; `at` and `entered` (when its prefill began) are monotonic times."""

    at: float
    entered: float | None = None
    tokens: tuple[int, ...] = ()
    finish: FinishReason | None = None
    matched: str | int | None = None
    verify: Verify | None = None
    refused: Refusal | None = None


Deliver = Callable[[Delta], None]


@dataclass(slots=True)
class _Open:
    """A request that has not ended."""

    generation: Generation
    deliver: Deliver
    arrived: float
    entered: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How the scheduler admits and reports."""

    max_queued: int | None
    decode_log_interval: int
    with_metrics: bool


class Scheduler:
    """Runs the decoder in a thread of its own."""

    def __init__(
        self,
        decoder: Decoder,
        speculation: dialect.Speculation,
        limits: Limits,
        faults: Faults,
        *,
        decodes: Callable[[dialect.Speculation], Mode],
        on_death: Callable[[str], None],
        trace: VerifyTrace | None = None,
    ) -> None:
        now = time.monotonic()
        self._decoder = decoder
        self._limits = limits
        self._faults = faults
        self._decodes = decodes
        self._on_death = on_death
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._open: dict[str, _Open] = {}
        self._pause: PauseMode | None = None
        self._settled = False
        self._wrong_token = WrongToken(faults)
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
        self.reporter = Reporter(
            decoder, interval=limits.decode_log_interval, with_metrics=limits.with_metrics, faults=faults, now=now
        )
        self.reporter.claimed_draft_tokens = speculation.draft_tokens
        self.speculation = speculation
        self.heartbeat = now
        self.serves_clients = False
        self.step_sleep_s = faults.number("slow-steps") or 0.0
        self._node_sleep_s = faults.number("slow-nodes") or 0.0
        self._trace = trace
        if trace is not None:
            trace.begin()

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def submit(self, generation: Generation, deliver: Deliver, *, only_when_idle: bool = False) -> None:
        """Hand over a request; `deliver` is called in the scheduler's thread with every delta."""

        def admit() -> None:
            if not (only_when_idle and self._open):
                self._admit(generation, deliver)

        self._inbox.put(admit)

    def call(self, act: Callable[[], T]) -> Future[T]:
        """Run something between two steps and return its future; one that was cancelled by then is not run."""
        future: Future[T] = Future()

        def between_steps() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(act())
            except Exception as error:  # noqa: BLE001  # it belongs to the caller
                future.set_exception(error)

        self._inbox.put(between_steps)
        return future

    def crash(self) -> None:
        """Make the scheduler fail before its next step (fault `crash-after`)."""

        def fail() -> None:
            raise strikes.InjectedCrashError("injected crash of a serving engine")

        self._inbox.put(fail)

    # What follows runs in the scheduler's thread: call it through `call`.

    def abort(self, rid: str) -> bool:
        """End a request where it stands; answer whether it was known."""
        found = self._open.pop(rid, None)
        if found is None:
            return False
        self._decoder.abort(rid)
        self._deliver(found, Delta(at=time.monotonic(), finish=FinishReason.ABORT))
        return True

    def abort_all(self) -> int:
        """End every request where it stands and return their number."""
        return sum(self.abort(rid) for rid in tuple(self._open))

    def pause(self, mode: PauseMode) -> None:
        """Stop stepping until `resume`."""
        if mode is PauseMode.ABORT:
            self.abort_all()
            self.reporter.idle(waited_s=0.0, now=time.monotonic())
        elif mode is PauseMode.RETRACT:
            self.reporter.retracted(self._decoder.running)
        self._pause = mode

    def resume(self) -> None:
        """Step again."""
        self._pause = None

    def switch(self, speculation: dialect.Speculation) -> None:
        """Decode otherwise from the next step on, losing nothing; raise ValueError when the decoder refuses."""
        self._decoder.configure(self._decodes(speculation))
        self.reporter.mode_changed()
        self.speculation = speculation
        self.reporter.claimed_draft_tokens = speculation.draft_tokens

    def set_trace(self, *, on: bool) -> None:
        """Begin the verify trace anew, or end it; nothing for a server that was started without one."""
        if self._trace is None:
            return
        if on:
            self._trace.begin()
        else:
            self._trace.end()

    def is_idle(self) -> bool:
        """Tell whether nothing runs and nothing waits."""
        return not self._open

    def counts(self) -> tuple[int, int]:
        """Return the waiting and the running requests."""
        return self._decoder.waiting, self._decoder.running

    def _run(self) -> None:
        """Serve until the process ends; any failure is told to `on_death` with its traceback and ends the thread."""
        try:
            while True:
                if not self._may_step():
                    self._rest()
                    continue
                self._drain_inbox()
                if self._may_step():
                    self._step()
        except Exception:  # noqa: BLE001  # whatever it is, the process must end with the traceback in its log
            self._on_death(traceback.format_exc())

    def _may_step(self) -> bool:
        """Tell whether there is work and no pause; what was asked between two steps may have changed either."""
        return bool(self._open) and self._pause is None

    def _drain_inbox(self) -> None:
        """Do everything that was asked since the last step."""
        while True:
            try:
                self._inbox.get_nowait()()
            except queue.Empty:
                return

    def _rest(self) -> None:
        """Wait for work or for the next idle tick; the readings of a batch that has just ended come to rest at once."""
        if not self._settled:
            self._settle(waited_s=0.0)
        began = time.monotonic()
        with contextlib.suppress(queue.Empty):
            self._inbox.get(timeout=IDLE_TICK_S)()
        self._settle(waited_s=time.monotonic() - began)

    def _settle(self, *, waited_s: float) -> None:
        """Publish the readings of a scheduler at rest; a pause leaves them as they were."""
        if self._pause is None and not self._open:
            self.reporter.idle(waited_s=waited_s, now=time.monotonic())
            self._settled = True

    def _admit(self, generation: Generation, deliver: Deliver) -> None:
        """Queue a request, or refuse it where the queue is full."""
        now = time.monotonic()
        opened = _Open(generation=generation, deliver=deliver, arrived=now)
        limit = self._limits.max_queued
        if limit is not None and self._decoder.waiting >= limit:
            self._deliver(opened, Delta(at=now, refused=Refusal.QUEUE_FULL))
            return
        self._decoder.add(generation)
        self._open[generation.rid] = opened
        self.reporter.waiting_tokens += len(generation.prompt)
        self.reporter.stages["request_process"].observe(time.monotonic() - now)

    def _step(self) -> None:
        """Run one iteration of the batch and tell everyone concerned."""
        if self.step_sleep_s > 0:
            time.sleep(self.step_sleep_s)
        self._settled = False
        running = self._decoder.running
        began = time.monotonic()
        report = self._wrong_token.bend(self._decoder.step())
        if self._node_sleep_s > 0 and report.verifies:
            time.sleep(self._node_sleep_s * report.forward_tokens)
        now = time.monotonic()
        if self._trace is not None:
            self._trace.record(report, self._decoder.mode)
        self._start_clocks(report, began)
        if report.prefilled_requests:
            self.reporter.prefill(report, running_before=running, busy_s=now - began, now=now)
        elif report.emissions:
            if self.serves_clients:
                strikes.strike(self._faults, "serving")
            self.reporter.decode(report, batch=running, busy_s=now - began, now=now)
        verifies = {verify.rid: verify for verify in report.verifies}
        for emission in report.emissions:
            self._emit(emission, verifies.get(emission.rid), now)

    def _start_clocks(self, report: StepReport, began: float) -> None:
        """Note which requests left the queue in this step."""
        for emission in report.emissions:
            opened = self._open.get(emission.rid)
            if opened is not None and opened.entered is None:
                opened.entered = began
                self.reporter.waiting_tokens -= len(opened.generation.prompt)
                self.reporter.queue_time.observe(max(began - opened.arrived, 0.0))

    def _emit(self, emission: Emission, verify: Verify | None, now: float) -> None:
        """Deliver one request's share of a step."""
        opened = self._open.get(emission.rid)
        if opened is None:
            return
        if emission.finish is not None:
            del self._open[emission.rid]
        self._deliver(
            opened,
            Delta(
                at=now,
                entered=opened.entered,
                tokens=emission.tokens,
                finish=emission.finish,
                matched=emission.matched,
                verify=verify,
            ),
        )

    def _deliver(self, opened: _Open, delta: Delta) -> None:
        """Hand a delta over and note that the scheduler lives."""
        if opened.entered is None and delta.finish is FinishReason.ABORT:
            self.reporter.waiting_tokens -= len(opened.generation.prompt)
        self.heartbeat = delta.at
        opened.deliver(delta)
