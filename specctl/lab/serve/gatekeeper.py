"""What every HTTP request passes through: the keys, the counters, and the fault that cuts answers in half."""

from __future__ import annotations

import contextlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specctl.lab.serve.auth import Keys
from specctl.lab.serve.lifecycle import Status
from specctl.lab.serve.service import Service, counted

UNAUTHORIZED = b'{"error":"Unauthorized"}'
_GENERATING = frozenset({"/generate", "/v1/completions", "/v1/chat/completions"})


class AnswerCutError(ConnectionAbortedError):
    """The connection is dropped in the middle of an answer, on purpose (fault `half-answer`)."""


class Gatekeeper:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, service: Service, known: frozenset[str]) -> None:
        """Wrap the application; only known paths are counted, so that a scan cannot fill the metrics."""
        self._app = app
        self._known = known
        self._service = service
        options = service.launch.options
        self._keys = Keys(api=options.api_key, admin=options.admin_api_key)
        self._cuts = options.faults.has("half-answer")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, method = scope["path"], scope["method"]
        counts = path in self._known
        sender = self._counting(send, path, method) if counts else send
        with counted(self._service.ledger, path, method) if counts else contextlib.nullcontext():
            if not self._keys.allow(path, method, _authorization(scope)):
                await _refuse(sender)
            elif self._cuts and path in _GENERATING and self._service.lifecycle.status is not Status.STARTING:
                await self._app(scope, receive, _cutting(sender))
            else:
                await self._app(scope, receive, sender)

    def _counting(self, send: Send, path: str, method: str) -> Send:
        """Return a sender that counts the answer's status."""

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._service.ledger.http_responses[path, method, message["status"]] += 1
            await send(message)

        return counting


def _cutting(send: Send) -> Send:
    """Return a sender that sends half of the first part of a body and drops the connection."""

    async def cutting(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        body = message.get("body", b"")
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        raise AnswerCutError

    return cutting


def _authorization(scope: Scope) -> str | None:
    """Return the request's Authorization header."""
    found = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    return None if found is None else found.decode("latin-1")


async def _refuse(send: Send) -> None:
    """Answer 401."""
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(UNAUTHORIZED)).encode())]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": UNAUTHORIZED})
