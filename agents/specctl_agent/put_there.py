"""What was put into a server last: by a start, by this agent since, or by a person who told the running engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specctl.control.mode import Mode
from specctl.control.mode import parse as parse_mode
from specctl.rollout import reading
from specctl.rollout.agent_moves import WHO
from specctl_agent.places import Place, Told


@dataclass(slots=True)
class PutThere:
    """The agent's own last live change, and which start runs now; a live change ends with the start that it was made to.

    `over`: the change on record when the agent made its own, which that one replaced.
    """

    invocation: str | None = None
    moved: Mode | None = None
    at: str | None = None
    over: str | None = None

    def mode(self, place: Place) -> Mode | None:
        """Return what was put there last; None while it is not known which start runs: the one that was told, or a new one."""
        told = self._on_record(place)
        if told is not None and self.invocation in (None, told.invocation):
            return None if self.invocation is None else told.mode
        if self.moved is not None and self.at == self._start(place):
            return self.moved
        if self.moved is not None and self.invocation is None and not str(self.at).endswith("/None"):
            return None
        return place.deployed

    def move(self, mode: Mode, place: Place) -> None:
        """Note the agent's own live change."""
        self.moved, self.at = mode, self._start(place)
        self.over = None if place.told is None else place.told.mark

    def _on_record(self, place: Place) -> Told | None:
        """Return the change on record, unless the agent knows of one of its own to this start that came after it.

        Its own are on record too, a moment after they were made; one that it does not remember, its record remembers for it.
        """
        told = place.told
        remembers = self.moved is not None and self.at == self._start(place)
        if told is None or (remembers and (told.who == WHO or told.mark == self.over)):
            return None
        return told

    def _start(self, place: Place) -> str:
        """Return what names the present start of what is deployed now."""
        return f"{place.release}/{place.algo}/{self.invocation}"

    def plain(self) -> Mapping[str, object] | None:
        """Return what must survive a restart of the agent, for JSON."""
        return None if self.moved is None else {"mode": str(self.moved), "at": self.at, "over": self.over}

    def take_up(self, fields: Mapping[str, object]) -> None:
        """Take up what an agent before knew; what cannot be meant is left out."""
        try:
            self.moved = parse_mode(str(fields["mode"])) if fields else None
            self.at, self.over = reading.text(fields.get("at")), reading.text(fields.get("over"))
        except ValueError:
            self.moved = None
