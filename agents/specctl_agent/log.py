"""The agent's log: one line an event on standard error, key=value, with the level as journald reads it.

info: something changed. warning: the agent is worse off than it should be. error: a person must look.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Protocol

# syslog's numbers, which journald takes from the beginning of a line.
INFO, WARNING, ERROR = 6, 4, 3
VALUE_CHARS = 500


class Log(Protocol):
    """Where events go. Contract: returns at once, never raises."""

    def __call__(self, level: int, event: str, **fields: object) -> None:
        """Tell one event; a field that is None is left out."""


def line(level: int, event: str, fields: Mapping[str, object]) -> str:
    """Return an event as one printable line; values with spaces, quotes or the like are quoted."""
    parts = [f"{name}={_value(value)}" for name, value in fields.items() if value is not None]
    return f"<{level}>{' '.join([f'event={event}', *parts])}\n"


def to_journal(level: int, event: str, **fields: object) -> None:
    """Write an event to standard error; a pipe that nobody reads any more is no reason to end."""
    try:
        sys.stderr.write(line(level, event, fields))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:VALUE_CHARS])
    plain = text and all(char.isalnum() or char in "-_.:/,@+%" for char in text)
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
