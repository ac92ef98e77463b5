"""Read inventory files and the built-in engine profiles into trees that know their lines; called by ops/inventory.py.

It judges only what makes a file unreadable: one Problem a file, and never an exception for what a user can write.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path

import specctl.engines
from specctl.adapters.inventory_yaml import Unreadable, compose
from specctl.errors import Problem
from specctl.fleet.positions import Node, Place, Reading

MOST_BYTES = 5_000_000
# Found beside the package: importlib.resources would cost 10 ms more.
PROFILES = tuple(Path(folder) / "profiles" for folder in specctl.engines.__path__)

_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.EACCES: "may not be read by this user",
    errno.ELOOP: "is a symbolic link that leads back to itself",
    errno.ENOTDIR: "there is no such file: a part of its path is not a folder",
    errno.ENAMETOOLONG: "its path is too long",
}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read_files(paths: Sequence[str]) -> tuple[Reading, ...]:
    """Read every file, each on its own: one that cannot be read never hides another's problems."""
    readings: list[Reading] = []
    seen: dict[str, str] = {}
    for path in paths:
        identity = path if "\0" in path else os.path.realpath(path)
        if identity in seen:
            readings.append(_unreadable(path, Unreadable(f"is given twice (as {seen[identity]})")))
            continue
        seen[identity] = path
        readings.append(read_file(path))
    return tuple(readings)


def read_file(path: str) -> Reading:
    """Read one file into its tree, or into the one problem that makes it unreadable."""
    try:
        content = _bytes_of(path)
    except Unreadable as error:
        return _unreadable(path, error)
    return read_bytes(path, content)


def read_bytes(file: str, content: bytes) -> Reading:
    """Read the content of a file, likewise."""
    try:
        return Reading(file=file, root=compose(_decode(content)))
    except Unreadable as error:
        return _unreadable(file, error)


def _unreadable(path: str, error: Unreadable) -> Reading:
    line, column = (error.place.line, error.place.column) if error.place else (None, None)
    return Reading(file=path, problem=Problem(file=path, line=line, column=column, path="", message=error.message))


class BuiltInProfiles:
    """The engine profiles that come with specctl; a file is read only when its profile is asked for."""

    def names(self) -> tuple[str, ...]:
        """Name every built-in profile, in order."""
        return tuple(sorted(file.stem for folder in PROFILES for file in folder.glob("*.yaml")))

    def tree(self, name: str) -> tuple[str, Node]:
        """Return what to call the profile's file and its tree, which has the shape of an inventory."""
        found = next(file for folder in PROFILES if (file := folder / f"{name}.yaml").is_file())
        return f"built-in {name}.yaml", compose(found.read_text(encoding="utf-8"))


def _bytes_of(path: str) -> bytes:
    if "\0" in path:
        raise Unreadable("its name holds a NUL byte")
    try:
        if Path(path).is_dir():
            raise Unreadable(f"is a folder: name its files, such as {Path(path) / '*.yaml'}")
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or f"cannot be read: {error.strerror or error}"
        raise Unreadable(reason) from error
    if len(content) > MOST_BYTES:
        raise Unreadable("is over 5 MB, which no inventory is")
    return content


def _decode(content: bytes) -> str:
    other = _OTHER_ENCODINGS.get(content[:2])
    if other:
        raise Unreadable(f"is {other}, not UTF-8: save it as UTF-8", Place(line=1, column=1))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        place = Place(line=before.count(b"\n") + 1, column=error.start - before.rfind(b"\n"))
        raise Unreadable(f"is not UTF-8: byte 0x{content[error.start]:02x}", place) from error
    control = _CONTROL.search(text)
    if control:
        index = control.start()
        place = Place(line=text.count("\n", 0, index) + 1, column=index - text.rfind("\n", 0, index))
        what = "a NUL byte" if control[0] == "\0" else f"a control character (U+{ord(control[0]):04X})"
        raise Unreadable(f"holds {what}", place)
    return text
