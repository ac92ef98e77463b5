"""The operator's own copy of records: one JSON line each under XDG_STATE_HOME; the hosts' records are the truth."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def state_home() -> Path:
    """Return the folder for specctl's state of this user."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "specctl"


def keep(record: Mapping[str, object]) -> str | None:
    """Append a record to the operator's copy; return what went wrong, None when it is kept.

    A full disk here must not turn a good deploy into a failed one: the caller shows the text as a warning, and the host has the
    record.
    """
    line = json.dumps(record, sort_keys=True) + "\n"
    path = state_home() / "records.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"the record could not be kept here ({path}: {error.strerror or error}); the host has it"
    return None


def keep_crash(trace: str) -> str:
    """Write a traceback to a file of its own and return its path; the traceback itself where that fails."""
    try:
        folder = state_home() / "crashes"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, path = tempfile.mkstemp(prefix="specctl-", suffix=".txt", dir=folder)
        with os.fdopen(descriptor, "w") as file:
            file.write(trace)
    except OSError:
        return f"this:\n{trace}"
    return path
