"""A small HTTP/1.1 client for engines, over a Transport: no proxies, no redirects, no environment, bounded in time and size.

Keys go into headers alone. What an engine can do wrong comes back as a value; a lost host is a ConnectError, as everywhere.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from specctl.adapters.secrets import Secret
from specctl.adapters.transport import Transport

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DEFAULT_MAX_BYTES = 16 * 1024 * 1024
PIECE_BYTES = 65536
REASON_CHARACTERS = 120
LOOPBACK = "127.0.0.1"
_EVERY_ADDRESS = {"": LOOPBACK, "0.0.0.0": LOOPBACK, "localhost": LOOPBACK, "::": "::1", "[::]": "::1"}  # noqa: S104  # read, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer; headers with lower-case names, `took_s` from the call to the last byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nobody listens on the port, or there is no way to the address."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """No whole answer within the limit; `connected` tells a port that took the call from one that did not."""

    limit_s: float
    connected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The connection ended before the answer did; `body` is what had come."""

    status: int | None
    body: bytes
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbled:
    """What came is no HTTP, or more than was allowed."""

    reason: str


Failure = Refused | TimedOut | Cut | Garbled
Outcome = Answer | Failure
Method = Literal["GET", "POST", "PUT", "DELETE"]


class StreamFailed(Exception):  # noqa: N818  # the failure inside is the error
    """A streamed answer ended otherwise than whole; carries why: how the call failed, or the answer of another status than 200."""

    def __init__(self, failure: Failure | Answer) -> None:
        super().__init__(repr(failure))
        self.failure = failure


def loopback_of(bind: str) -> str:
    """Return the address at which a server bound to `bind` answers on its own host."""
    return _EVERY_ADDRESS.get(bind, bind.strip("[]"))


def request(
    transport: Transport,
    port: int,
    method: Method,
    path: str,
    *,
    address: str = LOOPBACK,
    content: object = None,
    key: Secret | None = None,
    timeout_s: float,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Outcome:
    """Make one call and return the answer, whatever its status, or how it failed; `timeout_s` bounds the whole.

    `content` that is not None is sent as JSON.
    """
    started = time.monotonic()
    call = _Call(transport, address, port, deadline=started + timeout_s, limit_s=timeout_s)
    with contextlib.closing(call):
        response = call.begin(method, path, content=content, key=key)
        if not isinstance(response, http.client.HTTPResponse):
            return response
        body = bytearray()
        try:
            for piece in _pieces(response, max_bytes=max_bytes):
                body += piece
        except _FAULTS as error:
            return call.failure(error, status=response.status, body=bytes(body))
        headers = {name.lower(): value for name, value in response.getheaders()}
        took_s = time.monotonic() - started
        return Answer(status=response.status, headers=headers, body=bytes(body), took_s=took_s)


def stream_lines(
    transport: Transport,
    port: int,
    path: str,
    *,
    address: str = LOOPBACK,
    content: object,
    key: Secret | None = None,
    timeout_s: float,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Iterator[bytes]:
    """POST JSON and yield the answer's lines as they come, without their ends (server-sent events).

    Raise StreamFailed where the call fails, the status is not 200, or the answer breaks off.
    """
    started = time.monotonic()
    call = _Call(transport, address, port, deadline=started + timeout_s, limit_s=timeout_s)
    with contextlib.closing(call):
        response = call.begin("POST", path, content=content, key=key)
        if not isinstance(response, http.client.HTTPResponse):
            raise StreamFailed(response)
        rest = b""
        try:
            if response.status != http.client.OK:
                raise StreamFailed(_whole(response, started, max_bytes=max_bytes))
            for piece in _pieces(response, max_bytes=max_bytes):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (line.removesuffix(b"\r") for line in lines)
        except _FAULTS as error:
            raise StreamFailed(call.failure(error, status=response.status, body=rest)) from error
        if rest:
            yield rest.removesuffix(b"\r")


def _whole(response: http.client.HTTPResponse, started: float, *, max_bytes: int) -> Answer:
    """Read an answer to its end; raises what _pieces raises."""
    body = b"".join(_pieces(response, max_bytes=max_bytes))
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(status=response.status, headers=headers, body=body, took_s=time.monotonic() - started)


def _pieces(response: http.client.HTTPResponse, *, max_bytes: int) -> Iterator[bytes]:
    """Yield the body as it comes; raise IncompleteRead where it breaks off (http.client lets some breaks pass)."""
    taken = 0
    while piece := response.read1(PIECE_BYTES):
        taken += len(piece)
        if taken > max_bytes:
            raise _OverLimitError(f"the answer has over {max_bytes} bytes")
        yield piece
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)


class _OverLimitError(ValueError):
    """An answer beyond what the caller allowed."""


_FAULTS = (OSError, http.client.HTTPException, ValueError)


class _Call:
    """One connection for one call."""

    def __init__(self, transport: Transport, address: str, port: int, *, deadline: float, limit_s: float) -> None:
        self._transport = transport
        self._address = address
        self._port = port
        self._deadline = deadline
        self._limit_s = limit_s
        self._connected = False
        self._connection = http.client.HTTPConnection(address, port)

    def begin(
        self, method: Method, path: str, *, content: object, key: Secret | None
    ) -> http.client.HTTPResponse | Failure:
        """Connect, send the request and read the answer's head."""
        try:
            sock = self._transport.connect(self._address, self._port, timeout_s=self._limit_s)
        except TimeoutError:
            return TimedOut(limit_s=self._limit_s, connected=False)
        except OSError as error:
            return Refused(reason=error.strerror or str(error))
        self._connected = True
        self._connection.sock = _BoundedSocket(sock, deadline=self._deadline)
        headers: dict[str, str | bytes] = {"Accept": "*/*", "Connection": "close"}
        body = None
        if content is not None:
            body = json.dumps(content).encode()
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Authorization"] = f"Bearer {key.reveal()}".encode()
        try:
            self._connection.request(method, path, body=body, headers=headers)
            return self._connection.getresponse()
        except _FAULTS as error:
            return self.failure(error, status=None, body=b"")

    def failure(self, error: Exception, *, status: int | None, body: bytes) -> Failure:
        """Return what kind of failure an exception of http.client or the socket is."""
        match error:
            case TimeoutError():
                return TimedOut(limit_s=self._limit_s, connected=self._connected)
            case http.client.IncompleteRead():
                missing = f", {error.expected} bytes are missing" if error.expected else ""
                return Cut(status=status, body=body, reason=f"the answer broke off{missing}")
            case OSError():  # RemoteDisconnected, a reset, a broken pipe
                return Cut(status=status, body=body, reason=error.strerror or _printable(str(error)))
            case _OverLimitError():
                return Garbled(reason=str(error))
            case _:
                return Garbled(reason=f"{type(error).__name__}: {_printable(str(error))}")

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def _printable(text: str) -> str:
    """Return the beginning of what an engine may have written, fit for a terminal."""
    return text[:REASON_CHARACTERS].encode("unicode_escape").decode("ascii")


class _BoundedSocket:
    """The three things that http.client does with a socket, each within the call's deadline, however slow the trickle."""

    def __init__(self, sock: socket.socket, *, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self._readers = 0
        self._closed = False

    def sendall(self, content: bytes) -> None:
        """Send all of it."""
        self._arm()
        self._sock.sendall(content)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return the reading side."""
        assert mode == "rb"
        self._readers += 1
        return io.BufferedReader(_BoundedReader(self))

    def close(self) -> None:
        """Close once the reader is closed too, as a socket does: an answer outlives its connection object."""
        self._closed = True
        self._release()

    def receive_into(self, buffer: WriteableBuffer) -> int:
        """Read some bytes."""
        self._arm()
        return self._sock.recv_into(buffer)

    def reader_closed(self) -> None:
        """Be told that the reading side is done with."""
        self._readers -= 1
        self._release()

    def _release(self) -> None:
        if self._closed and self._readers <= 0:
            self._sock.close()

    def _arm(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the call took too long")
        self._sock.settimeout(left)


class _BoundedReader(io.RawIOBase):
    """The raw reading side of a bounded socket."""

    def __init__(self, bounded: _BoundedSocket) -> None:
        self._bounded = bounded

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._bounded.receive_into(buffer)

    def close(self) -> None:
        if not self.closed:
            self._bounded.reader_closed()
        super().close()
