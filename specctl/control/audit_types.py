"""What the metric audit is given and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.mode import Mode
from specctl.control.sample.engine import EngineCounters, EngineLines, EngineSample
from specctl.control.window import Figures, Window, figures

SETTLED_STEPS = 160.0
"""Four log intervals of 40 steps: the last lines and gauges are of steps since then."""
SETTLED_S = 30.0
"""Three looks at the log, and three pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A contradiction. `blocks`: it touches figures from which decisions are taken; else it is worth knowing and no more."""

    id: str
    title: str
    reason: str
    blocks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A check that could not be made, and what it lacked."""

    reason: str


Verdict = Finding | Unknown | None
"""None: checked, and all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInput:
    """What one audit looks at.

    `mode`: what the engine is thought to run. `window`: the last minutes. `lines`: what its log said; `has_tree_line`: whether its
    profile knows the line that a tree prints. `counts_root`, `counts_bonus`: how it counts (profile). `same_start`: whether the
    unit was started once only over the window; None where nobody knows. Made from these: `steady`, the figures of the newest
    samples that all ran this mode, None where there are none; `settled`, the same where they are enough that lines and gauges,
    which lag by a log interval, are of this mode too.
    """

    mode: Mode | None
    window: Window = field(default_factory=Window)
    counters: EngineCounters | None = None
    lines: EngineLines | None = None
    has_tree_line: bool = False
    counts_root: bool | None = None
    counts_bonus: bool | None = None
    same_start: bool | None = None

    steady: Figures | None = field(init=False)
    settled: Figures | None = field(init=False)

    def __post_init__(self) -> None:
        steady = _steady(self.window, self.mode)
        sums = None if steady is None else steady.decoded
        enough = steady is not None and steady.span_s >= SETTLED_S and sums is not None and sums.steps >= SETTLED_STEPS
        object.__setattr__(self, "steady", steady)
        object.__setattr__(self, "settled", steady if enough else None)

    @property
    def max_drafts(self) -> int | None:
        """Return the most drafts that a step of the mode can accept; None where the mode or a knob of it is unknown."""
        return None if self.mode is None else ALGOS[self.mode.algo].max_drafts(dict(self.mode.knobs))

    @property
    def checked(self) -> int | None:
        """Return how many tokens a step verifies, anchor or root included; None where it is unknown."""
        return None if self.mode is None else ALGOS[self.mode.algo].checked(dict(self.mode.knobs))


def straight(mode: Mode) -> bool:
    """Claim that no step of a mode has branches: a chain, or a tree of one alternative a depth, which is one."""
    return ALGOS[mode.algo].shape is Shape.CHAIN or dict(mode.knobs).get("topk_cap") == 1


def _steady(window: Window, mode: Mode | None) -> Figures | None:
    kept: list[EngineSample] = []
    for sample in reversed(window.samples):
        if sample.mode != mode or sample.restarted:
            break
        kept.append(sample)
    if mode is None or not kept:
        return None
    return figures(Window(horizon_s=window.horizon_s, samples=tuple(reversed(kept))))
