"""Read traces and model files for replays; called by ops/simulate.py and benchmarks/policy.py.

What is in them is judged by specctl.control.replay; here a fault gets the name of its file.
"""

from __future__ import annotations

import json
from pathlib import Path

from specctl.control.replay import formats, service
from specctl.control.replay.formats import MisreadError, Trace
from specctl.control.replay.service import Service
from specctl.errors import UsageError

MOST_TRACE_BYTES = 256 * 1024 * 1024
MOST_MODEL_BYTES = 1024 * 1024
MODEL_HINT = "write modes, each with tokens a second by concurrency, and max_running: docs/simulate.md"
TRACE_HINT = "docs/simulate.md has the formats"


def read_trace(path: str) -> Trace:
    """Read a trace of any known format; raises UsageError that names the file and the line."""
    text = _text(path, MOST_TRACE_BYTES)
    try:
        return formats.parse(text)
    except MisreadError as error:
        raise UsageError(f"{path}:{error.line}: {error.message}", hint=TRACE_HINT) from error


def read_model(path: str) -> Service:
    """Read a model file (JSON); raises UsageError that names the file and the line or the key."""
    text = _text(path, MOST_MODEL_BYTES)
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: not JSON: {error.msg}", hint=MODEL_HINT) from error
    except RecursionError:
        raise UsageError(f"{path}:1: not a model: nested too deeply", hint=MODEL_HINT) from None
    try:
        return service.parse(values)
    except ValueError as error:
        raise UsageError(f"{path}: {error}", hint=MODEL_HINT) from error


def _text(path: str, most_bytes: int) -> str:
    """Read a file as UTF-8, at most so many bytes."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {_reason(error)}", hint="name a file that is there") from error
    if len(content) > most_bytes:
        raise UsageError(f"{path}: more than {most_bytes // 1024**2} MiB", hint="cut it, or give it in coarser steps")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text", hint=TRACE_HINT) from error


def _reason(error: OSError | ValueError) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words[:1].lower() + words[1:]
