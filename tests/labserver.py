"""Start the lab's real server as a process of its own, talk to it and read its log; for every test that needs one."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.labmodels import Folders

START_LIMIT_S = 20.0
STEP_S = 0.01
ALLOW_FAULTS = {"SPECCTL_LAB_ALLOW_FAULTS": "1"}


def free_port() -> int:
    """Return a port of the loopback that nobody holds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(claim: Callable[[], bool], *, limit_s: float = START_LIMIT_S, what: str = "the condition") -> None:
    """Return as soon as a claim holds; fail when it does not within the limit."""
    until = time.monotonic() + limit_s
    while not claim():
        if time.monotonic() >= until:
            raise AssertionError(f"{what} did not come true within {limit_s} s")
        time.sleep(STEP_S)


class LabServer:
    """One server process on a free port; use as a context manager."""

    def __init__(
        self,
        folders: Folders,
        folder: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        draft: bool = True,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = folder / f"server-{self.port}-{time.monotonic_ns()}.log"
        self._argv = command(folders, self.port, *arguments, draft=draft)
        self._env = {**os.environ, **(env or {})}
        self.process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(
            base_url=self.url, verify=False, limits=httpx.Limits(max_keepalive_connections=0), timeout=60
        )

    def __enter__(self) -> Self:
        self.spawn()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._client.close()

    def spawn(self) -> None:
        """Start the process."""
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(self._argv, stdout=log, stderr=subprocess.STDOUT, env=self._env)

    def ready(self) -> Self:
        """Wait until /ready answers 200; fail at once when the process dies."""

        def is_ready() -> bool:
            assert self.exit_code() is None, f"the server ended with {self.exit_code()}:\n{self.log()}"
            return self.status("/ready") == 200

        wait_until(is_ready, what="/ready")
        return self

    def exit_code(self) -> int | None:
        """Return the exit code as a shell shows it, None while the process runs."""
        assert self.process is not None
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def wait_exit(self, limit_s: float = START_LIMIT_S) -> int:
        """Return the exit code, having waited for it."""
        wait_until(lambda: self.exit_code() is not None, limit_s=limit_s, what="the exit")
        code = self.exit_code()
        assert code is not None
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self.process is not None
        self.process.send_signal(number)

    def status(self, path: str) -> int | None:
        """Return the status of a GET, None when nobody answers."""
        try:
            return self._client.get(path, timeout=5).status_code
        except httpx.TransportError:
            return None

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Send a GET."""
        return self._client.get(path, headers=headers)

    def post(self, path: str, body: object = None, **headers: str) -> httpx.Response:
        """Send a POST with a JSON body."""
        return self._client.post(path, json=body, headers=headers)

    def request(self, method: str, path: str, **headers: str) -> httpx.Response:
        """Send a request without a body."""
        return self._client.request(method, path, headers=headers)

    def send(self, method: str, path: str, body: str) -> httpx.Response:
        """Send a request with a body as it is written."""
        headers = {"Content-Type": "application/json"}
        return self._client.request(method, path, content=body, headers=headers)

    @contextlib.contextmanager
    def background_generate(self, **wanted: Any) -> Iterator[Future[httpx.Response]]:
        """Send a request from a thread of its own and give the future of its answer."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            yield pool.submit(lambda: self.generate(**wanted))

    def generate(
        self, text: str = "hello", tokens: int = 64, *, rid: str | None = None, **sampling: object
    ) -> httpx.Response:
        """Decode greedily past any end token."""
        params = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True, **sampling}
        return self.post("/generate", {"text": text, "sampling_params": params, "rid": rid})

    def metrics(self) -> dict[str, float]:
        """Return the samples of /metrics by name, summed over their labels."""
        totals: dict[str, float] = {}
        for line in self.get("/metrics").text.splitlines():
            if not line.startswith("#"):
                name = re.split(r"[{ ]", line, maxsplit=1)[0]
                totals[name] = totals.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
        return totals

    def log(self) -> str:
        """Return all that the process has printed."""
        return self.log_path.read_bytes().decode("utf-8", errors="replace")

    def wait_log(self, text: str, limit_s: float = START_LIMIT_S) -> None:
        """Wait until the log holds a text."""
        wait_until(lambda: text in self.log(), limit_s=limit_s, what=f"the log line {text!r}")


def command(folders: Folders, port: int, *arguments: str, draft: bool = True) -> Sequence[str]:
    """Return the command line of a server on these models."""
    drafter = ("--speculative-draft-model-path", str(folders.draft)) if draft else ()
    models = ("--model-path", str(folders.target), *drafter)
    return (sys.executable, "-m", "specctl.lab", "serve", *models, "--port", str(port), *arguments)
