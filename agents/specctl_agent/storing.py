"""Keep small things in files, whole or not at all and bounded; a disk that is full or read-only never stops the agent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

from specctl.rollout import reading
from specctl_agent.log import ERROR, INFO, WARNING, Log

FILE_BYTES = 4 << 20
KEPT = ".kept"
FORMAT = "format"


class Complaints:
    """Says a trouble once when it comes, and once when it is over; not once a second."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._open: dict[str, str] = {}

    def trouble(self, subject: str, reason: str) -> None:
        """Say that something is not as it should be, unless that was said."""
        if self._open.get(subject) != reason:
            self._open[subject] = reason
            self._log(WARNING, "trouble", subject=subject, reason=reason)

    def over(self, subject: str) -> None:
        """Say that a trouble is over, where there was one."""
        if self._open.pop(subject, None) is not None:
            self._log(INFO, "recovered", subject=subject)

    @property
    def open(self) -> Mapping[str, str]:
        """Return the troubles that there are, by subject."""
        return dict(self._open)


class StateFile:
    """One JSON object in a file, with the format that it was written in; `lost`: why what was saved could not be loaded."""

    def __init__(self, path: Path, form: int, complaints: Complaints, log: Log) -> None:
        self._path = path
        self._form = form
        self._complaints = complaints
        self._log = log
        self.lost: str | None = None

    def load(self) -> Mapping[str, object]:
        """Return what was saved, empty where nothing was; what cannot be read is kept aside, and that is said.

        `lost` then says why.
        """
        try:
            with self._path.open("rb") as file:
                content = file.read(FILE_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.lost = f"cannot be read: {error.strerror}"
            self._complaints.trouble(self._path.name, self.lost)
            return {}
        reason = None
        try:
            found = json.loads(content) if len(content) <= FILE_BYTES else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            reason = "it is damaged"
        elif (form := reading.whole(found.get(FORMAT))) is None:
            reason = "it names no format"
        elif form > self._form:
            reason = f"a newer agent wrote it (format {form}, this one reads {self._form})"
        if reason is None:
            assert isinstance(found, dict)
            return found
        self.lost = reason
        aside = self._path.with_name(self._path.name + KEPT)
        with contextlib.suppress(OSError):
            self._path.replace(aside)
        self._log(
            ERROR, "state-kept-aside", file=str(self._path), kept=str(aside), reason=reason, then="starting clean"
        )
        return {}

    def save(self, fields: Mapping[str, object]) -> bool:
        """Put it in the place of what was saved before; returns whether it is on the disk. What fails is said once."""
        scratch = self._path.with_name(f"{self._path.name}.new")
        try:
            with scratch.open("wb") as file:
                file.write(json.dumps({**fields, FORMAT: self._form}, separators=(",", ":")).encode())
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self._path)
            _sync(self._path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                scratch.unlink()
            self._complaints.trouble(self._path.name, f"cannot be written: {error.strerror}")
            return False
        self._complaints.over(self._path.name)
        return True


class AlreadyRunningError(Exception):
    """Another agent has the folder."""


def only_one(folder: Path) -> int:
    """Take the folder until this process ends; returns the descriptor that holds it. Raises AlreadyRunningError, OSError."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise AlreadyRunningError(
            f"another agent runs on this host{f' (process {holder})' if holder else ''}"
        ) from error
    with contextlib.suppress(OSError):  # a full disk keeps nobody from holding a lock
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
