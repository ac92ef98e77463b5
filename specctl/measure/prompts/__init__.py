"""The prompt sets that specctl ships, by kind: written for it, no data set; small on purpose, so that a set is read in a minute.

A kind is one module with `TEXTS`. A new kind is one more module and its name in KINDS.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from specctl.measure.load import Prompt
from specctl.measure.prompts import chat, code, long, maths

KINDS = {"code": code.TEXTS, "maths": maths.TEXTS, "chat": chat.TEXTS, "long": long.TEXTS}
MIXED = "mixed"
_OF_MIXED = ("code", "maths", "chat")
NAMES = (MIXED, *KINDS)


def shipped(name: str) -> tuple[Prompt, ...]:
    """Return the prompts of a kind, or of `mixed` (code, maths and chat in turn); raises KeyError for another name."""
    if name != MIXED:
        return _of(name)
    sets = [_of(kind) for kind in _OF_MIXED]
    return tuple(prompt for row in zip(*sets, strict=True) for prompt in row)


def _of(kind: str) -> tuple[Prompt, ...]:
    return tuple(
        Prompt(id=f"{kind}-{number}", kind=kind, text=text) for number, text in enumerate(KINDS[kind], start=1)
    )


def digest(prompts: Sequence[Prompt]) -> str:
    """Return a short digest of texts and their order: two runs compare only on the same prompts."""
    found = hashlib.sha256()
    for prompt in prompts:
        content = prompt.text.encode("utf-8", "surrogatepass")
        found.update(f"{len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()[:12]
