"""Machines that are made up, with a truth that can be worked out: modes over packed tokens, noise, a common drift."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.measure.sweep import Place, Question, Segment
from specctl.measure.sweep_run import sweep

NONE = modes.mode("none")
CHAIN = modes.mode("dflash", {"block_size": 8})
TREES = tuple(modes.mode("ddtree", {"tree_budget": budget}) for budget in (8, 16, 32, 64))
MODES = (NONE, CHAIN, *TREES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Tokens a second: c·tau / (fixed + a packed token's time beyond a knee), over the tokens of one step."""

    fixed_s: float
    packed_s: float
    knee: float
    accept: Mapping[Mode, float]

    def rate(self, mode: Mode, concurrency: float) -> float:
        """Return the true rate."""
        packed = mode.packed_tokens(concurrency) or 0.0
        return concurrency * self.accept[mode] / (self.fixed_s + self.packed_s * max(0.0, packed - self.knee))

    def best(self, modes_: Sequence[Mode], concurrency: float) -> Mode:
        """Return the best mode."""
        return max(modes_, key=lambda mode: self.rate(mode, concurrency))

    def ahead(self, modes_: Sequence[Mode], concurrency: float) -> float:
        """Return by which ratio the best mode leads the next one."""
        first, second = sorted((self.rate(mode, concurrency) for mode in modes_), reverse=True)[:2]
        return first / second - 1


def truth(chance: Random) -> Truth:
    """Return a machine by chance: a knee somewhere from one request to beyond all, drafters from poor to good."""
    chain = chance.uniform(1.3, 5.0)
    gain = chance.uniform(1.0, 1.5)
    accept = {NONE: 1.0, CHAIN: chain}
    for tree in TREES:
        budget = dict(tree.knobs)["tree_budget"]
        accept[tree] = 1 + (chain - 1) * (1 + (gain - 1) * math.log2(budget / 4) / 4)
    return Truth(
        fixed_s=0.02, packed_s=chance.uniform(1e-5, 4e-4), knee=chance.choice([0, 8, 64, 256, 1024]), accept=accept
    )


@dataclass(slots=True, kw_only=True)
class Machine:
    """Measures a truth with noise of each segment and a drift of all; its clock moves only by measuring."""

    truth: Truth
    chance: Random
    noise: float = 0.02
    drift: float = 0.0
    jitter: float = 0.0
    segment_s: float = 5.0
    switch_s: float = 0.0
    now_s: float = 0.0
    served: list[Place] = field(default_factory=list)
    _wander: float = 0.0

    def measure(self, place: Place, number: int) -> Segment:
        """Return a segment, with the time that it took."""
        changes = not self.served or self.served[-1].mode != place.mode
        took = self.segment_s * self.chance.uniform(1, 1 + self.jitter) + (self.switch_s if changes else 0.0)
        self.now_s += took
        self._wander += self.chance.gauss(0, self.drift / 10)
        shift = self._wander - self.drift * self.now_s / 3600
        rate = self.truth.rate(place.mode, place.concurrency) * math.exp(self.chance.gauss(0, self.noise) + shift)
        self.served.append(place)
        return Segment(place=place, round=number, tokens_s=rate, took_s=took)

    def swept(self, question: Question, limit_s: float, before: Sequence[Segment] = ()) -> list[Segment]:
        """Sweep within a limit from now on."""
        end_s = self.now_s + limit_s
        return [*before, *sweep(question, before, self.measure, lambda: end_s - self.now_s)]
