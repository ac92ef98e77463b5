"""The verify trace: what each step did for each request, one JSON object a line, for a replay by specctl's doctor.

The format is docs/verify-trace.md of specctl. For a search for a fault: writing it waits for the device at every step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """A file that is begun anew, and ends by itself at its limit."""

    def __init__(self, path: Path, *, version: str, limit_bytes: int) -> None:
        self._left = limit_bytes
        self._file = path.open("w", encoding="ascii", buffering=1)
        self._write({"kind": "trace", "engine": "sglang-ddtree", "version": version})

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
        if self._file.closed:
            return
        text = json.dumps({"v": FORMAT, **fields}, separators=(",", ":")) + "\n"
        if len(text) > self._left:
            self._file.write(json.dumps({"v": FORMAT, "kind": "end", "why": "full"}, separators=(",", ":")) + "\n")
            self._file.close()
            return
        self._left -= len(text)
        self._file.write(text)


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
