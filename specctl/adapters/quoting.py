"""One argv as one POSIX shell command line, for the far end of SSH; the only place where specctl quotes for a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from specctl.errors import UsageError

# Linux starts no program with one argument beyond this (MAX_ARG_STRLEN), and a login shell gets the line as one.
MAX_LINE_BYTES = 128 * 1024 - 1


def command_line(argv: Sequence[str]) -> bytes:
    """Return the command line that makes a POSIX login shell run exactly `argv` in its own place (`exec`).

    Lone surrogates (undecodable bytes of file names) become the bytes that they stand for.
    Raise UsageError for an empty argv, for a NUL and for a line too long, which no process can be given.
    """
    if not argv or not argv[0]:
        raise UsageError("there is no program to run", hint="name a program after --")
    if any("\0" in argument for argument in argv):
        raise UsageError("an argument holds a NUL byte, which no program can receive", hint="remove the NUL byte")
    line = os.fsencode(f"exec {shlex.join(argv)}")
    if len(line) > MAX_LINE_BYTES:
        raise UsageError(
            f"the command line has {len(line)} bytes, and a host takes {MAX_LINE_BYTES}",
            hint="hand the long part over by standard input or in a file",
        )
    return line
