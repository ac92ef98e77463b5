"""What the engine itself told, as the figures of a sight: of one look, or between two; pure.

Used where no agent answers. Gauges that outlive their requests are shown only while requests run (recordings, surprise 22).
"""

from __future__ import annotations

from dataclasses import dataclass

from specctl.control.sample import engine_loads
from specctl.control.sample.engine import FROZEN_AFTER_S, DecodeSums, EngineLoad
from specctl.control.sample.numbers import amount, mapping
from specctl.control.sight import Source, Told

# Two looks closer than this say little of tokens a second: an engine publishes its sums each 15 steps.
LEAST_SPAN_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSight:
    """One look at an engine at `at_s` (monotonic): the status of /ready (None: no answer), and what /v1/loads said."""

    at_s: float
    ready: int | None = None
    load: EngineLoad | None = None
    throughput: float | None = None

    @property
    def frozen(self) -> bool:
        """Claim that its scheduler has published nothing for so long that it is stopped, whatever its HTTP server answers."""
        return self.load is not None and self.load.age_s is not None and self.load.age_s > FROZEN_AFTER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of a sight that an engine can tell."""

    running: Told[int] | None = None
    waiting: Told[int] | None = None
    tokens_per_s: Told[float] | None = None
    accept_length: Told[float] | None = None
    kv_ratio: Told[float] | None = None


def seen(at_s: float, ready: int | None, answer: object) -> EngineSight:
    """Read the JSON of /v1/loads; never raises, whatever it is."""
    return EngineSight(at_s=at_s, ready=ready, load=engine_loads.read(answer), throughput=_throughput(answer))


def figures(
    now: EngineSight | None, before: EngineSight | None = None, *, age_s: float = 0.0, moved: bool = False
) -> Figures:
    """Return the figures of a look that was `age_s` ago; `before`: one of the same engine earlier, by which rates are worked out.

    Tokens a second are those of decode steps between the two looks; of a single look, the engine's own last log window while
    requests run. No request runs: no token comes, which is a positive 0. `moved`: the engine was told another mode since its
    start, and what it has counted since then is of more modes than one.
    """
    load = None if now is None else now.load
    if now is None or load is None:
        return Figures()
    gained = _gained(now, before)
    told_s = None if load.age_s is None else load.age_s + age_s
    rate, length = _rate(now, before, gained), None if moved and gained is None else _length(load, gained)
    return Figures(
        running=None if load.running is None else Told(value=load.running, age_s=told_s, source=Source.ENGINE),
        waiting=None if load.waiting is None else Told(value=load.waiting, age_s=told_s, source=Source.ENGINE),
        tokens_per_s=None if rate is None else Told(value=rate, age_s=told_s, source=Source.ENGINE),
        accept_length=None if length is None else Told(value=length, age_s=told_s, source=Source.ENGINE),
        kv_ratio=None if load.kv_ratio is None else Told(value=load.kv_ratio, age_s=told_s, source=Source.ENGINE),
    )


def _gained(now: EngineSight, before: EngineSight | None) -> DecodeSums | None:
    if before is None or now.at_s - before.at_s < LEAST_SPAN_S or now.load is None or before.load is None:
        return None
    sums, earlier = now.load.decoded, before.load.decoded
    return None if sums is None or earlier is None else sums.since(earlier)


def _rate(now: EngineSight, before: EngineSight | None, gained: DecodeSums | None) -> float | None:
    if gained is not None and before is not None:
        return gained.tokens / (now.at_s - before.at_s)
    running = None if now.load is None else now.load.running
    if running is None:
        return None
    return now.throughput if running else 0.0


def _length(load: EngineLoad, gained: DecodeSums | None) -> float | None:
    """Return tokens a verify step between the looks or, of a single look, since the engine's start; None without speculation."""
    if load.lifetime_accept_length is None:
        return None
    return load.lifetime_accept_length if gained is None else gained.accept_length


def _throughput(answer: object) -> float | None:
    """Return the ranks' tokens a second in sum; None where one does not tell, or where 0 may mean that it does not know."""
    rows = (mapping(answer) or {}).get("loads")
    ranks = [mapping(row) or {} for row in rows] if isinstance(rows, list) else []
    values = [amount(rank.get("gen_throughput")) for rank in ranks]
    told = [value for value in values if value is not None]
    return sum(told) or None if len(told) == len(values) else None
