"""The order of the modes at one concurrency: which is best, which are worse for certain, which serve alike, which nobody knows.

Logarithms of tokens a second are taken as mode + round + noise, so that what a whole round has in common (a drift of clocks, of
prompts) falls out of every difference. It is best-arm identification by successive elimination (Even-Dar, Mannor and Mansour 2006)
with Student's t for a noise that is not known: after n rounds in common, a difference is believed at level alpha / (n (n - 1)),
which sums to alpha over all n from 2 on, so that looking after every round costs nothing of what is promised; that level is shared
by the opponents of the best mode. A mode within an indifference zone of the best one is level with it (Bechhofer 1954).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import variance

from specctl.control.mode import Mode
from specctl.measure.intervals import t_quantile
from specctl.measure.sweep import Question, Segment, counted

FIT_STEPS, FIT_ENOUGH = 200, 1e-10
KEPT = 1024
"""So many orders, and quantiles, are kept: a sweep asks for the same ones after every segment."""


class Standing(enum.Enum):
    """How a mode stands at one concurrency."""

    BEST = "best"
    LEVEL = "level"
    WORSE = "worse"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """One measured point: tokens a second, its standard error (None: one segment alone), the segments behind it."""

    tokens_s: float
    error: float | None
    segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How the modes stand at one concurrency; `means` and `standings` have the modes that were measured there, the best first.

    `noise`: standard deviation of a segment beside its round's, as a ratio; None before two rounds.
    """

    concurrency: int
    means: Mapping[Mode, Mean]
    standings: Mapping[Mode, Standing]
    rounds: int
    noise: float | None = None

    @property
    def best(self) -> Mode:
        """Return the mode with the highest mean, be it certain or not."""
        return next(iter(self.means))

    @property
    def open(self) -> tuple[Mode, ...]:
        """Return the modes of which nobody knows whether they are worse than the best one."""
        return tuple(mode for mode, standing in self.standings.items() if standing is Standing.OPEN)

    @property
    def contenders(self) -> tuple[Mode, ...]:
        """Return the modes that are not worse for certain, the best first."""
        return tuple(mode for mode, standing in self.standings.items() if standing is not Standing.WORSE)

    def lead(self, mode: Mode) -> float:
        """Return how much the best one serves more than another, as a logarithm."""
        return math.log(self.means[self.best].tokens_s / self.means[mode].tokens_s)


def apart(one: Order, other: Order) -> bool:
    """Claim that the best mode differs for certain: none may be best at both concurrencies."""
    known = one.noise is not None and other.noise is not None
    return known and not set(one.contenders) & set(other.contenders)


def changes(known: Sequence[Order]) -> Iterator[tuple[int, int]]:
    """Yield the places of the nearest orders, rising, between which the best mode changes for certain; they meet at most."""
    begin = 0
    for high, one in enumerate(known):
        low = next((place for place in range(high - 1, begin - 1, -1) if apart(known[place], one)), None)
        if low is not None:
            yield low, high
            begin = high


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """The additive model of one concurrency: a level a mode, an effect a round, both as logarithms; `noise`: one segment's."""

    levels: Mapping[Mode, float]
    effects: Mapping[int, float]
    noise: float | None
    freedom: int


def order(question: Question, concurrency: int, segments: Sequence[Segment]) -> Order | None:
    """Return how the modes stand at a concurrency; None where nothing was measured there."""
    own = tuple(each for each in counted(segments) if each.place.concurrency == concurrency)
    return _order(question, concurrency, own) if own else None


@lru_cache(maxsize=KEPT)
def _order(question: Question, concurrency: int, own: tuple[Segment, ...]) -> Order:
    logs = {(each.place.mode, each.round): math.log(each.tokens_s) for each in own}
    fit = _fitted(logs)
    ranked = sorted(fit.levels, key=lambda mode: -fit.levels[mode])
    common = {mode: _common(logs, ranked[0], mode) for mode in ranked}
    standings = {mode: _standing(question, fit, ranked, mode, common[mode]) for mode in ranked}
    return Order(
        concurrency=concurrency,
        means={mode: _mean(fit, logs, mode) for mode in ranked},
        standings=standings,
        rounds=max(len([1 for mode, _ in logs if mode == each]) for each in ranked),
        noise=fit.noise,
    )


def _fitted(logs: Mapping[tuple[Mode, int], float]) -> _Fit:
    """Fit levels and effects by least squares, one after the other until they stay."""
    by_mode: dict[Mode, list[tuple[int, float]]] = {}
    by_round: dict[int, list[tuple[Mode, float]]] = {}
    for (mode, number), value in logs.items():
        by_mode.setdefault(mode, []).append((number, value))
        by_round.setdefault(number, []).append((mode, value))
    levels, effects = dict.fromkeys(by_mode, 0.0), dict.fromkeys(by_round, 0.0)
    for _ in range(FIT_STEPS):
        before = dict(levels)
        for mode, rows in by_mode.items():
            levels[mode] = sum(value - effects[number] for number, value in rows) / len(rows)
        for number, pairs in by_round.items():
            effects[number] = sum(value - levels[mode] for mode, value in pairs) / len(pairs)
        if max(abs(levels[mode] - before[mode]) for mode in levels) < FIT_ENOUGH:
            break
    shift = sum(effects.values()) / len(effects)
    freedom = len(logs) - len(levels) - len(effects) + 1
    rest = sum((value - levels[mode] - effects[number]) ** 2 for (mode, number), value in logs.items())
    return _Fit(
        levels={mode: level + shift for mode, level in levels.items()},
        effects={number: effect - shift for number, effect in effects.items()},
        noise=math.sqrt(rest / freedom) if freedom > 0 else None,
        freedom=freedom,
    )


def _common(logs: Mapping[tuple[Mode, int], float], one: Mode, other: Mode) -> int:
    return len([1 for mode, number in logs if mode == one and (other, number) in logs])


def _mean(fit: _Fit, logs: Mapping[tuple[Mode, int], float], mode: Mode) -> Mean:
    """Return a mode's mean; its error has the noise of its segments and what rounds differ by."""
    count = len([1 for one, _ in logs if one == mode])
    tokens_s = math.exp(fit.levels[mode])
    if fit.noise is None:
        return Mean(tokens_s=tokens_s, error=None, segments=count)
    between = variance(fit.effects.values()) if len(fit.effects) > 1 else 0.0
    return Mean(tokens_s=tokens_s, error=tokens_s * math.sqrt((fit.noise**2 + between) / count), segments=count)


def _standing(question: Question, fit: _Fit, ranked: Sequence[Mode], mode: Mode, common: int) -> Standing:
    if mode == ranked[0]:
        return Standing.BEST
    reach = doubt(question, fit.noise, fit.freedom, opponents=len(question.modes) - 1, common=common)
    if reach is None:
        return Standing.OPEN
    lead = fit.levels[ranked[0]] - fit.levels[mode]
    if lead > reach:
        return Standing.WORSE
    return Standing.LEVEL if lead + reach < math.log1p(question.level_ratio) else Standing.OPEN


def doubt(question: Question, noise: float | None, freedom: int, *, opponents: int, common: int) -> float | None:
    """Return how far a difference of two modes (a logarithm) may be off after so many rounds in common; None: no telling."""
    if noise is None or common < 2 or freedom < 1:
        return None
    return _quantile(question.alpha / opponents / (common * (common - 1)), freedom) * noise * math.sqrt(2 / common)


@lru_cache(maxsize=KEPT)
def _quantile(level: float, freedom: int) -> float:
    return t_quantile(1 - level, freedom)
