"""Files that are whole or not there: written beside their place, synced, renamed; and places that people name for them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from specctl.errors import UsageError


def replace_file(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Put a file in its place, in place of an older one if there is one; a crash leaves the old one or the new one.

    Errors are the OSErrors of the disk.
    """
    handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(made).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(made).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_file(path: Path) -> bool:
    """Claim that a file is there for us: one that we may not look at, or whose name no disk takes, is not."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Claim that a folder is there for us, likewise."""
    try:
        return path.is_dir()
    except OSError:
        return False


def refuse_place(path: Path) -> None:
    """Raise UsageError where a file cannot come to stand; called before anything is measured for it."""
    folder = path.parent
    try:
        if not folder.is_dir():
            raise UsageError(f"{path}: there is no folder {folder}", hint=f"mkdir -p {folder}")
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint=f"name a file in it: {path / 'FILE'}")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}", hint="name another file") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"{path}: cannot be written: the folder {folder} takes no files of yours", hint="name another file"
        )


def write(path: Path, content: bytes, *, hint: str) -> None:
    """Put a file where a person wants it, as `replace_file` does; raises UsageError where it cannot be written."""
    try:
        replace_file(path, content)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}", hint=hint) from error
