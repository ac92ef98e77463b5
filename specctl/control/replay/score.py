"""What a policy made of a load: time per token, tokens served, switches, time lost, and how far it stayed behind the yardstick."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specctl.control.objective import Metric
from specctl.control.replay.load import Requests, Series
from specctl.control.replay.queueing import Server
from specctl.control.replay.schedule import Times, tokens
from specctl.control.replay.service import Service
from specctl.control.replay.worth import Worth

P95 = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One policy's figures; a time per token is None where not one was served.

    `value` is what the objective makes large. In a series: the worth per second, by the mean. With queueing: tokens a second of a
    request, or tokens served while requests arrived. `mean_s`: seconds that requests spend at the server, waiting included, by
    token. `p95_s`: 95 % of the tokens belong to requests (in a series: to seconds) that take no longer a token.
    `lost_s`: time in which switches kept requests out or nothing was decoded.
    """

    value: float
    tokens: float
    mean_s: float | None
    p95_s: float | None
    switches: int
    lost_s: float


def regret_ratio(value: float, yardstick: float) -> float | None:
    """Return how much of the yardstick's value is missed, below zero where it is beaten; None where that has none."""
    return None if yardstick <= 0 else 1 - value / yardstick


def of_series(service: Service, series: Series, values: Worth, spent: Times) -> Score:
    """Score what a schedule did in an exogenous series; a token of a second with c requests at T tokens a second takes c/T."""
    served = tokens(service, spent)
    gathered = sum(
        values.of(mode, level) * seconds for mode, levels in spent.served.items() for level, seconds in levels.items()
    )
    paces: list[tuple[float, float]] = []
    for mode, levels in spent.served.items():
        for level, seconds in levels.items():
            rate = service.rate(mode, level)
            if rate > 0:
                paces.append((level / rate, rate * seconds))
    request_s = sum(series.levels) * series.step_s
    return Score(
        value=gathered / series.span_s,
        tokens=served,
        mean_s=request_s / served if served > 0 else None,
        p95_s=quantile(paces, P95),
        switches=spent.switches,
        lost_s=spent.away_s,
    )


def of_queue(server: Server, requests: Requests, served: float, metric: Metric) -> Score:
    """Score a server that has worked through all requests; `served`: the tokens by the end of the trace."""
    stays = [end - at for end, at in zip(server.finished_s, requests.at_s, strict=True)]
    mean_s = sum(stays) / requests.tokens
    paces = ((stay / count, count) for stay, count in zip(stays, requests.outputs, strict=True))
    return Score(
        value=served if metric is Metric.THROUGHPUT else 1 / mean_s,
        tokens=served,
        mean_s=mean_s,
        p95_s=quantile(paces, P95),
        switches=server.switches,
        lost_s=server.lost_s,
    )


def quantile(weighed: Iterable[tuple[float, float]], share: float) -> float | None:
    """Return the smallest value that values of that share of the weight do not exceed, from (value, weight); None without any."""
    rows = sorted(weighed)
    due = share * sum(weight for _, weight in rows)
    passed = 0.0
    for value, weight in rows:
        passed += weight
        if passed >= due:
            return value
    return rows[-1][0] if rows else None
