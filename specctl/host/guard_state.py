"""What the guard knows of one deploy: values that survive a crash and a reboot as guard/state.json in the server's folder.

Times are kept as what is left of them, with the boot and the CLOCK_BOOTTIME at which that was so; the wall clock plays no part.
Whoever writes holds the lease's mutex (lease.py).
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, dataclass, field
from typing import Dict, Mapping, Optional

from specctl.host import files
from specctl.host.wire import REMOTE_COMMAND, Args, OpError

FOLDER = "guard"
STATE = "state.json"
STATE_MODE = 0o600
# Padded, so that the state can be rewritten in place on a full disk.
BLOCK_BYTES = 64 << 10

WATCHING = "watching"  # the operator is at work, or is gone and time runs
RESTORING = "restoring"  # what was there before is being put back
GATING = "gating"  # it was started and has not answered yet
STOPPING = "stopping"  # no healthy release is left
CONFIRMED = "confirmed"  # by the operator: nothing is ever taken back any more
ENDED = "ended"  # by the guard: its record has still to be written
OVER = (CONFIRMED, ENDED)


@dataclass(frozen=True)
class Goal:
    """A release and one of its algos."""

    id: str
    algo: str

    def __str__(self) -> str:
        return f"release {self.id}, {self.algo}"


@dataclass(frozen=True)
class GuardState:
    """One guarded deploy. `token` is the operator's lease, `own` the guard's; `back` None: there was nothing before, so stop.

    `before` is the start (invocation) of what ran when the guard was armed, `pinned` and `restarts` the start that is watched.
    `confirm_left_s` is None until the new server was seen ready, `load_left_s` until the old one was started again.
    """

    phase: str
    act: str
    who: str
    server: str
    host: str
    aim: Goal
    back: Optional[Goal]
    token: int
    boot: str
    seen_s: float
    hard_left_s: float
    hard_s: float
    confirm_s: float
    load_s: float
    stop_s: float
    own: Optional[int] = None
    confirm_left_s: Optional[float] = None
    load_left_s: Optional[float] = None
    rebooted: bool = False
    before: Optional[str] = None
    pinned: Optional[str] = None
    restarts: Optional[int] = None
    reason: Optional[str] = None
    tries: int = 0
    starts: int = 0
    version: Optional[str] = None
    target: Mapping[str, object] = field(default_factory=dict)
    record: Optional[Mapping[str, object]] = None


def place(folder: str) -> str:
    """Return the guard's folder of a server."""
    return os.path.join(folder, FOLDER)


def _path(folder: str) -> str:
    return os.path.join(place(folder), STATE)


def goal(args: Args) -> Optional[Goal]:
    """Build a goal from an object's fields; None from an empty one."""
    return Goal(args.text("id"), args.text("algo")) if args.fields else None


def parse(content: bytes) -> GuardState:
    """Build the state from the file's content; raises OpError when it is none."""
    try:
        row = Args(json.loads(content))
        aim = goal(row.part("aim"))
        if aim is None:
            raise OpError(REMOTE_COMMAND, "it has no aim")
        fields: Dict[str, object] = {
            name: value for name, value in row.fields.items() if name in GuardState.__dataclass_fields__
        }
        fields.update(aim=aim, back=goal(row.part("back")), target=row.part("target").fields)
        for name in ("seen_s", "hard_left_s", "hard_s", "confirm_s", "load_s", "stop_s"):
            fields[name] = row.number(name, 0.0)
        fields.update(token=row.whole("token", 0), phase=row.text("phase"), boot=row.text("boot"))
        return GuardState(**fields)  # type: ignore[arg-type]  # written by `_bytes`, whose digest nobody else changes
    except (ValueError, AttributeError, TypeError, OpError) as error:
        raise OpError(REMOTE_COMMAND, "the guard's state cannot be read", hint="specctl status --host H") from error


def _bytes(state: GuardState) -> bytes:
    return json.dumps(asdict(state)).encode("ascii").ljust(BLOCK_BYTES - 1) + b"\n"


def raw(folder: str) -> Optional[bytes]:
    """Return the file's content; None: no guard is armed."""
    return files.read(_path(folder))


def load(folder: str) -> Optional[GuardState]:
    """Return the state; None: no guard is armed."""
    found = raw(folder)
    return None if found is None else parse(found)


def save(folder: str, state: GuardState) -> bytes:
    """Write the state, durable, also on a full disk where it was written before; returns the file's content."""
    content = _bytes(state)
    try:
        files.replace(_path(folder), content, STATE_MODE)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not os.path.exists(_path(folder)):
            raise
        _overwrite(_path(folder), content)
    return content


def _overwrite(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.pwrite(descriptor, content, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
