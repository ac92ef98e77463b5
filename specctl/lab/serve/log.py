"""Write the log as SGLang does: `[YYYY-mm-dd HH:MM:SS] text` on stderr, access lines on stdout, bars with carriage returns.

A progress bar ends in one newline only, so that a journal shows it as one long line. Called by every part of the server.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Self, TextIO

_FORMAT = "[%(asctime)s] %(message)s"
_DATES = "%Y-%m-%d %H:%M:%S"
logger = logging.getLogger("specctl.lab")


def start(level: str) -> None:
    """Send the lab's lines to stderr from this level on."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter(_FORMAT, _DATES))
    logger.handlers[:] = [lines]
    logger.propagate = False
    logger.setLevel(level.upper())


def silence(*, silent: bool) -> None:
    """Mute or unmute the lab's lines and bars (fault `silent-load`)."""
    logger.disabled = silent


def uvicorn_config(level: str) -> dict[str, object]:
    """Return uvicorn's logging set-up with the same time stamps in front of its own lines."""
    stamped = {"datefmt": _DATES, "use_colors": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "default": {
                "()": "uvicorn.logging.DefaultFormatter",
                "fmt": "[%(asctime)s] %(levelprefix)s %(message)s",
                **stamped,
            },
            "access": {
                "()": "uvicorn.logging.AccessFormatter",
                "fmt": '[%(asctime)s] %(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s',
                **stamped,
            },
        },
        "handlers": {
            "default": {"formatter": "default", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"},
            "access": {"formatter": "access", "class": "logging.StreamHandler", "stream": "ext://sys.stdout"},
        },
        "loggers": {
            "uvicorn": {"handlers": ["default"], "level": level.upper(), "propagate": False},
            "uvicorn.error": {"level": level.upper()},
            "uvicorn.access": {"handlers": ["access"], "level": level.upper(), "propagate": False},
        },
    }


class Progress:
    """A progress bar in tqdm's shape; use as a context manager."""

    def __init__(self, label: str, total: int, *, stream: TextIO | None = None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._stream = sys.stderr if stream is None else stream
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        self._draw()
        return self

    def advance(self) -> None:
        """Count one part as done and redraw."""
        self._done += 1
        self._draw()

    def __exit__(self, *_: object) -> None:
        self._write("\n")

    def _draw(self) -> None:
        """Write the bar's present state."""
        elapsed = time.monotonic() - self._started
        rate = f"{self._done / elapsed:5.2f}it/s" if self._done and elapsed > 0 else "?it/s"
        left = _clock(elapsed / self._done * (self._total - self._done)) if self._done else "?"
        share = 100 * self._done // self._total
        self._write(
            f"\r{self._label}: {share:3d}% Completed | {self._done}/{self._total} [{_clock(elapsed)}<{left}, {rate}]"
        )

    def _write(self, text: str) -> None:
        """Write and flush, unless the log is muted."""
        if not logger.disabled:
            self._stream.write(text)
            self._stream.flush()


def _clock(seconds: float) -> str:
    """Return minutes and seconds as tqdm prints them."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
