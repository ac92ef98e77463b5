"""What a sweep found: the best modes by concurrency, the crossovers with their doubt, and whether trees, or any drafts, pay at all.

Nothing is said of a concurrency outside of those that were measured, and a crossover is told as the stretch between two measured
ones: whatever may be best at its low end is worse for certain at its high end. That stretch is the interval, and no curve's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.crossovers import Answer, Crossover, Stretch, Verdict
from specctl.control.mode import Mode
from specctl.measure.sweep import Question, Segment
from specctl.measure.sweep_next import orders
from specctl.measure.sweep_order import Order, Standing, changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that a sweep says. `trees`, `drafts`: None where no such mode was measured, or nothing beside it to compare with."""

    orders: Mapping[int, Order]
    stretches: tuple[Stretch, ...]
    crossovers: tuple[Crossover, ...]
    trees: Verdict | None
    drafts: Verdict | None

    @property
    def open(self) -> tuple[int, ...]:
        """Return the concurrencies at which the best mode is not known."""
        return tuple(at for at, each in self.orders.items() if not decided(each))


def found(question: Question, segments: Sequence[Segment]) -> Found:
    """Return what the segments say."""
    known = orders(question, segments)
    return Found(
        orders=known,
        stretches=tuple(_stretches(known)),
        crossovers=tuple(_crossovers(known)),
        trees=_verdict(question, known, lambda mode: ALGOS[mode.algo].shape is Shape.TREE),
        drafts=_verdict(question, known, lambda mode: ALGOS[mode.algo].drafts),
    )


def decided(each: Order) -> bool:
    """Claim that the best modes at a concurrency are known."""
    return not each.open and each.noise is not None


def _stretches(known: Mapping[int, Order]) -> Iterator[Stretch]:
    rows = [(at, tuple(sorted(each.contenders)), decided(each)) for at, each in known.items()]
    for (modes, sure), group in itertools.groupby(rows, key=lambda row: row[1:]):
        levels = [at for at, _, _ in group]
        yield Stretch(low=levels[0], high=levels[-1], modes=modes, decided=sure)


def _crossovers(known: Mapping[int, Order]) -> Iterator[Crossover]:
    rows = list(known.values())
    for first, last in changes(rows):
        low, high = rows[first], rows[last]
        yield Crossover(
            before=low.contenders,
            after=high.contenders,
            low=low.concurrency,
            high=high.concurrency,
            at=crossing(rows[first : last + 1], low.best, high.best),
        )


def crossing(between: Sequence[Order], before: Mode, after: Mode) -> float | None:
    """Return the concurrency where the means of two modes cross, straight between measured ones on a scale of doubling."""
    both = [each for each in between if before in each.means and after in each.means]
    leads = [(each.concurrency, each.lead(after) - each.lead(before)) for each in both]
    for (low, ahead), (high, behind) in itertools.pairwise(leads):
        if ahead >= 0 > behind:
            return low * math.pow(high / low, ahead / (ahead - behind))
    return None


def _verdict(question: Question, known: Mapping[int, Order], kind: Callable[[Mode], bool]) -> Verdict | None:
    """Say whether modes of a kind pay: one of them is best for certain somewhere, or another is best or level everywhere."""
    if not known or not any(map(kind, question.modes)) or all(map(kind, question.modes)):
        return None
    wins = tuple(at for at, each in known.items() if all(map(kind, each.contenders)) and each.noise is not None)
    open_ones = tuple(at for at, each in known.items() if at not in wins and not _as_good(each, kind))
    answer = Answer.PAYS if wins else Answer.OPEN if open_ones else Answer.NEVER
    return Verdict(answer=answer, at=wins, open=open_ones)


def _as_good(each: Order, kind: Callable[[Mode], bool]) -> bool:
    """Claim that a mode of another kind is best, or level with the best, and that no mode of this kind may be better."""
    if each.noise is None:
        return False
    others = (Standing.BEST, Standing.LEVEL)
    served = any(not kind(mode) and standing in others for mode, standing in each.standings.items())
    return served and not any(kind(mode) and standing is Standing.OPEN for mode, standing in each.standings.items())
