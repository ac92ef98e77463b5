"""What kind of terminal this is: whether there is one, how many colours it has, whether it is light, whether it knows UTF-8."""

from __future__ import annotations

import os
import re
import select
import termios
import time
import tty
from collections.abc import Mapping
from typing import TextIO

from specctl.errors import UsageError
from specctl.tui.palette import DARK, LIGHT, PLAIN, SIXTEEN, Palette

ANSWER_S = 1.0
HINT = "specctl status --watch, or specctl top --screenshot FILE.svg"
# What tells a terminal of more than sixteen colours, of those whose name does not say so.
_RICH_TERMS = ("256", "direct", "kitty", "alacritty", "ghostty", "wezterm", "foot")
# Asked for the background (OSC 11), then for what it is (DA1): every terminal answers the latter, and so ends the wait.
_QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
_COLOUR = re.compile(rb"rgb:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_IDENTITY = re.compile(rb"\x1b\[\?[0-9;]*c")


def require(environ: Mapping[str, str], *streams: TextIO) -> None:
    """Raise UsageError where no dashboard can be drawn: no terminal, or one that cannot move its cursor."""
    if not all(stream.isatty() for stream in streams):
        raise UsageError("top draws on a terminal, and this is none", hint=HINT)
    term = environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        raise UsageError(f"top cannot draw on a terminal of type {term or 'unknown'} (TERM)", hint=HINT)


def palette_for(environ: Mapping[str, str], wanted: str, *, light: bool | None = None) -> Palette:
    """Return the palette: none under NO_COLOR, the terminal's own sixteen where it has no more, else dark or light.

    `wanted`: dark, light or auto; `light`: what the terminal itself said, None where it said nothing.
    """
    if "NO_COLOR" in environ:
        return PLAIN
    term = environ.get("TERM", "")
    if environ.get("COLORTERM") not in ("truecolor", "24bit") and not any(word in term for word in _RICH_TERMS):
        return SIXTEEN
    if wanted == "auto":
        wanted = "light" if light or (light is None and _says_light(environ.get("COLORFGBG", ""))) else "dark"
    return LIGHT if wanted == "light" else DARK


def _says_light(fore_and_back: str) -> bool:
    """Claim that COLORFGBG (foreground;background, numbers of the sixteen colours) tells a light background."""
    return fore_and_back.rpartition(";")[2] in ("7", "15")


def ascii_only(environ: Mapping[str, str], encoding: str | None) -> bool:
    """Claim that signs beyond ASCII would not be drawn: no UTF-8, or Linux' own console with its small font."""
    unicode = (encoding or "").lower().replace("-", "").startswith("utf")
    return not unicode or environ.get("TERM", "") == "linux"


def asks_light(timeout_s: float = ANSWER_S) -> bool | None:
    """Ask the terminal whether its background is light; None where it does not say, or there is none."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    try:
        before = termios.tcgetattr(terminal)
        try:
            tty.setcbreak(terminal, termios.TCSAFLUSH)
            os.write(terminal, _QUESTION)
            return light_of(_answer(terminal, timeout_s))
        finally:
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
    except (OSError, termios.error):
        return None
    finally:
        os.close(terminal)


def _answer(terminal: int, timeout_s: float) -> bytes:
    said, deadline = b"", time.monotonic() + timeout_s
    while not _IDENTITY.search(said):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            break
        said += os.read(terminal, 1024)
    return said


def light_of(said: bytes) -> bool | None:
    """Read a terminal's answer: whether its background is nearer to white; None where there is no colour in it."""
    found = _COLOUR.search(said)
    if found is None:
        return None
    red, green, blue = (int(part, 16) / float(16 ** len(part) - 1) for part in found.groups())
    # How bright each seems, by ITU-R BT.601.
    return bool(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)
