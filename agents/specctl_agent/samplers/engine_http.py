"""One kept connection to an engine on this host: bounded answers in bounded time, the key in a header and nowhere else.

Its own few lines of HTTP/1.1 in place of http.client, which takes ssl and email with it: 6 MB of the agent's 50. It speaks to
loopback in the clear; what it cannot read it refuses.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specctl.errors import SpecctlError

MAX_HEAD_BYTES = 1 << 14
MAX_KEY_BYTES = 4096
CHUNK_BYTES = 1 << 16
_MAX_CHUNK_LINE = 1024


class NoAnswerError(SpecctlError):
    """The engine gave no usable answer; the message says what came instead, never with a key in it."""

    kind = "no-answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, read whole."""

    status: int
    body: bytes


class EngineHttp:
    """GET from one engine; not for two threads at once. The key is read anew with each connection, for it may be exchanged."""

    def __init__(self, host: str, port: int, *, key_file: Path | None = None) -> None:
        self._host = host
        self._port = port
        self._key_file = key_file
        self._socket: socket.socket | None = None
        self._credential = b""
        self._rest = b""

    def get(self, path: str, *, limit: int, within_s: float) -> Answer:
        """Return the answer; raises NoAnswerError where none of at most `limit` bytes came within that time.

        A kept connection that the engine has closed meanwhile is opened anew, once.
        """
        until = time.monotonic() + within_s
        kept = self._socket is not None
        try:
            return self._exchange(path, limit, until)
        except (ConnectionError, EOFError) as error:
            self.close()
            if not kept:
                raise NoAnswerError(f"GET {path}: {_words(error)}") from error
        except (OSError, NoAnswerError) as error:
            self.close()
            raise NoAnswerError(f"GET {path}: {_words(error)}") from error
        try:
            return self._exchange(path, limit, until)
        except (OSError, EOFError, NoAnswerError) as error:
            self.close()
            raise NoAnswerError(f"GET {path}: {_words(error)}") from error

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket, self._rest = None, b""

    def _exchange(self, path: str, limit: int, until: float) -> Answer:
        if self._rest:
            self.close()  # somebody spoke without being asked: what comes next may be another request's answer
        if self._socket is None:
            self._credential = self._read_key()
            self._socket = socket.create_connection((self._host, self._port), timeout=_left(until))
        request = f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAccept: */*\r\n".encode("ascii")
        self._socket.settimeout(_left(until))
        self._socket.sendall(request + self._credential + b"\r\n")
        status, headers = self._head(until)
        body = self._body(status, headers, limit, until)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(status=status, body=body)

    def _read_key(self) -> bytes:
        if self._key_file is None:
            return b""
        with self._key_file.open("rb") as file:
            key = file.read(MAX_KEY_BYTES + 1).strip()
        if not key or len(key) > MAX_KEY_BYTES or any(byte < 0x21 or byte > 0x7E for byte in key):
            raise NoAnswerError(
                f"{self._key_file} holds no key", hint=f"put the key, and nothing else, into {self._key_file}"
            )
        return b"Authorization: Bearer " + key + b"\r\n"

    def _more(self, until: float) -> bytes:
        assert self._socket is not None
        self._socket.settimeout(_left(until))
        part = self._socket.recv(CHUNK_BYTES)
        if not part:
            raise EOFError("closed in the middle of an answer")
        return part

    def _head(self, until: float) -> tuple[int, Mapping[str, str]]:
        """Read the status line and the header fields, the last of each name."""
        found = self._rest
        while (end := found.find(b"\r\n\r\n")) < 0:
            if len(found) > MAX_HEAD_BYTES:
                raise NoAnswerError("the head of the answer is too long")
            found += self._more(until)
        self._rest = found[end + 4 :]
        first, *lines = found[:end].decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isascii() and words[1].isdigit()):
            raise NoAnswerError("what answers speaks no HTTP/1.1")
        fields = (line.partition(":") for line in lines)
        return int(words[1][:3]), {name.strip().lower(): value.strip() for name, _, value in fields}

    def _body(self, status: int, headers: Mapping[str, str], limit: int, until: float) -> bytes:
        if status in (204, 304) or status < 200:
            return b""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunked(limit, until)
        said = headers.get("content-length")
        if said is None:
            return self._to_the_end(limit, until)
        if not said.isascii() or not said.isdigit() or len(said) > 15:
            raise NoAnswerError("the answer tells no sensible length")
        if int(said) > limit:
            raise NoAnswerError(f"the answer has {said} bytes, over the limit of {limit}")
        return self._exactly(int(said), until)

    def _exactly(self, count: int, until: float) -> bytes:
        parts, have = [self._rest], len(self._rest)
        while have < count:
            part = self._more(until)
            parts.append(part)
            have += len(part)
        whole = b"".join(parts)
        self._rest = whole[count:]
        return whole[:count]

    def _to_the_end(self, limit: int, until: float) -> bytes:
        parts, have = [self._rest], len(self._rest)
        with contextlib.suppress(EOFError):
            while have <= limit:
                parts.append(self._more(until))
                have += len(parts[-1])
        self.close()
        if have > limit:
            raise NoAnswerError(f"the answer is over the limit of {limit} bytes")
        return b"".join(parts)

    def _chunked(self, limit: int, until: float) -> bytes:
        parts, have = [], 0
        while True:
            size = self._chunk_size(until)
            if size == 0:
                break
            have += size
            if have > limit:
                raise NoAnswerError(f"the answer is over the limit of {limit} bytes")
            parts.append(self._exactly(size, until))
            if self._line(until):
                raise NoAnswerError("a chunk of the answer has no end")
        while self._line(until):
            pass  # trailers
        return b"".join(parts)

    def _chunk_size(self, until: float) -> int:
        word = self._line(until).split(b";", 1)[0].strip()
        if not word or len(word) > 8 or not all(byte in b"0123456789abcdefABCDEF" for byte in word):
            raise NoAnswerError("a chunk of the answer tells no size")
        return int(word, 16)

    def _line(self, until: float) -> bytes:
        while (end := self._rest.find(b"\r\n")) < 0:
            if len(self._rest) > _MAX_CHUNK_LINE:
                raise NoAnswerError("a line between chunks is too long")
            self._rest += self._more(until)
        line, self._rest = self._rest[:end], self._rest[end + 2 :]
        return line


def _left(until: float) -> float:
    """Return the seconds that are left; raises TimeoutError where none are."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("no whole answer in time")
    return left


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no whole answer in time"
    return str(error) or type(error).__name__
