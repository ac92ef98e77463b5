"""The guard of a deploy as the host tells it, and how long it gives the operator; pure (docs/guard.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specctl.fleet.types import Limits
from specctl.rollout import reading
from specctl.rollout.story import clock

WATCHING = "watching"
WHO = "guard"
PAST_LOAD_FACTOR = 2.5
NO_GUARD = "no guard without systemd: an act that is cut off half way is not taken back"


def hard_limit_s(limits: Limits, past_loads_s: Sequence[float]) -> float:
    """Return after how long an act is taken back though its operator seems to be at work: longer than any act may take."""
    load_s = max(
        limits.guard_s, limits.load_s + limits.smoke_s, *(PAST_LOAD_FACTOR * load for load in past_loads_s[-1:])
    )
    return limits.drain_s + 2 * limits.stop_s + load_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A guard that is armed: `back` is what serves again unless the act of `who` is confirmed (None: the server is stopped)."""

    phase: str
    act: str | None = None
    who: str | None = None
    token: int | None = None
    aim: tuple[str, str] | None = None
    back: tuple[str, str] | None = None
    hard_left_s: float | None = None
    confirm_left_s: float | None = None
    reason: str | None = None

    @classmethod
    def from_wire(cls, value: object) -> Guard | None:
        """Build it from what the host answered; None where no guard is armed."""
        fields = reading.mapping(value)
        phase = reading.text(fields.get("phase"))
        if phase is None:
            return None
        return cls(
            phase=phase,
            act=reading.text(fields.get("act")),
            who=reading.text(fields.get("who")),
            token=reading.whole(fields.get("token")),
            aim=_pair(fields.get("aim")),
            back=_pair(fields.get("back")),
            hard_left_s=reading.number(fields.get("hard_left_s")),
            confirm_left_s=reading.number(fields.get("confirm_left_s")),
            reason=reading.text(fields.get("reason")),
        )

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object (docs/json.md)."""
        return {
            "phase": self.phase,
            "act": self.act,
            "who": self.who,
            "aim": list(self.aim) if self.aim else None,
            "back": list(self.back) if self.back else None,
            "left_s": self.left_s,
            "reason": self.reason,
        }

    @property
    def left_s(self) -> float | None:
        """Return after how long at the latest the guard acts; None once it does."""
        known = [left for left in (self.hard_left_s, self.confirm_left_s) if left is not None]
        return min(known) if known and self.phase == WATCHING else None

    def later(self, by_s: float) -> Guard:
        """Return the same guard when so much more of its time is over."""
        hard, confirm = self.hard_left_s, self.confirm_left_s
        return replace(
            self,
            hard_left_s=None if hard is None else max(0.0, hard - by_s),
            confirm_left_s=None if confirm is None else max(0.0, confirm - by_s),
        )

    def words(self) -> str:
        """Say in one clause what it will do, or does."""
        goal = f"back to release {self.back[0]}, {self.back[1]}" if self.back else "stops the server"
        if self.left_s is not None:
            return f"guard armed: {goal}, in {clock(self.left_s)} unless the {self.act} of {self.who} is confirmed"
        return f"the guard acts ({self.phase}): {goal}" + (f"; {self.reason}" if self.reason else "")


def _pair(value: object) -> tuple[str, str] | None:
    fields = reading.mapping(value)
    release, algo = reading.text(fields.get("id")), reading.text(fields.get("algo"))
    return (release, algo) if release is not None and algo is not None else None
