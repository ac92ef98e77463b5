"""A real sglang-router in front of lab servers, and clients that count every answer that they get through it."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import httpx

from tests.labserver import free_port, wait_until

VERSION = "0.3.2"
READY_S = 60.0


def installed() -> bool:
    """Claim that the router is here in the version that is known."""
    try:
        return importlib.metadata.version("sglang-router") == VERSION
    except importlib.metadata.PackageNotFoundError:
        return False


class Router:
    """A router without workers; use as a context manager."""

    def __init__(self, folder: Path, *arguments: str, key: str | None = None, address: str = "127.0.0.1") -> None:
        self.url = f"http://{address}:{free_port()}"
        self.log_path = folder / "router.log"
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._argv = [
            *(sys.executable, "-m", "sglang_router.launch_router", "--host", address),
            *("--port", self.url.rsplit(":", 1)[1], "--prometheus-port", str(free_port())),
            *("--policy", "round_robin", *arguments, *(("--api-key", key) if key else ())),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(self._argv, stdout=log, stderr=subprocess.STDOUT)
        wait_until(self._is_up, limit_s=READY_S, what="the router")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log_path.read_text(encoding="utf-8")
        try:
            return httpx.get(f"{self.url}/liveness", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def register(self, url: str, **settings: object) -> None:
        """Add a worker and wait until it is healthy."""
        answer = httpx.post(f"{self.url}/workers", json={"url": url, **settings}, headers=self.headers, timeout=10)
        assert answer.status_code == 202, answer.text
        wait_until(lambda: self.healthy(url), limit_s=READY_S, what=f"{url} is healthy")

    def workers(self) -> Sequence[Mapping[str, object]]:
        """Return the workers."""
        found = httpx.get(f"{self.url}/workers", headers=self.headers, timeout=10).json()["workers"]
        assert isinstance(found, list)
        return found

    def worker(self, url: str) -> Mapping[str, object] | None:
        """Return the worker of an address, None where there is none."""
        return next((row for row in self.workers() if row["url"] == url), None)

    def healthy(self, url: str) -> bool:
        """Claim that requests may go to a worker."""
        row = self.worker(url)
        return row is not None and row["is_healthy"] is True


class Asked(Protocol):
    """What answers requests: its address, and what it wants to see in their headers."""

    @property
    def url(self) -> str:
        """Return the address."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers."""


@dataclass(slots=True)
class Clients:
    """Several clients that ask a router, or a server, without a pause; `statuses` counts what they were answered."""

    router: Asked
    count: int = 3
    tokens: int = 48
    statuses: dict[str, int] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._ask) for _ in range(self.count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    @property
    def answered(self) -> int:
        """Return how many requests were answered whole."""
        return self.statuses.get("whole", 0)

    def _ask(self) -> None:
        sampling = {"temperature": 0, "max_new_tokens": self.tokens, "ignore_eos": True}
        with httpx.Client(base_url=self.router.url, headers=self.router.headers, timeout=60) as client:
            while not self._over.is_set():
                try:
                    answer = client.post("/generate", json={"text": "hello", "sampling_params": sampling})
                    whole = answer.status_code == 200 and len(answer.json()["output_ids"]) == self.tokens
                    said = "whole" if whole else f"status {answer.status_code}: {answer.text[:80]}"
                except (httpx.HTTPError, ValueError, KeyError) as error:
                    said = f"{type(error).__name__}: {error}"
                with self._lock:
                    self.statuses[said] = self.statuses.get(said, 0) + 1
