"""Files that are whole or not there: written beside their place, synced, renamed."""

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


def write(path: Path, content: bytes, *, hint: str) -> None:
    """Put a file where a person wants it, as `replace_file` does; raises UsageError where it cannot be written."""
    try:
        replace_file(path, content)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}", hint=hint) from error
