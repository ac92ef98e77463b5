"""The engine's samplers: its load each second, a page of metrics each ten, its claims each minute; each with its own connection.

Three samplers and not one, because /server_info waits for the scheduler and hangs with it, and /metrics costs the engine a page:
neither may delay the load, which costs it nothing. What is wrong is raised, and the runner keeps it as the sampler's error.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from specctl.control.sample import engine_info, engine_loads, engine_metrics
from specctl.control.sample.engine import EngineInfo, Look, Page
from specctl.engines._metric_types import Metrics
from specctl_agent.samplers.engine_http import Answer, EngineHttp, NoAnswerError

LOADS_WITHIN_S = 2.0
READY_WITHIN_S = 1.0
READY_BYTES = 4096
READY_EACH = 5
"""/ready costs the engine nothing, and is asked with each fifth look: only it tells a pause from idleness."""
SUSPECT_AGE_S = 3.0
"""A busy scheduler publishes more often than this (recordings, surprise 14): a look beyond it asks /ready at once."""
PAGE_WITHIN_S = 5.0
INFO_WITHIN_S = 10.0
_OK = 200
_NOT_FOUND = 404
_DENIED = (401, 403)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where one engine listens, and the file that holds the key which its clients send; None: it asks for none."""

    host: str
    port: int
    key_file: Path | None = None

    def connect(self) -> EngineHttp:
        """Make a connection of its own; nothing is opened yet."""
        return EngineHttp(self.host, self.port, key_file=self.key_file)


class EngineLoads:
    """/v1/loads each second, and /ready where it matters."""

    def __init__(
        self, endpoint: Endpoint, metrics: Metrics, *, name: str = "engine_loads", period_s: float = 1.0
    ) -> None:
        self.name = name
        self.period_s = period_s
        self.deadline_s = LOADS_WITHIN_S + READY_WITHIN_S + 2.0
        self._http = endpoint.connect()
        self._metrics = metrics
        self._looks = 0
        self._ready: bool | None = None

    def sample(self) -> Look:
        """Take one look; raises NoAnswerError."""
        body = _body(self._http.get(self._metrics.loads, limit=engine_loads.MAX_BYTES, within_s=LOADS_WITHIN_S))
        at_s = time.monotonic()
        load = engine_loads.parse(body)
        if load is None:
            raise NoAnswerError(f"{self._metrics.loads} answers what is no load")
        suspect = load.age_s is None or load.age_s > SUSPECT_AGE_S
        if suspect or self._ready is not True or self._looks % READY_EACH == 0:
            self._ready = self._asked_ready()
        self._looks += 1
        return Look(at_s=at_s, load=load, ready=self._ready)

    def _asked_ready(self) -> bool | None:
        try:
            return self._http.get(self._metrics.ready, limit=READY_BYTES, within_s=READY_WITHIN_S).status == _OK
        except NoAnswerError:
            return None

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class EngineMetrics:
    """/metrics each ten seconds: the wanted families and nothing else."""

    def __init__(
        self, endpoint: Endpoint, metrics: Metrics, *, name: str = "engine_metrics", period_s: float = 10.0
    ) -> None:
        self.name = name
        self.period_s = period_s
        self.deadline_s = PAGE_WITHIN_S + 2.0
        self._http = endpoint.connect()
        self._metrics = metrics

    def sample(self) -> Page:
        """Read one page; raises NoAnswerError, also for an engine without metrics: its figures are unknown, not 0."""
        answer = self._http.get(self._metrics.page, limit=engine_metrics.MAX_BYTES, within_s=PAGE_WITHIN_S)
        at_s = time.monotonic()
        if answer.status == _NOT_FOUND:
            raise NoAnswerError("the engine has no metrics", hint="start it with --enable-metrics")
        body = _body(answer)
        if not engine_metrics.is_page(body):
            raise NoAnswerError(f"{self._metrics.page} answers what is no page of metrics")
        return Page(at_s=at_s, counters=engine_metrics.parse(body, self._metrics))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class EngineInfos:
    """/server_info each minute: what the engine claims to run."""

    def __init__(
        self, endpoint: Endpoint, metrics: Metrics, *, name: str = "engine_info", period_s: float = 60.0
    ) -> None:
        self.name = name
        self.period_s = period_s
        self.deadline_s = INFO_WITHIN_S + 2.0
        self._http = endpoint.connect()
        self._metrics = metrics

    def sample(self) -> EngineInfo:
        """Ask for the claims; raises NoAnswerError, also when the scheduler hangs and this with it."""
        body = _body(self._http.get(self._metrics.info, limit=engine_info.MAX_BYTES, within_s=INFO_WITHIN_S))
        info = engine_info.parse(body)
        if info is None:
            raise NoAnswerError(f"{self._metrics.info} answers what tells no server")
        return info

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def _body(answer: Answer) -> bytes:
    if answer.status in _DENIED:
        raise NoAnswerError(
            f"the engine refuses the key ({answer.status})", hint="give the agent the key of the engine's clients"
        )
    if answer.status != _OK:
        raise NoAnswerError(f"the engine answers {answer.status}")
    return answer.body
