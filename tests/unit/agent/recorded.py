"""Small stand-ins for tests of the agent: a log that is a list, and a clock that a test moves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from specctl.control.policy_types import Now


@dataclass(slots=True)
class Said:
    """A log that remembers events: (level, event, fields)."""

    events: list[tuple[int, str, dict[str, object]]] = field(default_factory=list)

    def __call__(self, level: int, event: str, **fields: object) -> None:
        """Remember an event."""
        self.events.append((level, event, fields))

    def of(self, event: str) -> list[dict[str, object]]:
        """Return the fields of the events of one name."""
        return [fields for _, name, fields in self.events if name == event]


@dataclass(slots=True)
class HandClock:
    """A clock that stands still until it is moved; wall and monotonic time move apart where a test wants it."""

    at: Now = field(default_factory=lambda: Now(mono_s=1000.0, wall_s=1_795_994_000.0, boot="b1"))

    def now(self) -> Now:
        """Return this instant."""
        return self.at

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.at = replace(self.at, mono_s=self.at.mono_s + seconds, wall_s=self.at.wall_s + seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock, as somebody or NTP does."""
        self.at = replace(self.at, wall_s=self.at.wall_s + seconds)

    def reboot(self, down_s: float) -> None:
        """Boot again after so many seconds: the monotonic clock begins anew."""
        self.at = Now(mono_s=5.0, wall_s=self.at.wall_s + down_s, boot=f"{self.at.boot}+")
