"""The throughput model of one server, from what lies on the host: its calibration file, matched to the modes that it can be in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from specctl.control import calibration
from specctl.control.calibration import CalibrationError
from specctl.control.mode import Mode
from specctl.control.rates import Estimate, Rates
from specctl.rollout import server_note
from specctl_agent.places import Place
from specctl_agent.storing import Complaints

FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Fitted:
    """Rates by the names that a file uses, asked by the fuller names that an engine uses.

    A file may say `ddtree:tree_budget=16` of what runs as `ddtree:block_size=8,topk_cap=8,tree_budget=16`: the entry with most
    knobs fits whose knobs are all among the mode's.
    """

    rates: Rates
    _known: dict[Mode, Mode | None] = field(default_factory=dict)

    @property
    def modes(self) -> Sequence[Mode]:
        """Return the modes of the file."""
        return self.rates.modes

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return what is known of the entry that fits; None where none does."""
        if mode not in self._known:
            self._known[mode] = fitting(mode, self.rates.modes)
        entry = self._known[mode]
        return None if entry is None else self.rates.tokens_s(entry, concurrency)


def fitting(mode: Mode, entries: Sequence[Mode]) -> Mode | None:
    """Return the entry of the same algo with most knobs, all of them among the mode's."""
    own = set(mode.knobs)
    found = [entry for entry in entries if entry.algo == mode.algo and set(entry.knobs) <= own]
    return max(found, key=lambda entry: len(entry.knobs), default=None)


@dataclass(slots=True)
class Models:
    """The models of all servers; a calibration is read again when its file has changed."""

    complaints: Complaints
    _files: dict[str, tuple[object, Rates | None]] = field(default_factory=dict)

    def rates(self, place: Place) -> Rates | None:
        """Return what is known of the modes' speed; None where nothing is."""
        path = place.agent_folder / server_note.CALIBRATION
        subject = f"calibration of {place.name}"
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            known = self._files.get(place.name)
            if known is not None and known[0] == stamp:
                return known[1]
            with path.open("rb") as file:
                plain = json.loads(file.read(FILE_BYTES))
            made: Rates | None = Fitted(calibration.parse(plain).table)
        except FileNotFoundError:
            self.complaints.over(subject)
            return None
        except (OSError, ValueError, RecursionError) as error:
            reason = error.problems[0] if isinstance(error, CalibrationError) else str(error)
            self.complaints.trouble(subject, f"cannot be used: {reason}")
            return None
        self.complaints.over(subject)
        self._files[place.name] = (stamp, made)
        return made
