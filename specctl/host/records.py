"""Keep a server's records: one JSON line an act, durable before the op answers, never rewritten; the truth about a host."""

from __future__ import annotations

import json
import os
from typing import Dict, List, Mapping, Optional

from specctl.host import files, lease, told
from specctl.host.wire import USAGE, Call, OpError

NAME = "records.jsonl"
OLDER = "records.jsonl.1"
ROTATE_BYTES = 4 << 20
RECORD_BYTES = 256 << 10
MODE = 0o644
LATEST = 5


def append(call: Call) -> Mapping[str, object]:
    """Add one record; of a live change the agent's folder then tells too."""
    home, record = call.args.path("dir"), call.args.part("record").fields
    size = add(home, record)
    told.keep(home, record)
    return {"bytes": size}


def add(folder: str, record: Mapping[str, object], *, once: bool = False) -> int:
    """Add one record and return the bytes that it took; a line that a crash tore apart stays alone on its line.

    With `once`, a record that is among the latest already is not added again.
    """
    line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > RECORD_BYTES:
        raise OpError(USAGE, "the record is too long")
    path = os.path.join(folder, NAME)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    with lease.mutex(folder):
        if once and record in latest(folder, LATEST):
            return 0
        if os.path.exists(path) and os.path.getsize(path) + len(line) > ROTATE_BYTES:
            os.replace(path, os.path.join(folder, OLDER))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, MODE)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
            os.fsync(file.fileno())
        files.sync_dir(folder)
    return len(line)


def latest(folder: str, limit: int, lives: Optional[int] = None) -> List[Dict[str, object]]:
    """Return the latest records, oldest first; torn lines are left out.

    `lives`: so many live changes at most are among them, and they do not count: an agent may make many of them a day, and what was
    deployed must not be lost behind them.
    """
    found: List[Dict[str, object]] = []
    seen = 0
    for name in (NAME, OLDER):
        lines = (files.read(os.path.join(folder, name), ROTATE_BYTES + RECORD_BYTES) or b"").splitlines()
        for line in reversed(lines):
            if len(found) - (0 if lives is None else seen) >= limit:
                break
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if not isinstance(row, dict):
                continue
            if lives is not None and row.get("live") is True:
                if seen >= lives:
                    continue
                seen += 1
            found.append(row)
    return found[::-1]


def read(call: Call) -> Mapping[str, object]:
    """Return the latest records, of live changes `lives` at most."""
    args = call.args
    return {"records": latest(args.path("dir"), max(0, args.whole("limit", 50)), args.whole_or_none("lives"))}
