"""What specctl asks an engine over HTTP, through the host's connection; keys go in headers, answers are an engine's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from specctl.adapters import http
from specctl.adapters.secrets import Secret, resolve_secret
from specctl.adapters.transport import Transport
from specctl.errors import SpecctlError
from specctl.fleet.types import Server
from specctl.rollout import reading

SHORT_S = 5.0
# Of a page of counters, which a busy engine is slow to write.
READ_S = 10.0
REFUSED = "refused"
# Answered at once, and never without the key.
LOADS = "/v1/loads"
# How an engine turns a key away.
KEY_REFUSED = (401, 403)


class Reached(Protocol):
    """Whatever knows the way to a host at the moment: a contact may dial anew in the middle of an act."""

    @property
    def transport(self) -> Transport:
        """Return the connection."""


class NoAnswerError(Exception):
    """A port took the call and gave no whole answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A status and a parsed JSON body (None: no JSON), or why there is neither."""

    status: int | None
    body: object = None
    took_s: float = 0.0
    failure: str | None = None

    @property
    def fields(self) -> Mapping[str, object]:
        """Return the body's fields; empty when it is no object."""
        return self.body if isinstance(self.body, Mapping) else {}


@dataclass(frozen=True, slots=True)
class EngineClient:
    """One server's HTTP face, by the contact to its host.

    `key` is the API key: with both keys set, the engine refuses the admin key on all but its control routes.
    """

    contact: Reached
    server: Server
    key: Secret | None = field(default=None, repr=False)

    @classmethod
    def of(cls, contact: Reached, server: Server) -> EngineClient:
        """Return a client with the server's API key, as far as it can be read here."""
        return cls(contact, server, _key(server, "api_key"))

    @classmethod
    def admin(cls, contact: Reached, server: Server) -> EngineClient:
        """Return a client for the control routes: with the admin key where there is one, else with the API key."""
        return cls(contact, server, _key(server, "admin_api_key") or _key(server, "api_key"))

    def get(self, path: str, *, timeout_s: float = SHORT_S) -> Reply:
        """GET a path."""
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, content: object, *, timeout_s: float) -> Reply:
        """POST JSON to a path."""
        return self._ask("POST", path, content, timeout_s)

    def read(self, path: str, *, timeout_s: float = READ_S) -> bytes | None:
        """Return the body of a GET that was answered 200; None of any other end."""
        answer = self._request("GET", path, None, timeout_s)
        return answer.body if isinstance(answer, http.Answer) and answer.status == 200 else None

    def _request(self, method: http.Method, path: str, content: object, timeout_s: float) -> http.Outcome:
        return http.request(
            self.contact.transport,
            self.server.port,
            method,
            path,
            address=http.loopback_of(self.server.bind),
            content=content,
            key=self.key,
            timeout_s=timeout_s,
        )

    def _ask(self, method: http.Method, path: str, content: object, timeout_s: float) -> Reply:
        answer = self._request(method, path, content, timeout_s)
        if not isinstance(answer, http.Answer):
            return Reply(status=None, failure=failure_text(answer))
        try:
            body = json.loads(answer.body) if answer.body else None
        except (ValueError, RecursionError):  # no JSON, or deeper than anybody reads
            body = None
        return Reply(status=answer.status, body=body, took_s=answer.took_s)

    def key_refused(self) -> bool:
        """Claim that the engine answers, and turns our key, or us without one, away."""
        return self.get(LOADS).status in KEY_REFUSED

    def running_requests(self) -> int | None:
        """Return running plus waiting requests over all ranks, from /v1/loads; None when the engine cannot say.

        Raises NoAnswerError when nothing answers: an engine that is busy may answer the next time.
        """
        reply = self.get(LOADS)
        if reply.status is None and reply.failure != REFUSED:
            raise NoAnswerError(reply.failure)
        rows = reply.fields.get("loads")
        if not isinstance(rows, list) or not rows:
            return None
        total = 0
        for row in rows:
            counts = (
                [row.get(name) for name in ("num_running_reqs", "num_waiting_reqs")]
                if isinstance(row, Mapping)
                else [None]
            )
            for count in counts:
                known = reading.whole(count)
                if known is None or known < 0:
                    return None
                total += known
        return total


def _key(server: Server, name: str) -> Secret | None:
    """Return a key that the server refers to; None without one, or where it cannot be read (the engine then answers 401)."""
    ref = server.secrets.get(name)
    if ref is None:
        return None
    try:
        return resolve_secret(ref)
    except SpecctlError:
        return None


def failure_text(failure: http.Failure) -> str:
    """Say in a few words why there was no whole answer."""
    match failure:
        case http.Refused():
            return REFUSED
        case http.TimedOut(limit_s=limit):
            return f"no answer within {limit:.0f} s"
        case http.Cut(reason=reason):
            return f"half an answer: {reason}"
        case http.Garbled(reason=reason):
            return f"no HTTP: {reason}"
