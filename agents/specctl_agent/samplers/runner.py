"""Runs each sampler in a thread of its own and keeps its latest value with its age.

A sampler that is slow, stuck or broken delays nobody: the loop reads slots, which never wait for a look, and nothing
waits for a stuck thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)

# How many threads of one sampler may hang at a time: each holds a stack and whatever its call holds.
MAX_STUCK = 3


class Sampler(Protocol[T_co]):
    """One source. Making one must not block.

    `sample` and `close` are called in the sampler's own thread.
    """

    @property
    def name(self) -> str:
        """Its name in health, metrics and logs."""

    @property
    def period_s(self) -> float:
        """From the beginning of a look to the next one's."""

    @property
    def deadline_s(self) -> float:
        """How long a look may take before it counts as hung, and another sampler is started beside it."""

    def sample(self) -> T_co:
        """Take one look, or raise what went wrong."""

    def close(self) -> None:
        """Free what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How one sampler has done since the agent started.

    `error` is what its last look raised, None after a good one. `hung` says that the present look is past its
    deadline; `stuck` counts the looks, that one included, that have not come back. `hangs` counts them all, also
    those that came back late.
    """

    successes: int = 0
    failures: int = 0
    consecutive_failures: int = 0
    hangs: int = 0
    hung: bool = False
    stuck: int = 0
    last_duration_s: float | None = None
    total_duration_s: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T_co]):
    """A sampler's latest value and its age since its look began; both None before the first.

    A look that failed leaves the value of the one before, which grows old.
    """

    value: T_co | None
    age_s: float | None
    health: Health


@dataclass(slots=True)
class _Look:
    """What one thread is at: since when its present look runs, and whether another thread took its place."""

    began_s: float | None = None
    replaced: bool = False


class Slot(Generic[T_co]):
    """One sampler, its thread, and what it last saw; `make` is called again for each thread that takes a stuck one's place."""

    def __init__(self, make: Callable[[], Sampler[T_co]], max_stuck: int = MAX_STUCK) -> None:
        self._make = make
        self._max_stuck = max_stuck
        self._sampler = make()
        self.name = self._sampler.name
        self.period_s = self._sampler.period_s
        self.deadline_s = self._sampler.deadline_s
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._value: T_co | None = None
        self._taken_at_s: float | None = None
        self._health = Health()
        self._look = _Look()
        self._stuck: list[_Look] = []
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; it takes its first look at once, and then one a period, however long each takes."""
        self._look = _Look()
        self._thread = threading.Thread(
            target=self._run, args=(self._sampler, self._look), name=f"sample-{self.name}", daemon=True
        )
        self._thread.start()

    def read(self, now_s: float) -> Reading[T_co]:
        """Return the latest value, and its age at that moment (`time.monotonic`); never waits for a look."""
        with self._lock:
            hung = self._hangs_at(now_s)
            health = self._health
            if hung or self._stuck:
                health = replace(health, hung=hung, hangs=health.hangs + hung, stuck=len(self._stuck) + hung)
            age_s = None if self._taken_at_s is None else max(0.0, now_s - self._taken_at_s)
            return Reading(value=self._value, age_s=age_s, health=health)

    def tend(self, now_s: float) -> bool:
        """Start another thread beside one that hangs, unless too many do; returns whether it did. The loop calls this."""
        with self._lock:
            if self._stopping.is_set() or not self._hangs_at(now_s) or len(self._stuck) + 1 >= self._max_stuck:
                return False
            self._look.replaced = True
            self._stuck.append(self._look)
            self._health = replace(self._health, hangs=self._health.hangs + 1)
        self._sampler = self._make()
        self.start()
        return True

    def stop(self) -> None:
        """Ask the thread to end after its present look; returns at once."""
        self._stopping.set()

    def join(self, timeout_s: float) -> bool:
        """Wait at most that long for the thread to end; returns whether it did. Stuck ones end with the process."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _hangs_at(self, now_s: float) -> bool:
        began_s = self._look.began_s
        return began_s is not None and now_s - began_s > self.deadline_s

    def _run(self, sampler: Sampler[T_co], look: _Look) -> None:
        beat_s = time.monotonic()
        while not self._stopping.is_set() and not look.replaced:
            self._take(sampler, look)
            beat_s = next_beat(beat_s, self.period_s, time.monotonic())
            self._stopping.wait(max(0.0, beat_s - time.monotonic()))
        sampler.close()

    def _take(self, sampler: Sampler[T_co], look: _Look) -> None:
        began_s = look.began_s = time.monotonic()
        try:
            value = sampler.sample()
        except Exception as error:  # noqa: BLE001 - whatever a source does to its sampler, the next look is taken
            self._settle(look, began_s, None, f"{type(error).__name__}: {error}")
        else:
            self._settle(look, began_s, value, None)

    def _settle(self, look: _Look, began_s: float, value: T_co | None, error: str | None) -> None:
        """Note how a look ended; one whose place was taken has nothing to say any more."""
        duration_s = time.monotonic() - began_s
        with self._lock:
            look.began_s = None
            if look.replaced:
                self._stuck.remove(look)
                return
            before = self._health
            self._health = Health(
                successes=before.successes + (error is None),
                failures=before.failures + (error is not None),
                consecutive_failures=0 if error is None else before.consecutive_failures + 1,
                hangs=before.hangs + (duration_s > self.deadline_s),
                last_duration_s=duration_s,
                total_duration_s=before.total_duration_s + duration_s,
                error=error,
            )
            if error is None:
                self._value, self._taken_at_s = value, began_s


def next_beat(beat_s: float, period_s: float, now_s: float) -> float:
    """Return the first beat ahead of now: those that a long look missed are left out, and the rhythm stays."""
    missed = max(0, int((now_s - beat_s) // period_s))
    return beat_s + (missed + 1) * period_s
