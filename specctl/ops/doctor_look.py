"""Look at an engine a few times, some seconds apart: /v1/loads with /ready, and the page of /metrics."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence

from specctl.control.sample import engine_info, engine_loads, engine_metrics
from specctl.control.sample.engine import EngineInfo, Look, Page
from specctl.doctor.evidence import Observation
from specctl.engines.types import Engine
from specctl.ops.engine_http import EngineClient
from specctl.rollout import reading
from specctl.rollout.launch import engines


def engine_of(client: EngineClient) -> Engine:
    """Return the engine family of the client's server."""
    return engines()[client.server.profile.engine]


def look(client: EngineClient) -> Observation:
    """Return one look; a route that does not answer is None in it."""
    metrics = engine_of(client).metrics
    ready = client.get(metrics.ready).status
    loads = engine_loads.parse(client.read(metrics.loads) or b"")
    page = client.read(metrics.page)
    at_s = time.monotonic()
    return Observation(
        at_s=at_s,
        look=None if loads is None else Look(at_s=at_s, load=loads, ready=None if ready is None else ready == 200),
        page=None
        if page is None or not engine_metrics.is_page(page)
        else Page(at_s=at_s, counters=engine_metrics.parse(page, metrics)),
    )


class Looks:
    """Looks in a thread of its own while other things are gathered; `close` waits for the last one."""

    def __init__(self, client: EngineClient, *, count: int, apart_s: float) -> None:
        self._client, self._count, self._apart_s = client, count, apart_s
        self._found: list[Observation] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="specctl-doctor-looks")
        self._thread.start()

    def _run(self) -> None:
        try:
            for number in range(self._count):
                began_s = time.monotonic()
                self._found.append(look(self._client))
                if number + 1 < self._count:
                    time.sleep(max(0.0, began_s + self._apart_s - time.monotonic()))
        except Exception as error:  # noqa: BLE001  # raised again where somebody waits for it
            self._error = error

    def close(self) -> Sequence[Observation]:
        """Return all looks; raises what a look raised (ConnectError: the host is lost)."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return tuple(self._found)


def info(client: EngineClient) -> tuple[EngineInfo | None, Mapping[str, object]]:
    """Return what /server_info claims, and its arguments as they stand, which hold secrets: never show them."""
    content = client.read(engine_of(client).metrics.info) or b""
    try:
        fields = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        fields = {}
    return engine_info.parse(content), reading.mapping(fields)
