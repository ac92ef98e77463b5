"""What an A/B experiment says: each figure's difference at each concurrency, and a plain verdict on the primary one; pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from specctl.measure import ab_fit as fits
from specctl.measure.ab_fit import Difference, Fit
from specctl.measure.ab_types import PRIMARY, QUANTITIES, Quantity, Segment, quantity

SIGNIFICANT = 0.05
# Two greedy chains that are the same have the same accept length to this part; below it nothing is said of a difference.
SAME = 1e-6

# Above this part a number of percent says nothing more.
MOST = 10.0


class Call(enum.Enum):
    """What can be said: a difference, none that matters, or nothing yet."""

    DIFFERENT = "different"
    SAME = "no difference"
    OPEN = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One quantity of two arms at one concurrency.

    `base_value`, `other_value`: each arm's level in the middle of the experiment (a geometric mean with the drift taken out).
    `p_family`: the difference's p, allowing for how many primary comparisons there are (Holm); None of a secondary one.
    """

    concurrency: int
    base: int
    other: int
    key: str
    base_value: float
    other_value: float
    difference: Difference
    p_family: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is said of the primary quantity of two arms at one concurrency. `cycles`: how many in all would show what is wanted."""

    concurrency: int
    base: int
    other: int
    call: Call
    text: str
    cycles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """All that an experiment says in figures; `family`: how many primary comparisons there were."""

    compared: tuple[Compared, ...]
    verdicts: tuple[Verdict, ...]
    family: int

    def of(self, concurrency: int, base: int, other: int) -> tuple[Compared, ...]:
        """Return the comparisons of two arms at a concurrency."""
        return tuple(c for c in self.compared if (c.concurrency, c.base, c.other) == (concurrency, base, other))


def analyse(
    segments: Sequence[Segment],
    pairs: Sequence[tuple[int, int]],
    concurrencies: Sequence[int],
    *,
    cycles: int,
    wanted: float,
) -> Analysis:
    """Compare every quantity of every pair of arms at every concurrency, and judge the primary one."""
    found: list[Compared] = []
    verdicts: list[Verdict] = []
    primary: list[tuple[Compared, Fit]] = []
    for concurrency in concurrencies:
        for base, other in pairs:
            rows = list(_compared(segments, concurrency, base, other))
            found += [row for row, _ in rows]
            first = next(((row, fit) for row, fit in rows if row.key == PRIMARY), None)
            if first is None:
                verdicts.append(_nothing(concurrency, base, other))
            else:
                primary.append(first)
    adjusted = fits.holm([row.difference.p for row, _ in primary])
    judged = {id(row): replace(row, p_family=p) for (row, _), p in zip(primary, adjusted, strict=True)}
    for row, fit in primary:
        verdicts.append(judge(judged[id(row)], fit, cycles=cycles, wanted=wanted, family=len(primary)))
    return Analysis(
        compared=tuple(judged.get(id(row), row) for row in found), verdicts=tuple(verdicts), family=len(primary)
    )


def _compared(segments: Sequence[Segment], concurrency: int, base: int, other: int) -> Iterator[tuple[Compared, Fit]]:
    arms = [segment.arm for segment in segments]
    for each in QUANTITIES:
        fit = fits.fit(arms, [segment.value(concurrency, each.key) for segment in segments])
        if fit is None:
            continue
        yield (
            Compared(
                concurrency=concurrency,
                base=base,
                other=other,
                key=each.key,
                base_value=math.exp(fit.levels[base]),
                other_value=math.exp(fit.levels[other]),
                difference=fits.difference(fit, base, other),
            ),
            fit,
        )


def _nothing(concurrency: int, base: int, other: int) -> Verdict:
    text = "cannot tell: too few segments have a figure"
    return Verdict(concurrency=concurrency, base=base, other=other, call=Call.OPEN, text=text)


def judge(row: Compared, fit: Fit, *, cycles: int, wanted: float, family: int, names: str = "ABC") -> Verdict:
    """Say in a sentence what a primary comparison shows."""
    found, p = row.difference, row.p_family if row.p_family is not None else row.difference.p
    call, text, more = Call.OPEN, "", None
    if p < SIGNIFICANT and abs(found.ratio) > SAME:
        call, text = Call.DIFFERENT, f"{names[row.other]} is {worded(quantity(row.key), found)}"
    elif found.seen <= wanted:
        call, text = Call.SAME, f"no difference; {seen(found.seen)} would have been seen"
    else:
        more = fits.cycles_for(fit, row.base, row.other, cycles=cycles, wanted=wanted)
        text = f"cannot tell: the spread is too large; {_remedy(more, cycles, wanted)}"
        if found.p < SIGNIFICANT:
            text += f"; alone it would count as a difference, but of {family} comparisons one in 20 looks so by chance"
    return Verdict(concurrency=row.concurrency, base=row.base, other=row.other, call=call, text=text, cycles=more)


def _remedy(needed: int | None, cycles: int, wanted: float) -> str:
    if needed is None:
        return f"not even {fits.MOST_CYCLES} cycles would show {percent(wanted)}"
    more = max(needed - cycles, 1)
    return f"{more} more cycle{'s' if more != 1 else ''} would show {percent(wanted)}"


def worded(each: Quantity, found: Difference) -> str:
    """Say a difference with its interval: 12 % (9 … 15) faster."""
    way = each.more if found.ratio > 0 else each.less
    bounds = sorted([found.low, found.high]) if found.ratio > 0 else sorted([-found.low, -found.high])
    digits = 0 if abs(found.ratio) >= 0.1 and bounds[1] - bounds[0] >= 0.02 else 1
    low, high = (f"{number(bound, digits)}" for bound in bounds)
    return f"{percent(abs(found.ratio), digits)} ({low} … {high}) {way}"


def seen(ratio: float) -> str:
    """Say which differences would have been seen."""
    return f"anything over {percent(ratio)}" if ratio > SAME else "any"


def percent(ratio: float, digits: int = 1) -> str:
    """Write a part as percent."""
    return f"{number(ratio, digits)} %"


def number(ratio: float, digits: int = 1) -> str:
    """Write a part as a number of percent, with the true minus sign and no negative zero; beyond ten times it is only said so."""
    if ratio >= MOST:
        return f">{100 * MOST:.0f}"
    text = f"{100 * ratio:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")
