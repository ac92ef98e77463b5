"""What lies on the host of each server: the note that deploy left for the agent, and which release and algo are current."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.errors import SpecctlError
from specctl.rollout import reading, server_note
from specctl.rollout.server_note import ServerNote

CURRENT = "current"
NOTE_BYTES = 1 << 20
LIVE_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The last live change on record: the process `invocation` of the server was told `mode`."""

    mode: Mode
    invocation: str
    who: str
    at: str

    @property
    def mark(self) -> str:
        """Return what tells it from others."""
        return f"{self.at} {self.who} {self.mode}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One server's folder as it was read: its note, and what a boot would start (None: nothing is deployed).

    `told`: what its engine was told since, by whomever; None where nothing is on record, or it cannot be read.
    """

    folder: Path
    note: ServerNote
    release: str | None = None
    algo: str | None = None
    told: Told | None = None

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.note.server.name

    @property
    def agent_folder(self) -> Path:
        """Return where deploy leaves things for the agent."""
        return self.folder / server_note.FOLDER

    @property
    def knobs(self) -> Mapping[str, Mapping[str, int]]:
        """Return the knobs of each algo that the current release can run."""
        known = self.note.releases.get(self.release or "")
        return known.knobs if known is not None else {}

    @property
    def deployed(self) -> Mode | None:
        """Return the mode that the current release starts with; None where that is not known."""
        return _mode(self.algo, self.knobs.get(self.algo or ""))

    @property
    def startable(self) -> tuple[Mode, ...]:
        """Return the modes that the current release can start with."""
        found = [_mode(algo, knobs) for algo, knobs in self.knobs.items()]
        return tuple(each for each in found if each is not None)


class Places:
    """The servers' folders; each is read again when its note or its `current` has changed."""

    def __init__(self, servers: Path) -> None:
        self._servers = servers
        self._known: dict[str, tuple[object, Place | str]] = {}

    def look(self) -> tuple[dict[str, Place], dict[str, str]]:
        """Return the servers by name, and what is wrong with others by their folder's name; raises OSError."""
        found: dict[str, Place] = {}
        wrong: dict[str, str] = {}
        for folder in self._folders():
            stamp = _stamp(folder)
            if stamp is None:
                continue
            known = self._known.get(folder.name)
            if known is None or known[0] != stamp:
                known = self._known[folder.name] = (stamp, _read(folder))
            if isinstance(known[1], Place):
                found[known[1].name] = known[1]
            else:
                wrong[folder.name] = known[1]
        return found, wrong

    def find(self, name: str) -> Place | None:
        """Return one server as it is now; None where it is gone, or cannot be read."""
        try:
            return self.look()[0].get(name)
        except OSError:
            return None

    def _folders(self) -> list[Path]:
        try:
            return sorted(path for path in self._servers.iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []


def _stamp(folder: Path) -> object:
    """Return what changes when the note, the link or the last live change does; None where there is no note."""
    note = _changed(folder / server_note.FOLDER / server_note.NOTE)
    return None if note is None else (note, _link(folder), _changed(folder / server_note.FOLDER / server_note.LIVE))


def _changed(path: Path) -> object:
    """Return what changes when a file does; None where there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _link(folder: Path) -> str | None:
    try:
        return str((folder / CURRENT).readlink())
    except OSError:
        return None


def _read(folder: Path) -> Place | str:
    home = folder / server_note.FOLDER
    try:
        with (home / server_note.NOTE).open("rb") as file:
            text = file.read(NOTE_BYTES).decode("utf-8", "replace")
        note = server_note.read(text, lambda name: str(home / server_note.KEYS / name))
    except SpecctlError as error:
        return error.message
    except OSError as error:
        return f"{server_note.NOTE} cannot be read ({error.strerror})"
    parts = (_link(folder) or "").split("/")
    if len(parts) != 3:
        return Place(folder=folder, note=note)
    algo = os.path.splitext(parts[2])[0]  # noqa: PTH122  # a name
    return Place(folder=folder, note=note, release=parts[1], algo=algo, told=_told(home / server_note.LIVE))


def _told(path: Path) -> Told | None:
    """Read the last live change."""
    try:
        with path.open("rb") as file:
            found = reading.mapping(json.loads(file.read(NOTE_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    values = {name: reading.whole(value) for name, value in reading.mapping(found.get("knobs")).items()}
    mode = _mode(reading.text(found.get("algo")), {name: value for name, value in values.items() if value is not None})
    invocation = reading.text(found.get("invocation"))
    if mode is None or invocation is None or found.get("format") != LIVE_FORMAT:
        return None
    who, at = reading.text(found.get("who")), reading.text(found.get("at"))
    return Told(mode=mode, invocation=invocation, who=who or "", at=at or "")


def _mode(algo: str | None, knobs: Mapping[str, int] | None) -> Mode | None:
    if algo is None or knobs is None:
        return None
    try:
        return modes.mode(algo, knobs)
    except ValueError:
        return None
