"""What crosses the wire between a session and the operator: arguments in, events, a result or an error out."""

from __future__ import annotations

import json
import os
import threading
from typing import Callable, List, Mapping, Optional, Type, TypeVar

USAGE = "usage"
UNSUPPORTED = "unsupported"
LOCK_HELD = "lock-held"
REMOTE_COMMAND = "remote-command"
GOING_DOWN = "going-down"
CANCELLED = "cancelled"
INTERNAL = "internal"

_Kind = TypeVar("_Kind")


class OpError(Exception):
    """An op that could not be done: a kind of the list above, one sentence, and what would help."""

    def __init__(
        self, kind: str, message: str, *, hint: Optional[str] = None, status: Optional[int] = None, output: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.status = status
        self.output = output

    def as_wire(self) -> Mapping[str, object]:
        """Return the error as a reply carries it."""
        return {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
            "status": self.status,
            "output": self.output,
        }


class Args:
    """The arguments of one op; each getter checks the type and refuses (kind usage) what it cannot mean."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields

    def text(self, name: str) -> str:
        """Return a text that must be there and not be empty."""
        found = self.text_or_none(name)
        if not found:
            raise OpError(USAGE, f"argument {name} is missing")
        return found

    def text_or_none(self, name: str) -> Optional[str]:
        """Return a text, or None where there is none."""
        return self._typed(name, str)

    def path(self, name: str) -> str:
        """Return an absolute path that must be there; a leading ~ is the session's user's home."""
        found = os.path.expanduser(self.text(name))
        if not os.path.isabs(found):
            raise OpError(USAGE, f"argument {name} is no absolute path")
        return os.path.normpath(found)

    def whole(self, name: str, default: int) -> int:
        """Return a whole number."""
        found = self.whole_or_none(name)
        return default if found is None else found

    def whole_or_none(self, name: str) -> Optional[int]:
        """Return a whole number, or None where there is none."""
        found = self.fields.get(name)
        if found is None:
            return None
        if not isinstance(found, int) or isinstance(found, bool):
            raise OpError(USAGE, f"argument {name} is no whole number")
        return found

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        found = self.number_or_none(name)
        return default if found is None else found

    def number_or_none(self, name: str) -> Optional[float]:
        """Return a number, or None where there is none."""
        found = self.fields.get(name)
        if found is None:
            return None
        if not isinstance(found, (int, float)) or isinstance(found, bool):
            raise OpError(USAGE, f"argument {name} is no number")
        return float(found)

    def flag(self, name: str) -> bool:
        """Return whether it is true; absent is false."""
        return self._typed(name, bool) or False

    def has(self, name: str) -> bool:
        """Say whether the argument is there and not null."""
        return self.fields.get(name) is not None

    def part(self, name: str) -> Args:
        """Return an object's arguments; absent is an empty object."""
        return Args(self._typed(name, dict) or {})

    def parts(self, name: str) -> List[Args]:
        """Return the arguments of a list of objects; absent is an empty list."""
        rows = self._typed(name, list) or []
        if not all(isinstance(row, dict) for row in rows):
            raise OpError(USAGE, f"argument {name} is no list of objects")
        return [Args(row) for row in rows]

    def texts(self, name: str) -> List[str]:
        """Return a list of texts; absent is an empty list."""
        rows = self._typed(name, list) or []
        if not all(isinstance(row, str) for row in rows):
            raise OpError(USAGE, f"argument {name} is no list of texts")
        return [str(row) for row in rows]

    def _typed(self, name: str, kind: Type[_Kind]) -> Optional[_Kind]:
        found = self.fields.get(name)
        if found is not None and not isinstance(found, kind):
            raise OpError(USAGE, f"argument {name} is no {kind.__name__}")
        return found


class Replies:
    """Write reply lines, each whole, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, number: int, key: str, value: Mapping[str, object]) -> None:
        """Send one line; blocks while the operator does not read."""
        line = json.dumps({"id": number, key: value}, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]


class Call:
    """One op under way: its arguments, where its events go, and whether it was cancelled."""

    def __init__(self, number: int, args: Args, emit: Callable[[Mapping[str, object]], None]) -> None:
        self.number = number
        self.args = args
        self.emit = emit
        self.cancelled = threading.Event()

    def pause(self, seconds: float) -> None:
        """Wait, but not longer than until the call is cancelled (then raise kind cancelled)."""
        if self.cancelled.wait(seconds):
            raise OpError(CANCELLED, "cancelled")
