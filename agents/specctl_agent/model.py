"""The throughput model of one server: its own measurements, its calibration file, and published figures, in this order."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from specctl.control import calibration, profile
from specctl.control.calibration import Calibration, CalibrationError
from specctl.control.calibration_facts import differences
from specctl.control.mode import Mode
from specctl.control.policy_types import Now
from specctl.control.prior import Key, prior
from specctl.control.rates import Estimate, Rates
from specctl.control.rates_blend import blend
from specctl.rollout import server_note
from specctl_agent import here
from specctl_agent.here import UNSEEN, Graphics
from specctl_agent.places import Place
from specctl_agent.storing import Complaints
from specctl_agent.watch import Watch

FILE_BYTES = 1 << 20
MOST_KEPT = 4096
# agent.model_class in the inventory: how the target is built, and its parameters in billions, all of them.
MODEL_CLASS = re.compile(r"(dense|moe)-([0-9]{1,5}(?:\.[0-9]{1,3})?)b", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Kept:
    """Rates whose answers are kept: the policy asks for the same ones at every turn."""

    rates: Rates
    _answers: dict[tuple[Mode, float], Estimate | None] = field(default_factory=dict)

    @property
    def modes(self) -> Sequence[Mode]:
        """Return the modes that something is known of."""
        return self.rates.modes

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the answer, worked out once."""
        key = (mode, concurrency)
        if key not in self._answers:
            if len(self._answers) >= MOST_KEPT:
                self._answers.clear()
            self._answers[key] = self.rates.tokens_s(mode, concurrency)
        return self._answers[key]


def fitting(mode: Mode, entries: Sequence[Mode]) -> Mode | None:
    """Return the entry of the same algo with most knobs, all of them among the mode's."""
    own = set(mode.knobs)
    found = [entry for entry in entries if entry.algo == mode.algo and set(entry.knobs) <= own]
    return max(found, key=lambda entry: len(entry.knobs), default=None)


@dataclass(slots=True)
class Models:
    """The models of all servers; a calibration is read again when its file has changed."""

    complaints: Complaints
    _files: dict[str, tuple[object, Calibration, Rates]] = field(default_factory=dict)

    def rates(self, place: Place, watch: Watch, now: Now, graphics: Graphics = UNSEEN) -> Rates:
        """Return what is known of the modes' speed now; where nothing is, it says so of each."""
        return Kept(
            blend(
                profile.observations(watch.profile, now.wall_s),
                self._calibration(place, watch, graphics),
                published(place, watch),
                watch.mode,
            )
        )

    def _calibration(self, place: Place, watch: Watch, graphics: Graphics) -> Rates | None:
        """Return the calibration's rates; None, and a complaint, where it cannot be used or was measured on something else."""
        subject = f"calibration of {place.name}"
        try:
            found = self._read(place)
        except FileNotFoundError:
            self.complaints.over(subject)
            return None
        except (OSError, ValueError, RecursionError) as error:
            reason = error.problems[0] if isinstance(error, CalibrationError) else str(error)
            self.complaints.trouble(subject, f"cannot be used: {reason}")
            return None
        read, made = found
        strange = differences(read.holds_for, here.facts(place, watch, graphics))
        if strange:
            self.complaints.trouble(subject, f"does not hold here: {strange[0]}")
            return None
        self.complaints.over(subject)
        return made

    def _read(self, place: Place) -> tuple[Calibration, Rates]:
        """Read the file, unless it is the one that was read last."""
        path = place.agent_folder / server_note.CALIBRATION
        found = path.stat()
        stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
        known = self._files.get(place.name)
        if known is None or known[0] != stamp:
            with path.open("rb") as file:
                read = calibration.parse(json.loads(file.read(FILE_BYTES)))
            known = self._files[place.name] = (stamp, read, Fitted(read.table))
        return known[1], known[2]


def published(place: Place, watch: Watch) -> Rates | None:
    """Return the published figures for a server, where its inventory names GPU and class of model; None where there are none."""
    server, hardware = place.note.server, place.note.host.hardware
    found = MODEL_CLASS.fullmatch(server.agent.model_class or "")
    if found is None or hardware is None or hardware.gpu_model is None:
        return None
    usual = server.agent.context_tokens
    return prior(
        Key(
            gpu=hardware.gpu_model,
            moe=found[1].lower() == "moe",
            parameters_b=float(found[2]),
            tensor_parallel=server.tp or 1,
            context_tokens=watch.figures.context_tokens or (sum(usual) / 2 if usual is not None else None),
        )
    )
