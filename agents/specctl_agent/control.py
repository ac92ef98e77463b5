"""The agent's end of the control socket: requests read by specctl.control.wire, answered from what the loop last published."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specctl.control import wire
from specctl.errors import UnsupportedError, UsageError
from specctl_agent.serving import Spoken


class ControlSocket:
    """Speaks one request a line, one reply a line."""

    limit_bytes = wire.REQUEST_BYTES

    def __init__(self, answer: Callable[[wire.Request], Mapping[str, object]]) -> None:
        self._answer = answer

    def answer(self, received: bytes) -> Spoken | None:
        """Answer the first whole line."""
        line, end, _ = received.partition(b"\n")
        if not end:
            return None
        try:
            content = wire.answer(self._answer(wire.decode(line)))
        except (UsageError, UnsupportedError) as error:
            content = wire.refusal(error)
        return Spoken(content=content, used=len(line) + 1)

    def overlong(self) -> bytes:
        """Refuse a line that has no end."""
        return wire.refusal(UsageError(f"a line is longer than {wire.REQUEST_BYTES} bytes"))
