"""How fast each mode was measured to decode at each batch size: decayed means with their spread, for the throughput model.

Pure. The axis is the batch (requests in a decode step), not running + waiting: what waits costs the engine nothing. Rates are over
seconds of decoding, so that prefill and idle time, which no mode changes, are not in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specctl.control.mode import Mode
from specctl.control.profile_bins import bin_of
from specctl.control.sample.engine import Counted, DecodeSums, EngineSample

HALF_LIFE_S = 7 * 86400.0
"""Measurements count half after a week: models, drivers and tasks change on that scale; no source, a choice."""
MOST_HALVINGS = 4.0
"""No single step of the clock takes away more than this, for wall clocks jump."""
CONTEXT_TOPS = (2048, 8192, 32768)
MAX_CELLS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What was measured of one mode about one batch size: the throughput model's input.

    `concurrency`: mean batch. `tokens_s`: tokens a second of decoding, of all requests together. `accept_length`: tokens committed
    a verify step, None where unknown. `weight`: seconds of decoding behind it, decayed. `variance`: of `tokens_s` between samples
    (tokens²/s²), None for a single one. `age_s`: since the last sample of it. `context_tokens`: mean context of a request, None
    where unknown.
    """

    mode: Mode
    concurrency: float
    tokens_s: float
    accept_length: float | None
    weight: float
    variance: float | None
    age_s: float
    context_tokens: float | None = None

    @property
    def request_tokens_s(self) -> float:
        """Return tokens a second of one request."""
        return self.tokens_s / self.concurrency


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Decayed sums of one mode, bin of batch sizes and band of context lengths; `at_s` is Unix time of the last sample.

    `spread`: Σ weight × (rate − mean)² (West's update). `tokens` and `requests` are for the accept length, 0 where unknown.
    """

    mode: Mode
    place: int
    band: int | None
    at_s: float
    weight_s: float
    samples: float
    batch: float
    tokens_s: float
    spread: float = 0.0
    tokens: float = 0.0
    requests: float = 0.0
    context_tokens: float | None = None

    @property
    def key(self) -> tuple[Mode, int, int]:
        """Return what tells cells apart; an unknown context sorts first."""
        return (self.mode, self.place, -1 if self.band is None else self.band)


def band_of(context_tokens: float | None) -> int | None:
    """Return the place of the band of context lengths."""
    return None if context_tokens is None else sum(context_tokens > top for top in CONTEXT_TOPS)


def measured(sample: EngineSample) -> Cell | None:
    """Return what one sample measures, as a cell of its own; None where it does not measure a rate.

    `at_s` of that cell is 0: the caller says when.
    """
    if sample.mode is not None and sample.decoded is not None:
        return _by_steps(sample.mode, sample.decoded, max(sample.ranks, 1), sample.context_tokens)
    if sample.counted is not None and sample.counted.alone:
        return _by_counters(sample.counted, sample.context_tokens)
    return None


def _by_steps(mode: Mode, sums: DecodeSums, ranks: int, context_tokens: float | None) -> Cell | None:
    batch, rate = sums.batch, sums.tokens_s
    if not batch or not rate:
        return None
    return Cell(
        mode=mode,
        place=bin_of(batch * ranks),
        band=band_of(context_tokens),
        at_s=0.0,
        weight_s=sums.busy_s / ranks,
        samples=1.0,
        batch=batch * ranks,
        tokens_s=rate * ranks,
        tokens=sums.tokens,
        requests=sums.requests,
        context_tokens=context_tokens,
    )


def _by_counters(counted: Counted, context_tokens: float | None) -> Cell | None:
    """Use counters where there are no sums: tokens over wall time without an idle moment; prefill is in it, so it errs low."""
    if counted.mode is None or counted.idle or not counted.running or not counted.decode_tokens or counted.span_s <= 0:
        return None
    accepted = (counted.generated_tokens, counted.verify_calls)
    known = all(accepted)
    return Cell(
        mode=counted.mode,
        place=bin_of(counted.running),
        band=band_of(context_tokens),
        at_s=0.0,
        weight_s=counted.span_s,
        samples=1.0,
        batch=counted.running,
        tokens_s=counted.decode_tokens / counted.span_s,
        tokens=accepted[0] or 0.0 if known else 0.0,
        requests=accepted[1] or 0.0 if known else 0.0,
        context_tokens=context_tokens,
    )


def halved(since_s: float, half_life_s: float) -> float:
    """Return the factor of a decay over that time; a clock that went back decays nothing, a leap at most MOST_HALVINGS."""
    return float(0.5 ** min(max(since_s / half_life_s, 0.0), MOST_HALVINGS))


def learn(cells: tuple[Cell, ...], found: Cell, now: float) -> tuple[Cell, ...]:
    """Fold a measured cell in; beyond MAX_CELLS the one that was not seen for longest goes. `now` is Unix time."""
    found = replace(found, at_s=now)
    kept = {cell.key: cell for cell in cells}
    before = kept.get(found.key)
    kept[found.key] = found if before is None else _joined(before, found)
    if len(kept) > MAX_CELLS:
        del kept[min(kept.values(), key=lambda cell: (cell.at_s, cell.key)).key]
    return tuple(kept.values())


def _joined(before: Cell, found: Cell) -> Cell:
    kept = halved(found.at_s - before.at_s, HALF_LIFE_S)
    old, new = before.weight_s * kept, found.weight_s
    weight = old + new
    share = new / weight
    step = found.tokens_s - before.tokens_s
    return replace(
        before,
        at_s=found.at_s,
        weight_s=weight,
        samples=before.samples * kept + 1.0,
        batch=before.batch + share * (found.batch - before.batch),
        tokens_s=before.tokens_s + share * step,
        spread=before.spread * kept + old * share * step * step,
        tokens=before.tokens * kept + found.tokens,
        requests=before.requests * kept + found.requests,
        context_tokens=_blend(before.context_tokens, found.context_tokens, share),
    )


def _blend(before: float | None, found: float | None, share: float) -> float | None:
    if before is None or found is None:
        return found if before is None else before
    return before + share * (found - before)


def observation(cell: Cell, now: float) -> Observation:
    """Return a cell as the throughput model reads it."""
    return Observation(
        mode=cell.mode,
        concurrency=cell.batch,
        tokens_s=cell.tokens_s,
        accept_length=cell.tokens / cell.requests if cell.requests > 0 else None,
        weight=cell.weight_s * halved(now - cell.at_s, HALF_LIFE_S),
        variance=cell.spread / cell.weight_s if cell.samples > 1 and cell.weight_s > 0 else None,
        age_s=max(now - cell.at_s, 0.0),
        context_tokens=cell.context_tokens,
    )
