"""Looking at many hosts: each by itself, so that a slow, silent or lost one delays, hides and breaks no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from specctl.control.sight import AgentSight, Decided, Sight
from specctl.control.sight_events import Kind
from specctl.control.sight_past import Past
from specctl.errors import ConnectError, RemoteCommandError, SpecctlError, UsageError
from specctl.ops.sights import Watch, look_at
from tests import sights

pytestmark = pytest.mark.slow

LIMIT_S = 10.0


@dataclass(slots=True)
class Fake:
    """A host that answers what it is told to; `gate` holds its looks up while it is clear."""

    sight: Sight
    error: SpecctlError | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    looks: int = 0
    closed: bool = False
    kept: Past | None = None
    rows: Sequence[Mapping[str, object]] = ()
    at_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def blank(self) -> tuple[Sight, ...]:
        """Return the host before the first look."""
        return (replace(sights.BARE, host=self.sight.host, server=self.sight.server, reason="not looked at yet"),)

    def look(self) -> tuple[Sight, ...]:
        """Answer, or raise."""
        self.at_s.append(time.monotonic())
        self.gate.wait()
        self.looks += 1
        if self.error is not None:
            raise self.error
        return (self.sight,)

    def past(self, server: str) -> Past | None:
        """Return what was kept."""
        assert server == self.sight.server
        return self.kept

    def ask(self, server: str, what: str, limit: int) -> tuple[Mapping[str, object], ...]:
        """Return the rows."""
        assert server == self.sight.server
        return tuple({**row, "what": what} for row in self.rows)[-limit:]

    def close(self) -> None:
        """End; a look that is held up ends too."""
        self.closed = True
        self.gate.set()


def until(claim: Callable[[], object], what: str) -> None:
    """Wait until a claim holds, or fail with its words."""
    deadline = time.monotonic() + LIMIT_S
    while not claim():
        assert time.monotonic() < deadline, f"it did not come to pass: {what}"
        time.sleep(0.005)


@contextmanager
def watching(*hosts: Fake, period_s: float = 0.02, points: int = 50) -> Iterator[Watch]:
    """Watch hosts while the block lasts."""
    watch = Watch(hosts, period_s=period_s, points=points)
    watch.start()
    try:
        yield watch
    finally:
        watch.close()
        assert all(host.closed for host in hosts)


def other(host: str, **changes: object) -> Fake:
    """Return a host like ct200 of another name."""
    return Fake(replace(sights.READY, host=host, **changes))  # type: ignore[arg-type]  # fields of a sight


def test_one_look_at_all() -> None:
    """Every host's sights come in order; one that refuses is a sight with its reason, what to do, and no figure."""
    lost = Fake(sights.READY, error=ConnectError("connection refused", hint="start sshd"))
    odd = Fake(replace(sights.READY, host="odd"), error=RemoteCommandError("it broke"))
    well = other("well")
    found = look_at([lost, odd, well], limit_s=LIMIT_S)
    assert [(sight.host, sight.state, sight.reason, sight.hint) for sight in found] == [
        ("ct200", "unreachable", "connection refused", "start sshd"),
        ("odd", "unknown", "it broke", None),
        ("well", "ready", None, None),
    ]
    assert (found[0].running, found[0].age_s) == (None, None)
    assert all(host.closed for host in (lost, odd, well))


def test_a_host_that_hangs_is_bounded() -> None:
    """A host that gives no answer within the limit is told as such; the others are whole, and nobody waits longer."""
    hung, well = other("hung"), other("well")
    hung.gate.clear()
    began_s = time.monotonic()
    found = look_at([hung, well], limit_s=0.2)
    assert time.monotonic() - began_s < 2.0
    assert [(sight.state, sight.reason, sight.hint) for sight in found] == [
        ("unreachable", "no answer within 0 s", "specctl exec --host hung -- uptime"),
        ("ready", None, None),
    ]
    hung.close()


def test_before_the_first_look() -> None:
    """A watch shows from its first moment what it has yet to find out."""
    host = other("slow")
    host.gate.clear()
    with watching(host) as watch:
        (found,) = watch.sights()
        assert (found.state, found.reason, found.running) == ("unknown", "not looked at yet", None)
        assert not watch.first(0.01)
        host.gate.set()
        assert watch.first(LIMIT_S)
        assert watch.sights()[0].state == "ready"


def test_a_slow_host_delays_no_other() -> None:
    """While one host hangs in a look, the others are looked at as often as before."""
    slow, quick = other("slow"), other("quick")
    with watching(slow, quick) as watch:
        until(lambda: slow.looks and quick.looks, "both were looked at")
        slow.gate.clear()
        until(lambda: len(slow.at_s) > slow.looks, "one hangs in its look")
        looks = quick.looks
        until(lambda: quick.looks > looks + 20, "the other goes on")
        assert watch.sights()[0].state == "ready"


def test_figures_of_a_lost_host_grow_old() -> None:
    """What was seen of a host that answers no more is kept, older each time, under the reason; stale is not shown as fresh."""
    host = other("ct201")
    with watching(host) as watch:
        until(lambda: host.looks, "it was looked at")
        host.error = ConnectError("connection timed out")
        until(lambda: watch.sights()[0].state == "unreachable", "it is lost")
        first = watch.sights()[0]
        until(lambda: _age(watch) > _of(first) + 0.05, "its figures grow older")
        assert (first.reason, first.running and first.running.value) == ("connection timed out", 3)
        host.error = None
        until(lambda: watch.sights()[0].state == "ready", "it is back")
        assert [event.text for event in watch.events()] == [
            "ready → unreachable (connection timed out)",
            "unreachable → ready",
        ]


def _of(sight: Sight) -> float:
    assert sight.running is not None
    assert sight.running.age_s is not None
    return sight.running.age_s


def _age(watch: Watch) -> float:
    return _of(watch.sights()[0])


def test_a_lost_host_is_tried_less_and_less_often() -> None:
    """Each failure doubles the pause before the next try."""
    host = other("lost")
    host.error = ConnectError("no")
    with watching(host, period_s=0.05):
        until(lambda: len(host.at_s) >= 5, "it was tried five times")
    pauses = [later - earlier for earlier, later in zip(host.at_s, host.at_s[1:], strict=False)]
    assert all(pause >= 0.05 * 2**number - 0.001 for number, pause in enumerate(pauses[:4]))


def test_the_past_of_a_watch() -> None:
    """Points come as the host is looked at, after those that its agent kept; a pause is a gap, and memory is bounded."""
    host = other("ct201")
    host.kept = Past(period_s=0.02, running=(1.0, 2.0))
    with watching(host, points=20) as watch:
        until(lambda: len(watch.past("ct201", "k26").running) == 20, "the ring is full")
        host.gate.clear()
        until(lambda: len(host.at_s) > host.looks, "it hangs")
        waited_s = time.monotonic()
        until(lambda: time.monotonic() > waited_s + 0.1, "some periods went by")
        host.gate.set()
        until(lambda: None in watch.past("ct201", "k26").running, "they are gaps")
        past = watch.past("ct201", "k26")
        assert len(past.running) == len(past.gpu_power_w[7]) == 20
        assert set(past.running) <= {None, 1.0, 2.0, 3.0}


def test_decisions_of_before_and_now_are_events() -> None:
    """What the agent decided before the watch began, and what it decides meanwhile, are events in their order."""
    host = other("ct201")
    host.rows = ({"at": "2026-11-29T10:00:00+00:00", "decision": "switch ddtree", "reason": "idle"},)
    with watching(host) as watch:
        until(watch.events, "the past decision is there")
        decision = Decided(text="switch dflash", reason="gain", at="2026-11-29T15:00:00+00:00")
        host.sight = replace(host.sight, agent=AgentSight(conduct="act", decision=decision))
        until(lambda: len(watch.events()) == 2, "the new one is there")
        assert [(event.kind, event.text) for event in watch.events()] == [
            (Kind.DECISION, "switch ddtree: idle"),
            (Kind.DECISION, "switch dflash: gain"),
        ]


def test_questions_go_to_their_host() -> None:
    """A host is asked for what somebody wants to see of it; one that is not watched is refused in words."""
    host = other("ct201")
    host.rows = ({"line": "a"}, {"line": "b"})
    with watching(host, other("ct202")) as watch:
        assert watch.ask("ct201", "k26", "lines", 1) == ({"line": "b", "what": "lines"},)
        with pytest.raises(UsageError, match="ct999 is not watched"):
            watch.ask("ct999", "k26", "lines", 1)


def test_the_end_waits_for_nobody() -> None:
    """A watch ends soon, though a host hangs and will not be closed; its threads are left to the end of the process."""

    class Stubborn(Fake):
        def close(self) -> None:
            self.closed = True

    host = Stubborn(sights.READY)
    watch = Watch([host], period_s=0.02)
    watch.start()
    until(lambda: host.looks, "it was looked at")
    host.gate.clear()
    until(lambda: len(host.at_s) > host.looks, "it hangs")
    began_s = time.monotonic()
    watch.close()
    watch.close()
    assert time.monotonic() - began_s < 8.0
    host.gate.set()
