"""The verify trace: what each step did for each request, one JSON object a line, for a replay by specctl's doctor.

The format is docs/verify-trace.md of specctl. For a search for a fault: writing it waits for the device at every step.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

FORMAT = 1
FILE = "DDTREE_TRACE"
MEGABYTES = "DDTREE_TRACE_MB"
DEFAULT_MEGABYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """One request's part of a verify pass: its tree as it was verified, and what the target said after each node."""

    prefix: int
    tokens: Sequence[int]
    parents: Sequence[int]
    positions: Sequence[int]
    target: Sequence[int]
    path: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The knobs of a pass."""

    block: int
    budget: int
    topk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a request was given in a step, and how it ended with it: `length`, `stop`, `abort` or, if it did not, None."""

    rid: str
    committed: Sequence[int]
    finish: str | None


class Trace:
    """A file of whole lines that is begun anew, and ends by itself at its limit or where its disk is full."""

    def __init__(self, path: Path, *, version: str, limit_bytes: int) -> None:
        self._path = path
        self._left = limit_bytes
        self._written = 0
        self._file = path.open("wb", buffering=0)
        self._write({"kind": "trace", "engine": "sglang-ddtree", "version": version})

    @property
    def ended(self) -> bool:
        """Whether nothing more is written."""
        return self._file.closed

    def prefill(self, step: int, ending: Ending, prompt: int) -> None:
        """Note that a prompt of that many tokens was read and its first token committed."""
        self._write({"kind": "prefill", "step": step, "prompt": prompt, **_ended(ending)})

    def verify(self, step: int, ending: Ending, verified: Verified, settings: Settings) -> None:
        """Note a verify pass; without drafts it is a plain step."""
        if settings.budget == 0:
            self._write({"kind": "plain", "step": step, "prefix": verified.prefix, **_ended(ending)})
            return
        accepted = len(verified.path) - 1
        self._write(
            {
                "kind": "verify",
                "step": step,
                "prefix": verified.prefix,
                "block": settings.block,
                "budget": settings.budget,
                "topk": settings.topk,
                "tokens": verified.tokens,
                "parents": [-1, *verified.parents[1:]],
                "positions": verified.positions,
                "target": verified.target,
                "path": verified.path,
                "bonus": verified.target[verified.path[-1]],
                "nodes": len(verified.tokens),
                "drafts": accepted,
                "depth": accepted,
                **_ended(ending),
            }
        )

    def _write(self, fields: Mapping[str, object]) -> None:
        if self.ended:
            return
        line = _line(fields)
        try:
            if len(line) <= self._left:
                self._put(line)
                return
            self._put(_line({"kind": "end", "why": "full"}))
            why = "it is full"
        except OSError as error:
            # A search for a fault shall not end the server.
            why = str(error)
            with contextlib.suppress(OSError):
                self._file.truncate(self._written)
        self._file.close()
        logger.warning("DDTREE: the trace %s ends: %s", self._path, why)

    def _put(self, line: bytes) -> None:
        if self._file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._left -= len(line)
        self._written += len(line)


def _line(fields: Mapping[str, object]) -> bytes:
    return json.dumps({"v": FORMAT, **fields}, separators=(",", ":")).encode("ascii") + b"\n"


def _ended(ending: Ending) -> dict[str, object]:
    return {"rid": ending.rid, "committed": list(ending.committed), "finish": ending.finish}


def limit(environ: Mapping[str, str]) -> tuple[Path, int] | None:
    """Return the file that the environment asks for and its limit in bytes, or None; nothing is written.

    Raises ValueError where it could not be so: a server shall say it before it loads its model.
    """
    path = environ.get(FILE, "")
    if not path:
        return None
    megabytes = environ.get(MEGABYTES) or str(DEFAULT_MEGABYTES)
    if not megabytes.isdecimal() or int(megabytes) < 1:
        raise ValueError(f"{MEGABYTES}={megabytes} is no number of megabytes")
    if not os.access(Path(path).parent, os.W_OK | os.X_OK):
        raise ValueError(f"{FILE}={path}: no file can be made in {Path(path).parent}")
    return Path(path), int(megabytes) * 1_000_000


def asked_for(environ: Mapping[str, str], version: str) -> Trace | None:
    """Return the trace that the environment asks for, begun, or None."""
    found = limit(environ)
    return None if found is None else Trace(found[0], version=version, limit_bytes=found[1])
