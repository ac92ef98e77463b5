"""What the agent asks the root-owned performer to do, and what it answers: a small JSON file each, whole or not there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.rollout import plain, reading, server_note

FORMAT = 1
REQUEST_BYTES = 8192
RESULT_BYTES = 1 << 16
REASON_CHARACTERS = 500
ID = re.compile(r"[0-9a-f]{32}\Z")
SERVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
RELEASE = SERVER
SWITCH, NOTE_LIVE = "switch", "note live"
FOLDER = "requests"
# The performer comes within a moment of the request, or is broken: what lay longer was asked under other circumstances.
FRESH_S = 120.0


class RequestError(ValueError):
    """A request, or a result, that cannot be meant; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One thing to do for one server.

    SWITCH: put `release`'s `algo` in the place of what runs. NOTE_LIVE: the running engine was told `mode` instead of `was`;
    record it. `boot` and `at_s` (seconds of CLOCK_BOOTTIME) say when it was asked.
    """

    id: str
    server: str
    kind: str
    reason: str
    boot: str
    at_s: float
    release: str = ""
    algo: str = ""
    mode: str = ""
    was: str = ""
    took_s: float | None = None
    proof: str | None = None
    evidence: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it as it is written."""
        return _text(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a request ended, or that it was taken up: `done`, `refused` (nothing was changed), or in the words of the record.

    `serving` is release and algo of what serves in the end; None: nothing does, or it is not known.
    """

    id: str
    outcome: str
    reason: str = ""
    serving: tuple[str, str] | None = None
    proof: str | None = None
    evidence: tuple[str, ...] = ()
    durations_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Claim that what was asked for serves."""
        return self.outcome == DONE

    @property
    def untouched(self) -> bool:
        """Claim that nothing was changed."""
        return self.outcome == REFUSED

    def text(self) -> str:
        """Return it as it is written."""
        return _text(self)


# TAKEN_UP is no end: the performer has the request, and is at work as long as it holds the lock.
DONE, REFUSED, TAKEN_UP = "done", "refused", "taken up"
LOCK = ".lock"


def _text(value: Request | Result) -> str:
    fields = plain.dump(value)
    assert isinstance(fields, Mapping)
    return json.dumps({"format": FORMAT, **fields}) + "\n"


def _fields(content: bytes, limit: int) -> Mapping[str, object]:
    if len(content) > limit:
        raise RequestError(f"it has over {limit} bytes")
    try:
        found = reading.mapping(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise RequestError("it is no JSON") from error
    if found.get("format") != FORMAT:
        raise RequestError(f"its format is {found.get('format')!r}, not {FORMAT}")
    return found


def read_request(content: bytes) -> Request:
    """Read a request of whoever may write there; raises RequestError."""
    try:
        found = plain.load(Request, _fields(content, REQUEST_BYTES))
    except plain.PlainError as error:
        raise RequestError(str(error)) from error
    if not ID.match(found.id):
        raise RequestError("its id is none")
    if not SERVER.match(found.server):
        raise RequestError("its server is no name")
    if found.kind not in (SWITCH, NOTE_LIVE):
        raise RequestError(f"nothing is known of {found.kind[:40]!r}")
    if found.kind == SWITCH and not RELEASE.match(found.release):
        raise RequestError("its release is no name")
    if len(found.reason) > REASON_CHARACTERS or not found.reason.isprintable():
        raise RequestError("its reason is no line of text")
    return found


def mode_of(text: str) -> Mode:
    """Read a mode that a request names; raises RequestError."""
    try:
        return modes.parse(text)
    except ValueError as error:
        raise RequestError(str(error)) from error


def read_result(folder: Path, request_id: str) -> Result | None:
    """Return the performer's answer to a request from a server's agent folder; None where there is none that can be read."""
    try:
        with (folder / server_note.RESULTS / f"{request_id}.json").open("rb") as file:
            content = file.read(RESULT_BYTES + 1)
        return plain.load(Result, _fields(content, RESULT_BYTES))
    except (OSError, RequestError, plain.PlainError):
        return None


def file_request(folder: Path, request: Request) -> Path:
    """Put a request where the performer is woken by it; raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{request.id}.json"
    scratch = folder / f".{request.id}"
    try:
        with scratch.open("xb") as file:
            file.write(request.text().encode())
            file.flush()
            os.fsync(file.fileno())
        scratch.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path


def is_filed(folder: Path, request_id: str) -> bool:
    """Claim that a request lies there, and nobody has taken it up."""
    return (folder / f"{request_id}.json").exists()


def at_work(folder: Path) -> bool:
    """Claim that the performer is at work on something of a server, by the lock in the server's agent folder."""
    try:
        descriptor = os.open(folder / server_note.RESULTS / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def withdraw(folder: Path, request_id: str) -> bool:
    """Take back a request that nobody took yet; return whether it was still there."""
    try:
        (folder / f"{request_id}.json").unlink()
    except OSError:
        return False
    return True
