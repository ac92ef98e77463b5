"""Keep the agent as small after a week as after an hour: give back what the interpreter keeps for objects to come.

CPython keeps up to 2,000 freed tuples of each size below 20 for later use, 4 MB in all, and gives them back in a full collection
alone. A program whose objects die by their count, as this one's do, never has one: so it asks for one now and then.
"""

from __future__ import annotations

import gc

TIDY_EACH_S = 600.0


def settle() -> None:
    """Leave all that exists now out of later collections; called once, when everything is imported and put together."""
    gc.collect()
    gc.freeze()


def tidy() -> None:
    """Give back what is kept for later; takes some milliseconds."""
    gc.collect()
