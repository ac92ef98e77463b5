"""The warm-up: a thread that asks the server over its own port, as SGLang does, and only then declares it up.

It asks whoever holds the port. When that is another server, this one still logs that it is ready (recorded): the line proves
nothing.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import traceback
from collections.abc import Callable

from specctl.lab.serve import strikes
from specctl.lab.serve.lifecycle import Status
from specctl.lab.serve.log import logger
from specctl.lab.serve.service import Service

POLL_S = 0.02
GIVE_UP_S = 10.0
"""SGLang keeps asking for about two minutes."""
PROMPT = "The capital city of France is"
NEW_TOKENS = 8
READY_LINE = "The server is fired up and ready to roll!"
_ANY = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # compared with, not bound to


class Warmup:
    """Asks the server for its first answer and declares it up."""

    def __init__(self, service: Service, stretch_s: float, on_ready: Callable[[], None]) -> None:
        self._service = service
        self._stretch_s = stretch_s
        self._on_ready = on_ready
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warmup", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def leave(self, *, has_port: bool) -> None:
        """Stop asking; a server that never got its port lets the warm-up come to its end first, as SGLang does."""
        if not has_port:
            self._thread.join()
        self._left.set()

    def _run(self) -> None:
        """Warm up; a failure ends the process, as in SGLang."""
        options = self._service.launch.options
        try:
            self._wait_for_port()
            if options.faults.has("never-ready"):
                self._left.wait()
                return
            strikes.strike(options.faults, "warmup")
            self._left.wait(self._stretch_s)
            if not options.skip_server_warmup:
                body = {"text": PROMPT, "sampling_params": {"temperature": 0, "max_new_tokens": NEW_TOKENS}}
                self._ask("POST", "/generate", body)
                self._ask("POST", "/freeze_gc", None)
        except Exception:  # noqa: BLE001  # whatever it is, the start has failed
            if not self._left.is_set():
                logger.error(
                    "Initialization failed. warmup error: %s", traceback.format_exc()
                )  # the dialect's own line
                strikes.kill_tree()
            return
        if self._service.lifecycle.status is Status.STARTING:
            self._service.lifecycle.status = Status.UP
        logger.info(READY_LINE)
        self._on_ready()

    def _wait_for_port(self) -> None:
        """Ask until someone answers; raise the last failure when nobody does."""
        until = time.monotonic() + GIVE_UP_S
        while True:
            try:
                self._ask("GET", "/model_info", None)
                return
            except (OSError, http.client.HTTPException):
                if time.monotonic() >= until or self._left.is_set():
                    raise
                self._left.wait(POLL_S)

    def _ask(self, method: str, path: str, body: object) -> None:
        """Send a request to the port and expect 200."""
        options = self._service.launch.options
        host = "127.0.0.1" if options.host in _ANY else options.host
        connection = http.client.HTTPConnection(host, options.port, timeout=GIVE_UP_S)
        key = (options.admin_api_key or options.api_key) if path == "/freeze_gc" else options.api_key
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise http.client.HTTPException(f"{path} answered {answer.status}")
