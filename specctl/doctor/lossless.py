"""Judge whether an engine's tokens are its target's, and name what is broken from where the wrong ones stand. Pure.

The reasoning, for a cache that holds a right prefix: a root is wrong only if the target itself is. A draft whose earlier nodes are
all ancestors looks the same under any mask, and is wrong if positions are. A node with other nodes before it is wrong too if it
sees them. What is wrong only after a path that had to be moved was not moved. Each step needs the ones before it to be sound, and
enough picks that a fault would have shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from specctl.doctor.lossless_types import Answer, Baseline, Break, Cell, History, Lossless, Pick, Place, Probe

NEAR_TIE_NATS = 0.25
"""Leads below this are near-ties on engines that tell leads: two steps of bfloat16 for logits of 16 to 32."""
DRIFTS = 4.0
"""A verify pass is another kernel than a prefill: it may move a lead by several times what repeating the prefill does."""
UNLIKELY = 1e-3
"""What chance does this seldom is not chance, both ways: more wrong than noise explains, and none where a fault would show."""
SPREADS = 2.0
"""Standard errors of the interval from which a fault's rate is taken."""
CLEAN = (History.FRESH, History.STRAIGHT)


def tolerance(baseline: Baseline) -> float:
    """Return the lead (nats) up to which another token is a near-tie."""
    return max(NEAR_TIE_NATS, DRIFTS * (baseline.drift or 0.0), 2 * (baseline.widest_gap or 0.0))


def judge(probe: Probe) -> Lossless:
    """Hold every pick against the target's answer and name the break."""
    limit = tolerance(probe.baseline)
    counted: dict[tuple[Place, History], list[int]] = {}
    first: tuple[Pick, int] | None = None
    for pick in probe.picks:
        answer = probe.answers.get(pick.context)
        if answer is None:
            continue
        cell = counted.setdefault((pick.place, pick.history), [0, 0, 0])
        wrong, tie = _held(pick, answer, limit)
        for at, amount in enumerate((1, wrong, tie)):
            cell[at] += amount
        if wrong and first is None:
            first = (pick, answer.token)
    cells = tuple(
        Cell(place=place, history=history, checked=counts[0], wrong=counts[1], ties=counts[2])
        for place in Place
        for history in History
        if (counts := counted.get((place, history))) is not None
    )
    named, candidates, why = _name(_Table(cells, probe.noise), probe)
    return Lossless(
        checked=sum(cell.checked for cell in cells),
        wrong=sum(cell.wrong for cell in cells),
        ties=sum(cell.ties for cell in cells),
        cells=cells,
        named=named,
        candidates=candidates,
        first=None if first is None else first[0],
        wanted=None if first is None else first[1],
        why=why,
    )


def _held(pick: Pick, answer: Answer, limit: float) -> tuple[bool, bool]:
    """Tell whether a pick is wrong, and whether it is a near-tie instead."""
    differs = answer.token != pick.said
    tie = differs and answer.gap is not None and answer.gap <= limit
    return differs and not tie, tie


class _Sum:
    """Some cells added up, as the reasoning asks for them; `words` say which."""

    def __init__(self, cells: Iterable[Cell], noise: float, words: str) -> None:
        kept = tuple(cells)
        self.checked = sum(cell.checked for cell in kept)
        self.wrong = sum(cell.wrong for cell in kept)
        self._noise, self._words = noise, words

    @property
    def bad(self) -> bool:
        """Tell whether more is wrong than noise explains."""
        if not self._noise:
            return self.wrong > 0
        return self.wrong > 0 and 1 - _at_most(self.wrong - 1, self.checked, self._noise) < UNLIKELY

    @property
    def rate(self) -> float:
        """Return the least share of wrong ones that these figures allow: the lower end of Wilson's interval."""
        if not self.checked:
            return 0.0
        share, width = self.wrong / self.checked, SPREADS**2 / self.checked
        middle = share + width / 2
        return max(
            0.0,
            (middle - SPREADS * math.sqrt(share * (1 - share) / self.checked + (SPREADS / self.checked) ** 2 / 4))
            / (1 + width),
        )

    def rules_out(self, rate: float) -> bool:
        """Tell whether a fault that strikes at this rate would have shown here, and did not."""
        return not self.bad and _at_most(self.wrong, self.checked, max(rate, self._noise)) < UNLIKELY

    def __str__(self) -> str:
        """Return the figures in words."""
        return f"{self.wrong} of {self.checked} are wrong {self._words}"


class _Table:
    """The cells by place and history."""

    def __init__(self, cells: tuple[Cell, ...], noise: float) -> None:
        self._cells, self._noise = cells, noise
        self.blind = any(cell.place is Place.DRAFTED for cell in cells)
        self.every = self._of(tuple(Place), tuple(History), "in all")
        self.roots = self._of((Place.ROOT,), (History.FRESH,), "at roots, before any accepted draft")
        self.later_roots = self._of((Place.ROOT,), (History.STRAIGHT,), "at roots, after straight paths")
        self.chain = self._of((Place.CHAIN,), CLEAN, "at drafts with nothing but ancestors before them")
        self.branch = self._of((Place.BRANCH,), CLEAN, "at drafts with other nodes before them")
        self.moved = self._of(tuple(Place), (History.MOVED,), "after a path that had to be moved")
        self.drafted = self._of((Place.DRAFTED,), (History.FRESH,), "at the first accepted drafts")
        self.after = self._of(tuple(Place), (History.AFTER,), "after accepted drafts")

    @property
    def bad(self) -> bool:
        """Tell whether anything is wrong beyond noise, in all or in one part."""
        parts = (self.roots, self.later_roots, self.chain, self.branch, self.moved, self.drafted, self.after)
        return self.every.bad or any(each.bad for each in parts)

    def _of(self, places: tuple[Place, ...], histories: tuple[History, ...], words: str) -> _Sum:
        kept = (cell for cell in self._cells if cell.place in places and cell.history in histories)
        return _Sum(kept, self._noise, words)


Named = tuple[Break | None, tuple[Break, ...], str]


def _name(table: _Table, probe: Probe) -> Named:
    """Name the break by the first step of the reasoning that does not hold."""
    if not table.bad:
        return None, (), ""
    leads = any(answer.gap is not None for answer in probe.answers.values())
    if probe.baseline.changed and not leads and not probe.noise:
        return None, tuple(Break), "the same prefill asked twice did not answer the same, and the engine tells no leads"
    if table.roots.bad:
        return Break.TARGET, (), str(table.roots)
    if not table.roots.checked:
        return None, tuple(Break), "no step was seen before which nothing had been drafted"
    if probe.positions_right is False:
        return Break.POSITION, (), f"{table.every}, and the trace has wrong positions"
    if table.blind:
        return _without_nodes(table)
    if table.chain.bad:
        return Break.POSITION, (), f"{table.chain}; {table.roots}"
    if table.branch.bad:
        return _mask(table, probe)
    return _moved(table)


def _mask(table: _Table, probe: Probe) -> Named:
    """Tell a wrong mask from wrong positions where only nodes with others before them are wrong."""
    if not table.chain.rules_out(table.branch.rate):
        return None, (Break.MASK, Break.POSITION), f"{table.branch}; {table.chain}, too few to rule wrong positions out"
    if probe.positions_right is None:
        told = f"{table.branch}; {table.chain}; a node's position may be its index, and the trace tells no positions"
        return None, (Break.MASK, Break.POSITION), told
    return Break.MASK, (), f"{table.branch}; {table.chain}; positions are right by the trace"


def _moved(table: _Table) -> Named:
    """Name what is wrong only after a path that had to be moved."""
    if table.later_roots.bad or not table.moved.bad:
        return None, (Break.POSITION, Break.KV), str(table.later_roots)
    if not (table.chain.rules_out(table.moved.rate) and table.branch.rules_out(table.moved.rate)):
        few = f"{table.moved}; {table.chain}; {table.branch}, too few to rule mask and positions out"
        return None, (Break.MASK, Break.POSITION, Break.KV), few
    return Break.KV, (), f"{table.moved}; {table.chain}; {table.branch}"


def _without_nodes(table: _Table) -> Named:
    """Say what is left open where one does not know which nodes the accepted drafts were."""
    if table.drafted.bad:
        told = f"{table.drafted}; {table.roots}; a verify trace would tell which nodes they were"
        return None, (Break.MASK, Break.POSITION), told
    told = f"{table.after}; {table.drafted}; a verify trace would tell which paths had to be moved"
    return None, (Break.KV, Break.MASK, Break.POSITION), told


def _at_most(successes: int, trials: int, rate: float) -> float:
    """Return the probability of at most so many successes: the binomial distribution's sum."""
    if rate <= 0 or successes >= trials:
        return 1.0
    if rate >= 1:
        return 0.0
    whole, hit, miss = math.lgamma(trials + 1), math.log(rate), math.log1p(-rate)
    return math.fsum(
        math.exp(
            whole - math.lgamma(count + 1) - math.lgamma(trials - count + 1) + count * hit + (trials - count) * miss
        )
        for count in range(successes + 1)
    )
