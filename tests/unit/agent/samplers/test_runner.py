"""Each sampler has its own thread: what one does to itself, no other and no loop feels."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from specctl_agent.samplers.runner import Health, Sampler, Slot, next_beat

PATIENCE_S = 10.0


@dataclass
class Counter:
    """Counts its looks."""

    name: str = "counter"
    period_s: float = 0.005
    deadline_s: float = 5.0
    looks: int = 0
    closed: threading.Event = field(default_factory=threading.Event)

    def sample(self) -> int:
        self.looks += 1
        return self.looks

    def close(self) -> None:
        self.closed.set()


@dataclass
class Listener:
    """Reads one byte from a socket that may never bring one."""

    source: socket.socket
    name: str = "listener"
    period_s: float = 0.005
    deadline_s: float = 0.05

    def sample(self) -> bytes:
        return self.source.recv(1)

    def close(self) -> None:
        pass


@dataclass
class Failing(Counter):
    """Gives one value, then fails."""

    name: str = "failing"

    def sample(self) -> int:
        self.looks += 1
        if self.looks > 1:
            raise OSError("the source is gone")
        return self.looks


def until(claim: Callable[[], bool]) -> None:
    """Wait until it holds."""
    end = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < end, "never came true"
        threading.Event().wait(0.002)


T = TypeVar("T")


class Slots:
    """Slots that end with their test."""

    def __init__(self) -> None:
        self._made: list[Slot[object]] = []

    def start(self, make: Callable[[], Sampler[T]]) -> Slot[T]:
        slot = Slot(make)
        self._made.append(slot)
        slot.start()
        return slot

    def stop(self) -> None:
        for slot in self._made:
            slot.stop()


@pytest.fixture
def slots() -> Iterator[Slots]:
    made = Slots()
    yield made
    made.stop()


@pytest.fixture
def wires() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far
        far.sendall(b"x" * 64)  # frees whoever still hangs


def test_nothing_is_known_before_the_first_look() -> None:
    """A slot whose sampler was not started has no value and no age."""
    slot = Slot(Counter)
    reading = slot.read(time.monotonic())
    assert (reading.value, reading.age_s, reading.health) == (None, None, Health())


def test_looks_are_taken_again_and_again(slots: Slots) -> None:
    """The slot holds the newest value, as old as the moment its look began."""
    before_s = time.monotonic()
    slot = slots.start(Counter)
    until(lambda: (slot.read(0.0).value or 0) >= 3)
    now_s = time.monotonic()
    reading = slot.read(now_s)
    assert reading.age_s is not None
    assert 0.0 <= reading.age_s <= now_s - before_s
    assert reading.health.successes >= 3
    assert (reading.health.failures, reading.health.error, reading.health.hung) == (0, None, False)


def test_a_value_grows_old(slots: Slots) -> None:
    """Between looks the value stays and its age is told for the moment that was asked about."""
    slot = slots.start(lambda: Counter(period_s=60.0))
    until(lambda: slot.read(0.0).value == 1)
    now_s = time.monotonic()
    young, old = slot.read(now_s), slot.read(now_s + 7.0)
    assert young.age_s is not None
    assert old.age_s == pytest.approx(young.age_s + 7.0)
    assert old.value == 1


def test_failures_are_counted_and_the_value_grows_old(slots: Slots) -> None:
    """A look that raises leaves the value before it, counts, and says why."""
    slot = slots.start(Failing)
    until(lambda: slot.read(0.0).health.consecutive_failures >= 2)
    reading = slot.read(time.monotonic())
    assert (reading.value, reading.health.successes) == (1, 1)
    assert reading.health.error == "OSError: the source is gone"
    assert reading.health.failures == reading.health.consecutive_failures


def test_a_hung_sampler_delays_no_other(slots: Slots, wires: tuple[socket.socket, socket.socket]) -> None:
    """While one sampler hangs in a read, it is called hung, reading it returns at once, and the others go on."""
    near, _ = wires
    stuck, counter = slots.start(lambda: Listener(near)), slots.start(Counter)
    until(lambda: stuck.read(time.monotonic()).health.hung)
    seen = counter.read(0.0).value or 0
    until(lambda: (counter.read(0.0).value or 0) > seen + 3)
    reading = stuck.read(time.monotonic())
    assert (reading.value, reading.health.hangs, reading.health.stuck) == (None, 1, 1)


def test_a_late_answer_still_counts_as_a_hang(slots: Slots, wires: tuple[socket.socket, socket.socket]) -> None:
    """A look that comes back after its deadline is a hang and a value; the sampler goes on."""
    near, far = wires
    slot = slots.start(lambda: Listener(near))
    until(lambda: slot.read(time.monotonic()).health.hung)
    far.sendall(b"a")
    until(lambda: slot.read(time.monotonic()).value == b"a")
    assert slot.read(0.0).health.hangs == 1
    assert slot.read(0.0).health.successes == 1


def test_hung_threads_are_replaced_within_bounds(wires: tuple[socket.socket, socket.socket]) -> None:
    """A hung thread gets a new one beside it, until the bound; no more are started then."""
    near, far = wires
    made: list[Listener] = []

    def make() -> Sampler[bytes]:
        made.append(Listener(near))
        return made[-1]

    slot = Slot(make, max_stuck=3)
    slot.start()
    for count in (1, 2):
        until(lambda: slot.tend(time.monotonic()))
        assert len(made) == count + 1
    until(lambda: slot.read(time.monotonic()).health.hung)
    assert not slot.tend(time.monotonic())
    assert slot.read(time.monotonic()).health.stuck == 3
    assert len(made) == 3
    slot.stop()
    far.sendall(b"abc")
    until(lambda: slot.read(time.monotonic()).health.stuck == 0)
    assert slot.join(PATIENCE_S)
    assert slot.read(time.monotonic()).health.hangs == 3


def test_a_replaced_look_has_nothing_to_say(wires: tuple[socket.socket, socket.socket]) -> None:
    """What a replaced thread brings at last is thrown away: the value is its successor's."""
    near, far = wires
    samplers: Iterator[Sampler[object]] = iter([Listener(near), Counter()])
    slot = Slot(lambda: next(samplers))
    slot.start()
    until(lambda: slot.tend(time.monotonic()))
    until(lambda: slot.read(0.0).value is not None)
    far.sendall(b"z")
    until(lambda: slot.read(time.monotonic()).health.stuck == 0)
    assert isinstance(slot.read(0.0).value, int)
    slot.stop()
    assert slot.join(PATIENCE_S)


def test_stop_ends_the_thread_and_frees_its_sampler(slots: Slots) -> None:
    """Stopping does not wait for the period to pass, and the sampler is closed in its own thread."""
    counter = Counter(period_s=60.0)
    slot = slots.start(lambda: counter)
    until(lambda: counter.looks == 1)
    slot.stop()
    assert slot.join(PATIENCE_S)
    assert counter.closed.is_set()


def test_a_stuck_thread_is_not_waited_for(slots: Slots, wires: tuple[socket.socket, socket.socket]) -> None:
    """Stopping a sampler that hangs in a look returns within its limit and says that it has not ended."""
    near, _ = wires
    slot = slots.start(lambda: Listener(near))
    until(lambda: slot.read(time.monotonic()).health.hung)
    slot.stop()
    before_s = time.monotonic()
    assert not slot.join(0.05)
    assert time.monotonic() - before_s < 5.0


@pytest.mark.parametrize(
    ("beat_s", "now_s", "expected"), [(10.0, 10.2, 11.0), (10.0, 11.0, 12.0), (10.0, 13.7, 14.0), (10.0, 9.0, 11.0)]
)
def test_missed_beats_are_left_out(beat_s: float, now_s: float, expected: float) -> None:
    """After a long look the next beat is the first one ahead, on the old rhythm: no burst makes up for lost ones."""
    assert next_beat(beat_s, 1.0, now_s) == expected
