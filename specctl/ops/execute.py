"""Run a command of the operator's own on a host, its output passed on as it comes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from specctl.adapters.transport import Stream, Transport
from specctl.errors import SpecctlError

PIECE_BYTES = 65536

Item = tuple[str, bytes] | SpecctlError


def run_there(transport: Transport, argv: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield ("out" | "err", bytes) as they come and last ("status", its number); raises ConnectError when the host is lost."""
    stream = transport.open(argv)
    try:
        stream.end_input()
        items: queue.Queue[Item | None] = queue.Queue(maxsize=64)
        for name, read in (("out", stream.read), ("err", stream.read_error)):
            threading.Thread(target=_pass_on, args=(name, read, items), daemon=True).start()
        open_pipes = 2
        while open_pipes:
            item = items.get()
            if item is None:
                open_pipes -= 1
            elif isinstance(item, SpecctlError):
                raise item
            else:
                yield item
        yield "status", str(_status(stream)).encode()
    finally:
        stream.close()


def _pass_on(name: str, read: Callable[..., bytes], items: queue.Queue[Item | None]) -> None:
    try:
        while piece := read(PIECE_BYTES):
            items.put((name, piece))
    except SpecctlError as error:
        items.put(error)
    items.put(None)


def _status(stream: Stream) -> int:
    """Return the exit status as a shell counts: a signal as 128 + its number."""
    status = stream.wait()
    return status if status >= 0 else 128 - status
