"""Near misses: what was perhaps meant by a name that does not exist; pure, called wherever a name is refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

CLOSE_RATIO = 0.6  # difflib's own default: below it the guess is noise more often than help.

MOST_COMPARED = 500  # Comparing is slow; with more names than this the guess is worth less than the time.


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to `word`, or None where none is close."""
    names = list(known)[:MOST_COMPARED]
    folded = word.casefold().replace("_", "-")
    for name in names:
        if name.casefold().replace("_", "-") == folded and name != word:
            return name
    found = difflib.get_close_matches(word, [name for name in names if name != word], n=1, cutoff=CLOSE_RATIO)
    return found[0] if found else None


def either(names: Sequence[str]) -> str:
    """Return names for a sentence as a choice: "a", "a or b", "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def listed(names: Iterable[str], *, most: int = 8) -> str:
    """Return names for a sentence: "a, b, c", with the number of those left out; "none" where there are none."""
    words = list(names)
    if not words:
        return "none"
    shown = ", ".join(words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown
