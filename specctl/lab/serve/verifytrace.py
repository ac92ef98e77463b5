"""The verify trace: a file with a JSON line for each step of each request (docs/verify-trace.md), bounded, whole lines only.

Owned by the scheduler's thread. What is written is what was sent to the clients; a full file ends with a line that says so, and one
on a full disk with its last whole line.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path

from specctl.lab.serve import dialect
from specctl.lab.serve.log import logger
from specctl.lab.types import Emission, Mode, StepReport, Verify

VERSION = 1
CLOSING_BYTES = 64
"""Room that is kept for the line that says that the file is full."""
KNOB_NAMES: Mapping[str, str] = {"block_size": "block", "tree_budget": "budget", "topk_cap": "topk"}


class VerifyTrace:
    """Writes steps to one file of at most `limit_bytes`; `begin` starts the file anew."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit = limit_bytes
        self._file: FileIO | None = None
        self._written = 0
        self._step = 0

    def begin(self) -> None:
        """Open the file anew; raise OSError where that cannot be."""
        self.end()
        self._file = self._path.open("wb", buffering=0)
        self._written = 0
        self._write(_line(kind="trace", engine="lab", version=dialect.VERSION))

    def end(self) -> None:
        """Write no more until the next begin."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def record(self, report: StepReport, mode: Mode) -> None:
        """Write one step, a line a request."""
        self._step += 1
        if self._file is None:
            return
        verifies = {verify.rid: verify for verify in report.verifies}
        prefill = report.prefilled_requests > 0
        for emission in report.emissions:
            if self._file is not None:
                self._write(self._text(emission, verifies.get(emission.rid), mode, prefill=prefill))

    def _text(self, emission: Emission, verify: Verify | None, mode: Mode, *, prefill: bool) -> bytes:
        """Return the line of one request."""
        before = emission.before
        ended = None if emission.finish is None else emission.finish.value
        common = {"rid": emission.rid, "step": self._step}
        done = {"committed": emission.tokens, "finish": ended}
        if prefill:
            return _line(kind="prefill", **common, prompt=before, **done)
        prefix = None if before is None else before - 1
        if verify is None or verify.walk is None:
            return _line(kind="plain", **common, prefix=prefix, **done)
        walk = verify.walk
        knobs = {KNOB_NAMES[name]: value for name, value in mode.knobs.items()}
        tree = {} if walk.parents is None else {"parents": (-1, *walk.parents[1:])}
        nodes = {"tokens": walk.tokens, **tree, "positions": walk.positions, "target": walk.target, "path": walk.path}
        counts = {"nodes": verify.nodes, "drafts": verify.accepted_drafts, "depth": verify.accepted_depth}
        bonus = walk.target[walk.path[-1]]
        return _line(kind="verify", **common, prefix=prefix, **knobs, **nodes, bonus=bonus, **done, **counts)

    def _write(self, line: bytes) -> None:
        """Write a line, or end the file where it or its disk has no room for it."""
        assert self._file is not None
        try:
            if self._written + len(line) + CLOSING_BYTES <= self._limit:
                self._put(self._file, line)
                return
            logger.warning("The verify trace %s is full (%d bytes) and ends.", self._path, self._written)
            self._put(self._file, _line(kind="end", why="full"))
        except OSError as error:
            logger.warning("The verify trace %s ends: %s", self._path, error)
            with contextlib.suppress(OSError):
                self._file.truncate(self._written)
        self.end()

    def _put(self, file: FileIO, line: bytes) -> None:
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._written += len(line)


def _line(**fields: object) -> bytes:
    """Return a record as a line."""
    return json.dumps({"v": VERSION, **fields}, separators=(",", ":")).encode("ascii") + b"\n"
