"""Show a server's log: its first lines, or its last and, if asked, what comes after them until cancelled."""

from __future__ import annotations

from typing import List, Mapping

from specctl.host import services
from specctl.host.lines import LineQueue
from specctl.host.wake import Wake
from specctl.host.wire import Call

LINES = 100
LINES_AT_ONCE = 500
CHARS_AT_ONCE = 1 << 20
PERIOD_S = 1.0


def _emit(call: Call, lines: List[str]) -> None:
    for begin in range(0, len(lines), LINES_AT_ONCE):
        call.emit({"lines": lines[begin : begin + LINES_AT_ONCE], "lost": False})


def logs(call: Call) -> Mapping[str, object]:
    """Emit log lines; `invocation` narrows them to one start where the service manager can tell starts apart."""
    args = call.args
    service = services.of(args)
    count = max(0, args.whole("lines", LINES))
    invocation = args.text_or_none("invocation")
    first = args.whole_or_none("first")
    if first is not None:
        opening = service.head(first, invocation)
        _emit(call, opening)
        return {"lines": len(opening)}
    if not args.flag("follow"):
        found = service.tail(count, invocation)
        _emit(call, found)
        return {"lines": len(found)}
    wake = Wake()
    queue = LineQueue(wake.ring)
    source = service.follow(invocation, count)
    source.start(queue)
    total = 0
    try:
        while not call.cancelled.is_set():
            wake.wait(PERIOD_S / 4)
            lines, lost = queue.take(LINES_AT_ONCE, CHARS_AT_ONCE)
            total += len(lines)
            if lines or lost:
                call.emit({"lines": lines, "lost": lost})
    finally:
        source.stop()
        wake.close()
    return {"lines": total}
