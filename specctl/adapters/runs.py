"""Measurements that are kept: one JSON file each under $XDG_STATE_HOME/specctl/runs, whole or absent; for bench, ab and calibrate.

A file of a newer format is refused in words, a damaged one is named and passed over: neither hides the others.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from specctl.adapters import lasting
from specctl.adapters.records import state_home
from specctl.errors import UnsupportedError, UsageError

VERSION = 1
MOST_BYTES = 64 * 1024 * 1024
LAST = re.compile(r"last(?:-(\d{1,4}))?")
# What a measurement of each command is called, and what shows those that are kept.
_CALLED = {
    "bench": ("bench", "specctl bench list"),
    "ab": ("experiment", "specctl ab --list"),
    "calibrate": ("calibration", "specctl calibrate --resume last"),
}
_ID = re.compile(r"[a-z]+-\d{8}-\d{6}-[0-9a-f]{4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One measurement: its id (kind, date, time UTC, part of the second), and what was kept of it."""

    id: str
    content: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is kept of one kind, oldest first; `faults`: a sentence for each file that cannot be used."""

    runs: tuple[Kept, ...] = ()
    faults: tuple[str, ...] = ()


def folder() -> Path:
    """Return where runs are kept."""
    return state_home() / "runs"


def new_id(kind: str, now: datetime | None = None) -> str:
    """Return an id that sorts by time, down to a 65,536th of a second; known before the measurement ends, to be shown."""
    at = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{kind}-{at:%Y%m%d-%H%M%S}-{at.microsecond * 65_536 // 1_000_000:04x}"


def keep(run_id: str, content: Mapping[str, object]) -> Path:
    """Write a measurement, in place of what was kept under the same id (one that goes on is kept level by level).

    Raises UsageError where it cannot be written.
    """
    assert _ID.fullmatch(run_id)
    path = folder() / f"{run_id}.json"
    whole = {"version": VERSION, "id": run_id, **content}
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lasting.replace_file(path, json.dumps(whole, indent=1, allow_nan=False).encode(), mode=0o600)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"the measurement could not be kept ({path}: {why})", hint="set XDG_STATE_HOME to a folder of yours"
        ) from error
    return path


def forget(run_id: str) -> None:
    """Remove a measurement that came to nothing; one that cannot be removed stays, which hurts nobody."""
    with contextlib.suppress(OSError):
        (folder() / f"{run_id}.json").unlink()


def listing(kind: str) -> Listing:
    """Return all that is kept of a kind."""
    found: list[Kept] = []
    faults: list[str] = []
    for path in sorted(folder().glob(f"{kind}-*.json")):
        try:
            found.append(_read(path))
        except (UnsupportedError, UsageError) as error:
            faults.append(error.message)
    return Listing(runs=tuple(found), faults=tuple(faults))


def read(kind: str, name: str) -> Kept:
    """Return one measurement by its id, the beginning of it, `last`, or `last-1` (the one before).

    Raises UsageError where there is none, or more than one, or its file is damaged; UnsupportedError for a newer format.
    """
    paths = sorted(folder().glob(f"{kind}-*.json"))
    called, shown = _CALLED[kind]
    if not paths:
        raise UsageError(f"no {called} is kept in {folder()}", hint=f"specctl {kind} --host H")
    if (found := LAST.fullmatch(name)) is not None:
        back = int(found[1] or 0)
        if back >= len(paths):
            raise UsageError(f"there is no {name}: {len(paths)} are kept", hint=shown)
        return _read(paths[-1 - back])
    full = name if name.startswith(f"{kind}-") else f"{kind}-{name}"
    fits = [path for path in paths if path.stem.startswith(full)]
    if len(fits) == 1:
        return _read(fits[0])
    if fits:
        raise UsageError(f"{name} could be {len(fits)} of them", hint=f"write more of it: {fits[-1].stem}")
    raise UsageError(f"no {called} {name} is kept", hint=shown)


def _read(path: Path) -> Kept:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        fields = json.loads(content) if len(content) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no whole JSON"
        raise UsageError(f"{path}: cannot be read: {why}", hint="remove the file") from error
    version = fields.get("version") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(version, int) or isinstance(version, bool):
        raise UsageError(f"{path}: not a measurement of specctl's", hint="remove the file")
    if version > VERSION:
        raise UnsupportedError(
            f"{path}: written by a newer specctl (format {version}; this one reads up to {VERSION})",
            hint="use the specctl that wrote it",
        )
    return Kept(id=path.stem, content=fields)
