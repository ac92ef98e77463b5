"""Read what an engine has counted: /metrics, its sums over decode steps, and the seed that tells one start from another."""

from __future__ import annotations

from specctl.control.sample import engine_info, engine_loads, engine_metrics
from specctl.control.sample.engine import EngineCounters, EngineInfo
from specctl.engines.types import Engine
from specctl.measure.load import Counters
from specctl.ops.engine_http import EngineClient
from specctl.rollout.launch import engines


def counters(client: EngineClient, now_s: float, began_s: float) -> Counters:
    """Return the engine's counters; `at_s` counts from the run's beginning. What it does not answer is None."""
    engine = engines()[client.server.profile.engine]
    loads = engine_loads.parse(client.read(engine.metrics.loads) or b"")
    known = info(client, engine)
    running = None
    if loads is not None and loads.running is not None and loads.waiting is not None:
        running = loads.running + loads.waiting
    return Counters(
        at_s=now_s - began_s,
        page=_page(client, engine),
        decoded=None if loads is None else loads.decoded,
        running=running,
        seed=None if known is None else known.seed,
    )


def info(client: EngineClient, engine: Engine | None = None) -> EngineInfo | None:
    """Return what /server_info claims; None where it does not answer."""
    found = engine or engines()[client.server.profile.engine]
    return engine_info.parse(client.read(found.metrics.info) or b"")


def _page(client: EngineClient, engine: Engine) -> EngineCounters | None:
    page = client.read(engine.metrics.page)
    if page is None or not engine_metrics.is_page(page):
        return None
    return engine_metrics.parse(page, engine.metrics)
