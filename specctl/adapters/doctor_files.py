"""Read what the doctor is given without a host: logs of any size and content, and figures files; called by ops/doctor_files.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from specctl.adapters import inventory_files
from specctl.errors import UsageError
from specctl.fleet import positions
from specctl.fleet.positions import Document

STDIN = "-"
MOST_LOG_BYTES = 1 << 30
MOST_RECORD_BYTES = 1 << 24
"""A record of a tree of a thousand nodes is some tens of kilobytes."""
PIECE_BYTES = 1 << 16
"""A longer line than this is read in pieces: nothing that an engine prints of decoding is as long."""


def read_log(path: str) -> Iterator[str]:
    """Yield a log's lines, at most a gibibyte of them; what is no UTF-8 is replaced. Raises UsageError where it cannot be read."""
    if path == STDIN:
        yield from _lines(sys.stdin.buffer)
        return
    try:
        with Path(path).open("rb") as file:
            yield from _lines(file)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: cannot be read: {_reason(error)}", hint="name a log file, or - for standard input"
        ) from error


def read_trace(path: str) -> Iterator[bytes]:
    """Yield a verify trace's lines, each of MOST_RECORD_BYTES at most. Raises UsageError where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            while line := file.readline(MOST_RECORD_BYTES):
                yield line
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: cannot be read: {_reason(error)}", hint="name a trace (docs/verify-trace.md)"
        ) from error


def _lines(file: BinaryIO) -> Iterator[str]:
    left = MOST_LOG_BYTES
    while left > 0 and (line := file.readline(PIECE_BYTES)):
        left -= len(line)
        # Progress bars come as one line with carriage returns.
        for part in line.decode("utf-8", "replace").split("\r"):
            yield part.rstrip("\n")


def read_figures(path: str) -> Document:
    """Return a figures file as plain values with their places; raises UsageError where it is no YAML mapping."""
    found = inventory_files.read_file(path)
    if found.problem is not None or found.root is None:
        raise UsageError(str(found.problem), hint="docs/doctor.md shows a figures file")
    document = positions.read(path, found.root)
    if document.problems:
        raise UsageError(
            "; ".join(str(problem) for problem in document.problems), hint="docs/doctor.md shows a figures file"
        )
    return document


def _reason(error: OSError | ValueError) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words[:1].lower() + words[1:]
