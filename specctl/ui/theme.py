"""The names of all styles, and the consoles that know them; colour only repeats what a word already says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.theme import Theme

STYLES: Mapping[str, str] = {
    "host": "bold",
    "phase": "cyan",
    "detail": "default",
    "elapsed": "default",
    "eta": "dim",
    "bar.done": "cyan",
    "bar.todo": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
    "quiet": "dim",
    "id": "bold",
    "column": "dim",
    "number": "default",
}

# The style of a line's first word, by that word; what is not named here is a step under way.
WORD_STYLES: Mapping[str, str] = {
    "proof": "good",
    "ready": "good",
    "deployed": "good",
    "restored": "warn",
    "warning": "warn",
    "slow": "warn",
    "claimed": "warn",
    "stopped": "bad",
    "failed": "bad",
    "dead": "bad",
    "stalled": "bad",
    "timed-out": "bad",
    "because": "quiet",
    "log": "quiet",
    "remedy": "quiet",
}


def word_style(word: str) -> str:
    """Return the style of a line's first word."""
    return WORD_STYLES.get(word, "phase")


def console(
    *, stderr: bool = False, file: TextIO | None = None, width: int | None = None, terminal: bool | None = None
) -> Console:
    """Return a console with the styles, without markup, highlighting or emoji: text is shown as it is.

    NO_COLOR and TERM are obeyed by Rich. `terminal` None: the stream itself says whether it is one.
    """
    return Console(
        theme=Theme(dict(STYLES)),
        stderr=stderr,
        file=file,
        width=width,
        force_terminal=terminal,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )
