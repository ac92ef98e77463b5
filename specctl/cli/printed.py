"""The console that a command prints its listing on: as wide as the terminal, or as wide as grep and less can take it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Lines for grep and less are not folded at the 80 columns of a terminal that is not there.
PIPE_WIDTH = 200


def is_folded() -> bool:
    """Claim that lines have a width to keep to: a terminal's, or that of COLUMNS."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def listing() -> Console:
    """Return the console of standard output, wide where nothing limits it."""
    from specctl.ui.theme import console

    return console(width=None if is_folded() else PIPE_WIDTH)
