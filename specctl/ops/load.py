"""Put a level of load on one server and note all that is measured of it; used by bench, ab, calibrate and doctor.

Bounded in requests and in time, and ended early by `cancel`: what was measured by then is kept. A thread a request in flight reads
its stream through the host's connection; what that costs here is measured too, for a sender that is the bottleneck measures itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from specctl.measure.figures import foreign
from specctl.measure.intervals import quantile
from specctl.measure.load import (
    MOST_CONCURRENCY,
    Client,
    Closed,
    GpuReading,
    Level,
    Prompt,
    Run,
    Timing,
)
from specctl.measure.load_plan import ASSUMED_CHARS_A_TOKEN, Requests, Send
from specctl.ops.engine_http import EngineClient
from specctl.ops.load_counters import counters
from specctl.ops.load_request import Line, send

REQUEST_S = 900.0
# After the last request was sent, the ones in flight have this long to end.
ENDING_S = 120.0
# A stream that brings nothing for so long, with all others, is a server that hangs.
SILENCE_S = 60.0
TICK_S = 0.1
SETTLE_S = 2.0
BACK_OFF_S = 0.1
MOST_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: seconds since it began, requests and tokens so far; `share`: the part that is done, 0 to 1."""

    elapsed_s: float
    sent: int
    ended: int
    failed: int
    tokens: int
    in_flight: int
    share: float


Show = Callable[[Progress], None]


class Watch(Protocol):
    """Whoever reads the GPUs meanwhile (ops/load_gpus.py); moments are of the clock that the run goes by."""

    def since(self, at_s: float) -> Sequence[GpuReading]:
        """Return the readings after a moment."""


def run_level(
    client: EngineClient,
    level: Level,
    prompts: Sequence[Prompt],
    *,
    show: Show | None = None,
    cancel: threading.Event | None = None,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.monotonic,
    chars_a_token: float = ASSUMED_CHARS_A_TOKEN,
) -> Run:
    """Send a level's requests and return what came of them; never raises for what the engine does wrong.

    `chars_a_token`: how a trace's prompt tokens become text. `Run.stopped` says why it ended before its time.
    """
    began_s = clock()
    before = counters(client, began_s, began_s)
    load = _Load(client, level, Requests(level, prompts), began_s=began_s, clock=clock)
    cpu_s, wall_s = time.process_time(), time.monotonic()
    cancel = cancel or threading.Event()
    load.begin(chars_a_token)
    load.wait(show, cancel)
    cost = Client(
        cpu_s=time.process_time() - cpu_s,
        wall_s=time.monotonic() - wall_s,
        late_s=load.late_s,
        lag_s=quantile(load.lags_s, 0.95) if load.lags_s else None,
    )
    found = () if watch is None else tuple(watch.since(began_s))
    run = Run(
        level=level,
        timings=tuple(sorted(load.timings, key=lambda each: (each.sent_s, each.number))),
        client=cost,
        before=before,
        gpus=tuple(replace(each, at_s=each.at_s - began_s) for each in found),
        stopped=load.stopped,
        gave_up=load.gave_up,
    )
    return _counted(run, client, began_s=began_s, clock=clock, cancel=cancel)


def _counted(
    run: Run, client: EngineClient, *, began_s: float, clock: Callable[[], float], cancel: threading.Event
) -> Run:
    """Return the run with the engine's counters at its end, once they know of our last request, which takes them a moment.

    Nothing tells that moment, so they are asked again and again.
    """
    until = time.monotonic() + SETTLE_S
    while True:
        run = replace(run, after=counters(client, clock(), began_s))
        beyond, _ = foreign(run)
        if beyond is None or beyond >= 0 or time.monotonic() > until or cancel.wait(TICK_S):
            return run


class _Load:
    """The requests in flight, and what has come of them; its state is guarded by one lock."""

    def __init__(
        self, client: EngineClient, level: Level, requests: Requests, *, began_s: float, clock: Callable[[], float]
    ) -> None:
        self._client, self._level, self._requests = client, level, requests
        self._began_s, self._real_clock = began_s, clock
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._lines: set[Line] = set()
        self._threads: list[threading.Thread] = []
        self._warm: set[int] = set()
        self._opened_s: float | None = None
        self._rounds: dict[int, int] = {}
        self._sent = self._tokens = self._failed = self._in_a_row = 0
        self._last_token_s = 0.0
        self._senders = 0
        self.timings: list[Timing] = []
        self.late_s = 0.0
        self.lags_s: list[float] = []
        self.stopped: str | None = None
        self.gave_up = False

    def clock(self) -> float:
        """Return the seconds since the run began."""
        return self._real_clock() - self._began_s

    def begin(self, chars_a_token: float) -> None:
        """Start to send."""
        pace = self._level.pace
        if isinstance(pace, Closed):
            for slot in range(pace.concurrency):
                self._start(self._keep_slot, slot)
        else:
            self._start(self._keep_time, chars_a_token)

    def wait(self, show: Show | None, cancel: threading.Event) -> None:
        """Wait for the end of all requests, however it comes."""
        ending_s: float | None = None
        while self._alive():
            now = self.clock()
            asked_s = time.monotonic()
            if cancel.wait(TICK_S):
                self._stop("interrupted")
                self._hang_up()
            elif now - self._last_token_s > SILENCE_S and self._lines:
                self._stop(f"no token came for {SILENCE_S:.0f} s", gave_up=True)
                self._hang_up()
            elif now > self._level.limit_s and not self._over.is_set():
                self._stop(f"the limit of {self._level.limit_s:.0f} s was over")
            self.lags_s.append(max(0.0, time.monotonic() - asked_s - TICK_S))
            if self._over.is_set():
                ending_s = now if ending_s is None else ending_s
                if now - ending_s > ENDING_S:
                    self._hang_up()
            if show is not None:
                show(self._progress(now))
        if show is not None:
            show(self._progress(self.clock()))

    def _alive(self) -> bool:
        with self._lock:
            return self._senders > 0

    def _start(self, work: Callable[..., None], *args: object) -> None:
        def run() -> None:
            try:
                work(*args)
            finally:
                with self._lock:
                    self._senders -= 1

        with self._lock:
            self._senders += 1
        thread = threading.Thread(target=run, daemon=True, name="specctl-load")
        thread.start()

    def _keep_slot(self, slot: int) -> None:
        """Send one request after another until there were enough."""
        turn = 0
        while not self._over.is_set():
            request = self._requests.closed(slot, turn)
            if not request.warmup:
                self._note_warm(slot)
                if self._enough():
                    return
            timing = self._send(request, slot)
            turn += 1
            if timing.failure is not None:
                self._over.wait(BACK_OFF_S)
            elif not timing.warmup:
                with self._lock:
                    self._rounds[slot] = self._rounds.get(slot, 0) + 1

    def _note_warm(self, slot: int) -> None:
        with self._lock:
            self._warm.add(slot)
            if self._opened_s is None and len(self._warm) == self._level.concurrency:
                self._opened_s = self.clock()

    def _enough(self) -> bool:
        """Claim that every slot has sent its rounds, and that the window was long enough."""
        with self._lock:
            slots = self._level.concurrency or 0
            done = len(self._rounds) == slots and min(self._rounds.values()) >= self._level.rounds
            opened_s = self._opened_s
        return done and opened_s is not None and self.clock() - opened_s >= self._level.seconds

    def _keep_time(self, chars_a_token: float) -> None:
        """Send each request at its moment; one that there is no room for waits, which is noted as lateness."""
        room = threading.BoundedSemaphore(MOST_CONCURRENCY)
        for number, request in enumerate(self._requests.arriving(chars_a_token)):
            wait_s = (request.due_s or 0.0) - self.clock()
            if wait_s > 0 and self._over.wait(wait_s):
                return
            while not room.acquire(timeout=TICK_S):
                if self._over.is_set():
                    return
            if self._over.is_set():
                return
            self.late_s = max(self.late_s, self.clock() - (request.due_s or 0.0))
            self._start(self._send_and_leave, request, number, room)

    def _send_and_leave(self, request: Send, number: int, room: threading.BoundedSemaphore) -> None:
        try:
            self._send(request, number)
        finally:
            room.release()

    def _send(self, request: Send, slot: int) -> Timing:
        line = Line(self._client.contact.transport, self.clock)
        with self._lock:
            self._lines.add(line)
            self._sent += 1
            self._last_token_s = max(self._last_token_s, self.clock()) if len(self._lines) == 1 else self._last_token_s
        timing = send(
            self._client,
            request,
            self._level,
            line,
            slot=slot,
            timeout_s=REQUEST_S,
            clock=self.clock,
            tell=self._tell,
        )
        with self._lock:
            self._lines.discard(line)
            self.timings.append(timing)
        self._judge(timing)
        return timing

    def _tell(self, new: int) -> None:
        with self._lock:
            self._tokens += new
            self._last_token_s = self.clock()

    def _judge(self, timing: Timing) -> None:
        """End the run where one request after another fails: the rest would fail as well."""
        with self._lock:
            self._failed += timing.failure is not None
            self._in_a_row = 0 if timing.failure is None else self._in_a_row + 1
            hopeless = self._in_a_row >= MOST_FAILURES + (self._level.concurrency or 0)
        if hopeless:
            self._stop(f"request after request failed: {timing.failure}", gave_up=True)

    def _stop(self, why: str, *, gave_up: bool = False) -> None:
        with self._lock:
            if self.stopped is None:
                self.stopped, self.gave_up = why, gave_up
        self._over.set()

    def _hang_up(self) -> None:
        with self._lock:
            lines = tuple(self._lines)
        for line in lines:
            line.hang_up()

    def _progress(self, now: float) -> Progress:
        level = self._level
        with self._lock:
            flying, ended, failed, tokens, sent = (
                len(self._lines), len(self.timings), self._failed, self._tokens, self._sent,
            )  # fmt: skip
        share = min(1.0, tokens / max(1, expected_tokens(level)))
        if isinstance(level.pace, Closed) and level.seconds > 0:
            share = min(share, now / level.seconds)
        return Progress(
            elapsed_s=now, sent=sent, ended=ended, failed=failed, tokens=tokens, in_flight=flying, share=share
        )


def expected_tokens(level: Level) -> int:
    """Return about how many tokens a level's run generates, warm-up and the ones in flight at its end included."""
    pace = level.pace
    if isinstance(pace, Closed):
        # The first warm-up of a slot is half as long on the mean.
        return round((_turns(level) - (0.5 if level.warmup else 0.0)) * pace.concurrency * level.tokens)
    return sum(each.tokens for each in Requests(level, (Prompt(id="", kind="", text=""),)).arriving())


def expected_requests(level: Level) -> int:
    """Return about how many requests a level's run sends."""
    pace = level.pace
    if isinstance(pace, Closed):
        return round(_turns(level) * pace.concurrency)
    return sum(1 for _ in Requests(level, (Prompt(id="", kind="", text=""),)).arriving())


def _turns(level: Level) -> float:
    """Return about how many requests a slot of a closed loop sends: one that is ahead sends about half a request more."""
    return level.rounds + level.warmup + (0.5 if (level.concurrency or 0) > 1 else 0.0)
