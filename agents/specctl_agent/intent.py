"""The journal of intents: what is about to be done to a server is on the disk before it is done, so that a crash can be mended.

One JSON line a step, synced; bounded, by leaving out what ended long ago. A line that a crash tore apart is no step.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from specctl.control.mode import Mode
from specctl.control.mode import parse as parse_mode
from specctl.rollout import reading
from specctl_agent.actuators import NOTHING, Cost, Errand, IntentError

NAME = "intents.jsonl"
MOST_BYTES = 256 << 10
KEPT_ENDED = 50
BEGUN, ENDED = "begun", "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One switch as the journal has it: the steps that were begun, in order, each with its facts."""

    id: str
    server: str
    cost: Cost
    old: Mode
    new: Mode
    reason: str
    boot: str
    steps: tuple[tuple[str, Mapping[str, object]], ...] = ()
    outcome: str | None = None

    def facts_of(self, step: str) -> Mapping[str, object] | None:
        """Return the facts of the newest step of that name; None where it was not begun."""
        return next((facts for name, facts in reversed(self.steps) if name == step), None)


class Intents:
    """The journal of one host's agent, for the errands of all its servers at the same time.

    `begin`, `mark` and `end` write, and raise IntentError where the disk refuses. `unread`: why the past is not known, or None.
    """

    def __init__(self, path: Path, *, boot: str, wall: Callable[[], float]) -> None:
        self._path = path
        self._boot = boot
        self._wall = wall
        # The loop asks for what is known, and must not wait for a disk: two locks, the file's taken before the other.
        self._file_lock = threading.Lock()
        self._lock = threading.Lock()
        self.unread: str | None = None
        self._known: dict[str, Intent] = {}
        try:
            self._known = {intent.id: intent for intent in _read(path)}
        except OSError as error:
            self.unread = f"cannot be read: {error.strerror}; what was begun before is not known"

    @property
    def all(self) -> tuple[Intent, ...]:
        """Return what the journal has, oldest first."""
        with self._lock:
            return tuple(self._known.values())

    def open_ones(self, server: str) -> tuple[Intent, ...]:
        """Return the intents of a server that have no end, oldest first."""
        return tuple(intent for intent in self.all if intent.server == server and intent.outcome is None)

    def begin(self, server: str, cost: Cost, old: Mode, new: Mode, reason: str) -> Errand:
        """Write down what is about to be done; returns the errand that carries it out."""
        intent = Intent(id=uuid.uuid4().hex, server=server, cost=cost, old=old, new=new, reason=reason, boot=self._boot)
        fields = {
            "id": intent.id,
            "step": BEGUN,
            "server": server,
            "cost": cost.value,
            "old": str(old),
            "new": str(new),
            "reason": reason,
            "boot": self._boot,
        }
        with self._file_lock:
            self._write(fields)
            with self._lock:
                self._known[intent.id] = intent
        return self.errand(intent)

    def errand(self, intent: Intent) -> Errand:
        """Return the errand of an intent, to go on with it."""
        return Errand(id=intent.id, reason=intent.reason, mark=lambda step, facts: self.mark(intent.id, step, facts))

    def mark(self, intent_id: str, step: str, facts: Mapping[str, object] = NOTHING) -> None:
        """Write down a step that is about to be taken."""
        with self._file_lock:
            self._write({"id": intent_id, "step": step, "facts": dict(facts)})
            with self._lock:
                found = self._known[intent_id]
                self._known[intent_id] = replace(found, steps=(*found.steps, (step, dict(facts))))

    def end(self, intent_id: str, outcome: str) -> None:
        """Write down how it ended."""
        with self._file_lock:
            self._write({"id": intent_id, "step": ENDED, "outcome": outcome})
            with self._lock:
                self._known[intent_id] = replace(self._known[intent_id], outcome=outcome)
            self._shorten()

    def _write(self, fields: Mapping[str, object]) -> None:
        line = json.dumps({**fields, "wall_s": round(self._wall(), 3)}, separators=(",", ":")).encode() + b"\n"
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                # A line that a crash tore apart must not take ours with it.
                size = os.fstat(descriptor).st_size
                torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                whole = b"\n" + line if torn else line
                if os.write(descriptor, whole) < len(whole):  # no error: a disk that is full takes what it still can
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise IntentError(f"{self._path} cannot be written: {error.strerror}") from error

    def _shorten(self) -> None:
        """Write the journal anew without what ended long ago, once it is long; a disk that refuses leaves it as it is."""
        scratch = self._path.with_name(f"{self._path.name}.new")
        try:
            if self._path.stat().st_size <= MOST_BYTES:
                return
            with self._lock:
                ended = [intent.id for intent in self._known.values() if intent.outcome is not None]
                for gone in ended[: max(0, len(ended) - KEPT_ENDED)]:
                    del self._known[gone]
                kept = set(self._known)
            lines = [line for line in self._path.read_bytes().splitlines(keepends=True) if _id_of(line) in kept]
            with scratch.open("wb") as file:
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self._path)
        except OSError:
            scratch.unlink(missing_ok=True)


def _row(line: bytes) -> Mapping[str, object]:
    try:
        return reading.mapping(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _id_of(line: bytes) -> str:
    return str(_row(line).get("id"))


def _read(path: Path) -> tuple[Intent, ...]:
    """Read the journal; a line that cannot be meant is no intent. Raises OSError."""
    try:
        with path.open("rb") as file:
            lines = file.read(4 * MOST_BYTES).splitlines()
    except FileNotFoundError:
        return ()
    found: dict[str, Intent] = {}
    for line in lines:
        row = _row(line)
        intent_id = str(row.get("id"))
        if row.get("step") == BEGUN:
            begun = _begun(intent_id, row)
            if begun is not None:
                found[intent_id] = begun
        elif intent_id in found and row.get("step") == ENDED:
            found[intent_id] = replace(found[intent_id], outcome=str(row.get("outcome")))
        elif intent_id in found:
            step = (str(row.get("step")), reading.mapping(row.get("facts")))
            found[intent_id] = replace(found[intent_id], steps=(*found[intent_id].steps, step))
    return tuple(found.values())


def _begun(intent_id: str, row: Mapping[str, object]) -> Intent | None:
    cost = next((each for each in Cost if each.value == row.get("cost")), None)
    try:
        old, new = parse_mode(str(row.get("old"))), parse_mode(str(row.get("new")))
    except ValueError:
        return None
    if cost is None:
        return None
    return Intent(
        id=intent_id,
        server=str(row.get("server")),
        cost=cost,
        old=old,
        new=new,
        reason=str(row.get("reason")),
        boot=str(row.get("boot")),
    )
