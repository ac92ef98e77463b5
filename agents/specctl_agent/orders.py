"""What people told the agent: pins, holds, how far it may go; kept in a file, so that a restart or a reboot forgets none of it.

Told by the thread that serves the control socket, read by the loop.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specctl.control import mode as modes
from specctl.control import wire
from specctl.control.mode import Mode
from specctl.control.policy_types import Now
from specctl.fleet.types import AgentMode
from specctl.rollout import reading
from specctl_agent.clock import Clock
from specctl_agent.storing import StateFile

FORMAT = 1
NAME = "orders.json"
LOST = "lost"
LOST_WORDS = "what people ordered is lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """An end: by the clock of one boot, which no change of the wall clock moves, and by the wall clock for later boots."""

    boot: str
    mono_s: float
    wall_s: float

    @classmethod
    def after(cls, seconds: float, now: Now) -> Until:
        """Return the end that lies so many seconds ahead."""
        return cls(boot=now.boot, mono_s=now.mono_s + seconds, wall_s=now.wall_s + seconds)

    def left_s(self, now: Now) -> float:
        """Return the seconds that are left; none is below zero. After a reboot at most the longest that a pin may take."""
        left = self.mono_s - now.mono_s if self.boot == now.boot else self.wall_s - now.wall_s
        return min(max(left, 0.0), wire.LONGEST_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A mode that is to stay, for whom and until when."""

    mode: Mode
    reason: str
    who: str
    until: Until


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All orders for one server; `resumed` counts how often somebody ended a hold or a freeze."""

    conduct: AgentMode | None = None
    pin: Pinned | None = None
    held: str | None = None
    held_by: str | None = None
    resumed: int = 0


@dataclass(slots=True)
class Orders:
    """The orders for every server; thread-safe.

    Orders that are lost may have been a hold: every server is then held until somebody resumes it.
    """

    file: StateFile
    clock: Clock
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _standing: dict[str, Standing] = field(default_factory=dict)
    _lost: str | None = None

    def load(self) -> None:
        """Take up what was ordered before the agent started; what cannot be meant is left out."""
        with self._lock:
            found = self.file.load()
            for name, fields in reading.mapping(found.get("servers")).items():
                self._standing[name] = _read(reading.mapping(fields))
            self._lost = self.file.lost or reading.text(found.get(LOST))
            if self.file.lost is not None:
                self._save()

    def of(self, server: str) -> Standing:
        """Return the orders for a server; a pin that has run out is none."""
        now = self.clock.now()
        with self._lock:
            found = self._found(server)
            if found.pin is not None and found.pin.until.left_s(now) <= 0:
                found = self._standing[server] = replace(found, pin=None)
                self._save()
            return found

    def take(self, server: str, order: wire.Order) -> bool:
        """Note an order; returns whether it is on the disk too. It holds at once either way."""
        with self._lock:
            self._standing[server] = _changed(self._found(server), order, self.clock.now())
            return self._save()

    def _found(self, server: str) -> Standing:
        held = None if self._lost is None else f"{LOST_WORDS}, {NAME}: {self._lost}"
        return self._standing.get(server, Standing(held=held))

    def _save(self) -> bool:
        return self.file.save(
            {"servers": {name: _plain(one) for name, one in self._standing.items()}, LOST: self._lost}
        )


def _changed(found: Standing, order: wire.Order, now: Now) -> Standing:
    match order:
        case wire.Pin():
            until = Until.after(order.for_s, now)
            return replace(found, pin=Pinned(mode=order.mode, reason=order.reason, who=order.who, until=until))
        case wire.Unpin():
            return replace(found, pin=None)
        case wire.Hold():
            return replace(found, held=order.reason, held_by=order.who)
        case wire.Resume():
            return replace(found, held=None, held_by=None, resumed=found.resumed + 1)
        case wire.SetConduct():
            return replace(found, conduct=order.conduct)
        case _:
            raise TypeError(f"{type(order).__name__} is no order")


def _plain(one: Standing) -> dict[str, object]:
    pin = one.pin
    return {
        "conduct": one.conduct.value if one.conduct else None,
        "held": one.held,
        "held_by": one.held_by,
        "resumed": one.resumed,
        "pin": None
        if pin is None
        else {
            "mode": str(pin.mode),
            "reason": pin.reason,
            "who": pin.who,
            "boot": pin.until.boot,
            "mono_s": pin.until.mono_s,
            "wall_s": pin.until.wall_s,
        },
    }


def _read(fields: Mapping[str, object]) -> Standing:
    said = fields.get("conduct")
    return Standing(
        conduct=next((each for each in AgentMode if each.value == said), None),
        held=reading.text(fields.get("held")),
        held_by=reading.text(fields.get("held_by")),
        resumed=reading.whole(fields.get("resumed")) or 0,
        pin=_read_pin(reading.mapping(fields.get("pin"))),
    )


def _read_pin(fields: Mapping[str, object]) -> Pinned | None:
    mono_s, wall_s = reading.number(fields.get("mono_s")), reading.number(fields.get("wall_s"))
    try:
        mode = modes.parse(str(fields.get("mode")))
    except ValueError:
        return None
    if mono_s is None or wall_s is None:
        return None
    until = Until(boot=str(fields.get("boot")), mono_s=mono_s, wall_s=wall_s)
    return Pinned(mode=mode, reason=str(fields.get("reason")), who=str(fields.get("who")), until=until)
