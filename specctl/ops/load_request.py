"""Send one request and note when its tokens come; a reader that can be hung up on from another thread."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from specctl.adapters import http
from specctl.adapters.transport import Stream, Transport
from specctl.errors import SpecctlError
from specctl.measure import load_stream
from specctl.measure.load import Level, Timing
from specctl.measure.load_plan import Send
from specctl.ops.engine_http import EngineClient, failure_text

PATH = "/generate"
# Every event repeats the answer so far: 20,000 tokens come to a gigabyte or so.
MOST_BYTES = 4 << 30


class Line:
    """A way to a host that notes when its one connection stood, and can be cut by another thread."""

    def __init__(self, transport: Transport, clock: Callable[[], float]) -> None:
        self._transport = transport
        self._clock = clock
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self.connected_s: float | None = None
        self.cut = False

    @property
    def host(self) -> str:
        """The inventory's name of the host."""
        return self._transport.host

    def open(self, argv: Sequence[str], *, pty: bool = False) -> Stream:
        """Start a program on the host."""
        return self._transport.open(argv, pty=pty)

    def connect(self, address: str, port: int, *, timeout_s: float) -> socket.socket:
        """Return a socket to the engine; the request follows at once, so its moment is when the request was sent."""
        sock = self._transport.connect(address, port, timeout_s=timeout_s)
        with self._lock:
            self._sock = sock
            if self.cut:
                _shut(sock)
        self.connected_s = self._clock()
        return sock

    def close(self) -> None:
        """Leave the connection to the host as it is: others use it."""

    def hang_up(self) -> None:
        """End the request where it stands; an engine gives up what nobody reads."""
        with self._lock:
            self.cut = True
            if self._sock is not None:
                _shut(self._sock)


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class _Heard:
    """What has come so far."""

    first_s: float | None = None
    at_s: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    end: load_stream.End | None = None
    fault: str | None = None

    def take(self, event: load_stream.Event | None, now: float) -> int:
        """Take one event in and return the tokens that are new with it."""
        match event:
            case load_stream.Tokens(count=count):
                return self._count(count, now)
            case load_stream.End():
                self.end = event
                return self._count(event.count, now)
            case load_stream.Fault(words=words):
                self.fault = words
        return 0

    def _count(self, count: int | None, now: float) -> int:
        if count == 0:
            return 0
        self.first_s = now if self.first_s is None else self.first_s
        before = self.counts[-1] if self.counts else 0
        if count is None or count <= before:
            return 0
        self.at_s.append(now)
        self.counts.append(count)
        return count - before


def send(
    client: EngineClient,
    request: Send,
    level: Level,
    line: Line,
    *,
    slot: int,
    timeout_s: float,
    clock: Callable[[], float],
    tell: Callable[[int], None],
) -> Timing:
    """Send a request and read its answer to the end; `tell` is given the tokens of each chunk. No fault of an engine raises."""
    asked_s, heard = clock(), _Heard()
    failure: str | None = None
    try:
        lines = _lines(client, request, level, line, timeout_s)
        with contextlib.closing(lines):  # type: ignore[type-var]  # a generator, which its type does not say
            for each in lines:
                tell(heard.take(load_stream.event(each), clock()))
    except http.StreamFailed as error:
        failure = failed_words(error)
    except SpecctlError as error:
        failure = error.message
    timing = Timing(
        number=request.number,
        prompt=request.prompt.id,
        asked_tokens=request.tokens,
        slot=slot,
        due_s=request.due_s,
        sent_s=asked_s if line.connected_s is None else line.connected_s,
        ended_s=clock(),
        warmup=request.warmup,
    )
    return _told(timing, heard, failure, hung_up=line.cut)


def _lines(client: EngineClient, request: Send, level: Level, line: Line, timeout_s: float) -> Iterator[bytes]:
    return http.stream_lines(
        line,
        client.server.port,
        PATH,
        address=http.loopback_of(client.server.bind),
        content=request.body(level),
        key=client.key,
        timeout_s=timeout_s,
        max_bytes=MOST_BYTES,
    )


def _told(timing: Timing, heard: _Heard, failure: str | None, *, hung_up: bool) -> Timing:
    """Return the timing with what was heard, and why it is no whole answer."""
    timing = replace(timing, first_s=heard.first_s, at_s=tuple(heard.at_s), counts=tuple(heard.counts))
    end = heard.end
    if end is None:
        if hung_up:
            return replace(timing, unfinished=True)
        return replace(timing, failure=heard.fault or failure or "the stream ended before the answer did")
    timing = replace(
        timing,
        prompt_tokens=end.prompt_tokens,
        cached_tokens=end.cached_tokens,
        output_tokens=end.count,
        verify_steps=end.verify_steps,
        finish=end.reason,
    )
    return replace(timing, failure=heard.fault or _short(end, timing.asked_tokens))


def _short(end: load_stream.End, asked: int) -> str | None:
    """Say why an answer that ended is not what was asked for; None where it is."""
    if end.reason == "abort":
        return f"aborted by the engine{f': {end.words}' if end.words else ''}"
    if end.count is None:
        return "the engine does not say how many tokens it generated (completion_tokens)"
    return None if end.count == asked else f"{end.count} of {asked} tokens came ({end.reason})"


def failed_words(error: http.StreamFailed) -> str:
    """Say in a few words why a stream failed."""
    if isinstance(error.failure, http.Answer):
        said = load_stream.refusal(error.failure.body)
        return f"status {error.failure.status}{f': {said}' if said else ''}"
    return failure_text(error.failure)
