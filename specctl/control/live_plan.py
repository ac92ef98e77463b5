"""What a switch without a start would do to one server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.control.mode import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """The engine would be told `tell`, and by that go from `old` to `new`; a start runs `starts`, before and after.

    `said`: the knobs of `old` that must be named to come back to it; others are so by themselves.
    """

    host: str
    server: str
    old: Mode
    new: Mode
    starts: Mode
    tell: Mapping[str, object] = field(default_factory=dict)
    said: Mapping[str, int] = field(default_factory=dict)

    @property
    def nothing(self) -> bool:
        """Claim that there is nothing to do."""
        return not self.tell

    def as_wire(self) -> dict[str, object]:
        """Return its JSON object (docs/json.md)."""
        return {
            "host": self.host,
            "server": self.server,
            "old": str(self.old),
            "new": str(self.new),
            "starts": str(self.starts),
            "tell": dict(self.tell),
        }
