"""The agent's control socket: requests and replies as versioned lines of JSON, read and written alike by both sides.

One request a line, one reply a line. A newer minor version may add fields, which an older reader leaves alone; another major
version is refused in words. Nothing here trusts the other side: sizes, types and texts are bounded.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from specctl.control import mode as modes
from specctl.errors import UnsupportedError, UsageError
from specctl.fleet.types import AgentMode

# 1.1: `snapshot` holds each server's `status` too, that holds `now`, and a point of `history` has an accept length.
# 1.2: a server's `status` holds `told_at`.
MAJOR, MINOR = 1, 2
REQUEST_BYTES = 16 << 10
REPLY_BYTES = 1 << 20
TEXT_CHARS = 500
# A pin that nobody remembers must end some day; a month is longer than any maintenance that it could be for.
LONGEST_S = 30 * 86_400.0
MOST_DECISIONS = 200
MOST_POINTS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asks of the agent; `server` None: the only one of the host, or all of them where that can be meant."""

    op: ClassVar[str] = ""
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Request):
    """How is the agent, what does it see and what has it decided."""

    op: ClassVar[str] = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Request):
    """The latest sample of every source, with its age in seconds, and what `status` says of each server."""

    op: ClassVar[str] = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Why(Request):
    """The newest decisions: inputs, rule, reason, and what would have had to differ."""

    op: ClassVar[str] = "why"
    limit: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class History(Request):
    """One point a second of running and waiting requests, tokens a second and accept length, the newest so many."""

    op: ClassVar[str] = "history"
    points: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Request):
    """Something that changes what the agent does: who wants it."""

    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin(Order):
    """Keep an algo, or one setting of its knobs, for a while: a pin wins over every decision."""

    op: ClassVar[str] = "pin"
    mode: modes.Mode
    for_s: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpin(Order):
    """Let the agent decide again."""

    op: ClassVar[str] = "unpin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(Order):
    """Act on nothing until somebody resumes."""

    op: ClassVar[str] = "hold"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Order):
    """End a hold, and a freeze that followed a switch whose gain did not show."""

    op: ClassVar[str] = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConduct(Order):
    """Observe, advise or act; `conduct` None: what the inventory says again."""

    op: ClassVar[str] = "mode"
    conduct: AgentMode | None


KINDS: Mapping[str, type[Request]] = {
    kind.op: kind for kind in (Status, Snapshot, Why, History, Pin, Unpin, Hold, Resume, SetConduct)
}


def encode(request: Request) -> bytes:
    """Return the request as a line."""
    body = {each.name: _plain(getattr(request, each.name)) for each in fields(request)}
    return _line({"v": f"{MAJOR}.{MINOR}", "op": request.op, **body}, REQUEST_BYTES)


def decode(line: bytes) -> Request:
    """Read a request; raises UsageError where it cannot be meant, UnsupportedError where it is of another version."""
    body = _object(line, REQUEST_BYTES)
    _same_major(body, "the request", "this agent", "specctl agent upgrade --host H")
    kind = KINDS.get(str(body.get("op")))
    if kind is None:
        raise UnsupportedError(
            f"this agent knows no request {str(body.get('op'))[:40]!r}", hint="specctl agent upgrade --host H"
        )
    given = {each.name: READERS[each.name](body.get(each.name), each.name) for each in fields(kind)}
    return kind(**given)  # type: ignore[arg-type]  # each reader returns what its field is


def answer(result: Mapping[str, object]) -> bytes:
    """Return a reply as a line; one that is too long says so instead."""
    try:
        return _line({"v": f"{MAJOR}.{MINOR}", "result": result}, REPLY_BYTES)
    except UsageError:
        return refusal(UsageError("the answer is too long", hint="ask for fewer entries"))


def refusal(error: UsageError | UnsupportedError) -> bytes:
    """Return the reply to a request that is refused."""
    told = {"kind": error.kind, "message": error.message[:TEXT_CHARS], "hint": error.hint}
    return _line({"v": f"{MAJOR}.{MINOR}", "error": told}, REPLY_BYTES)


def result_of(line: bytes) -> Mapping[str, object]:
    """Read a reply; raises the UsageError or UnsupportedError that the agent answered, or that it is no reply of this version."""
    body = _object(line, REPLY_BYTES)
    _same_major(body, "the agent's reply", "this specctl", "specctl agent upgrade --host H, with the newer specctl")
    error = body.get("error")
    if isinstance(error, Mapping):
        hint = error.get("hint")
        kind = UnsupportedError if error.get("kind") == UnsupportedError.kind else UsageError
        raise kind(str(error.get("message"))[:TEXT_CHARS], hint=None if hint is None else str(hint)[:TEXT_CHARS])
    result = body.get("result")
    if not isinstance(result, dict):
        raise UsageError("the reply holds neither a result nor an error")
    return result


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, modes.Mode) else value


def _line(body: Mapping[str, object], limit: int) -> bytes:
    line = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    if len(line) > limit:
        raise UsageError(f"a line of {len(line)} bytes is longer than {limit}")
    return line


def _object(line: bytes, limit: int) -> Mapping[str, object]:
    if len(line) > limit:
        raise UsageError(f"a line is longer than {limit} bytes")
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError("the line is no JSON") from error
    if not isinstance(body, dict):
        raise UsageError("the line is no JSON object")
    return body


def _same_major(body: Mapping[str, object], theirs: str, ours: str, hint: str) -> None:
    version = body.get("v")
    major, _, minor = version.partition(".") if isinstance(version, str) else ("", "", "")
    if not (_whole(major) and _whole(minor)):
        raise UsageError(f"{theirs} names no version")
    if int(major) != MAJOR:
        raise UnsupportedError(f"{theirs} is of version {int(major)}, and {ours} speaks version {MAJOR}", hint=hint)


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{name} is missing")
    if len(value) > TEXT_CHARS or not value.isprintable():
        raise UsageError(f"{name} is longer than {TEXT_CHARS} characters, or holds control characters")
    return value


def _optional_text(value: object, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _mode(value: object, name: str) -> modes.Mode:
    try:
        return modes.parse(_text(value, name))
    except ValueError as error:
        raise UsageError(str(error), hint="none, dflash, ddtree or ddtree:tree_budget=16") from error


def _seconds(value: object, name: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 1.0 <= value <= LONGEST_S:
        raise UsageError(f"{name} is no number of seconds from 1 to {LONGEST_S:.0f}")
    return float(value)


def _count(most: int) -> Callable[[object, str], int]:
    def read(value: object, name: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise UsageError(f"{name} is no whole number from 1 to {most}")
        return value

    return read


def _conduct(value: object, name: str) -> AgentMode | None:
    if value is None:
        return None
    try:
        return AgentMode(value)
    except ValueError as error:
        raise UsageError(f"{name} is none of observe, advise and act") from error


READERS: Mapping[str, Callable[[object, str], object]] = {
    "server": _optional_text,
    "limit": _count(MOST_DECISIONS),
    "points": _count(MOST_POINTS),
    "who": _text,
    "mode": _mode,
    "for_s": _seconds,
    "reason": _text,
    "conduct": _conduct,
}
