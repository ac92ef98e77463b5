"""Take a server off sglang-router 0.3.2 and bring it back as it was; the router drains nothing by itself (engine facts 9.1).

Its removal is at once: new requests go elsewhere, those under way go on over their own connection. So the engine is watched
until it has none. What the router does not tell (the worker's key, how its health is checked) cannot be put back: the key is the
engine's own, health checks are the router's defaults.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from specctl.adapters import http
from specctl.adapters.secrets import Secret, resolve_secret
from specctl.errors import SpecctlError
from specctl.fleet.types import Gateway, SecretRef
from specctl.ops.engine_http import failure_text
from specctl.rollout import reading
from specctl_agent.actuators import DoorError, Taken, ask

KIND = "sglang-router"
CALL_S = 10.0
GONE_S = 15.0
# A router registers in the background: it probes the server first, and asks it what it is.
BACK_S = 60.0
POLL_S = 0.2
# What the router finds out by itself at every registration; all else that it tells of a worker are labels that somebody gave.
DISCOVERED = frozenset(
    (
        "architectures",
        "cost",
        "disaggregation_mode",
        "dp_size",
        "load_balance_method",
        "model_path",
        "model_type",
        "priority",
        "served_model_name",
        "tp_size",
    )
)
KEPT = ("url", "model_id", "priority", "cost", "worker_type", "bootstrap_port", "disable_health_check")


@dataclass(frozen=True, slots=True)
class RouterGateway:
    """One server behind one router. `engine_key` is what the router must send to the engine; `last_ok` lets the only server go."""

    gateway: Gateway
    here: ask.Here
    stopping: threading.Event
    engine_key: SecretRef | None = None
    last_ok: bool = False
    back_s: float = BACK_S

    def take_off(self, mark: Callable[[Taken], None]) -> Taken:
        """Note how the server is registered, and remove it; refuses where nobody else could serve."""
        workers = self._workers()
        mine = [row for row in workers if self._is_mine(row)]
        if not mine:
            raise DoorError(f"the gateway {self.gateway.url} knows no worker {self.gateway.worker}")
        models = {row.get("model_id") for row in mine}
        others = [row for row in workers if row not in mine and row.get("is_healthy") is True]
        if not self.last_ok and not any(row.get("model_id") in models for row in others):
            raise DoorError(f"no other worker of {self.gateway.url} is healthy: nobody would serve meanwhile")
        taken = Taken(by=KIND, facts={"workers": [settings(row) for row in mine]})
        mark(taken)
        for row in mine:
            answer = self._ask("DELETE", f"/workers/{row.get('id')}")
            if answer.status not in (200, 202, 404):
                raise DoorError(f"the gateway answers {answer.status} to the removal of {self.gateway.worker}")
        self._wait(lambda: not any(self._is_mine(row) for row in self._workers()), GONE_S, "the worker is still listed")
        return taken

    def bring_back(self, taken: Taken) -> None:
        """Register the server as it was, and wait until the router finds it healthy."""
        if not any(self._is_mine(row) for row in self._workers()):
            for row in reading.rows(taken.facts.get("workers")) or ({"url": self.gateway.worker},):
                self._register(row)
        self._wait(self._is_healthy, self.back_s, f"{self.gateway.worker} was registered and is not healthy")

    def _register(self, row: Mapping[str, object]) -> None:
        key = _secret(self.engine_key)
        body = {**row, **({"api_key": key.reveal()} if key is not None else {})}
        answer = self._ask("POST", "/workers", body)
        if answer.status not in (200, 201, 202):
            raise DoorError(f"the gateway answers {answer.status} to the registration of {self.gateway.worker}")

    def _is_healthy(self) -> bool:
        mine = [row for row in self._workers() if self._is_mine(row)]
        return bool(mine) and all(row.get("is_healthy") is True for row in mine)

    def _is_mine(self, row: Mapping[str, object]) -> bool:
        return str(row.get("url")).rstrip("/") == self.gateway.worker.rstrip("/")

    def _wait(self, claim: Callable[[], bool], limit_s: float, trouble: str) -> None:
        deadline = time.monotonic() + limit_s
        while not claim():
            if time.monotonic() > deadline:
                raise DoorError(f"{trouble} after {limit_s:.0f} s")
            if self.stopping.wait(POLL_S):
                raise DoorError("the agent is stopping")

    def _workers(self) -> tuple[Mapping[str, object], ...]:
        answer = self._ask("GET", "/workers")
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if answer.status != 200 or not isinstance(found, Mapping) or not isinstance(found.get("workers"), list):
            raise DoorError(f"the gateway {self.gateway.url} does not list its workers (status {answer.status})")
        return reading.rows(found.get("workers"))

    def _ask(self, method: http.Method, path: str, content: object = None) -> http.Answer:
        where = urlsplit(self.gateway.url)
        answer = http.request(
            self.here.transport,
            where.port or 80,
            method,
            path,
            address=where.hostname or http.LOOPBACK,
            content=content,
            key=_secret(self.gateway.api_key),
            timeout_s=CALL_S,
        )
        if not isinstance(answer, http.Answer):
            raise DoorError(f"the gateway {self.gateway.url} gave no answer: {failure_text(answer)}")
        return answer


def settings(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return what has to be said at a registration so that the worker becomes what it was; no key is among it."""
    kept = {name: row[name] for name in KEPT if row.get(name) is not None}
    labels = {key: value for key, value in reading.mapping(row.get("metadata")).items() if key not in DISCOVERED}
    return {**kept, **({"labels": labels} if labels else {})}


def _secret(reference: SecretRef | None) -> Secret | None:
    if reference is None:
        return None
    try:
        return resolve_secret(reference)
    except SpecctlError as error:
        raise DoorError(error.message) from error
