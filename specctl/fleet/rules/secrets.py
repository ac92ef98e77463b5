"""Secrets: no key, token or password may stand in an option or a variable, where every account of the host reads it.

No message here repeats a value.
"""

from __future__ import annotations

from collections.abc import Iterator

from specctl.errors import Problem
from specctl.fleet.declared import Inventory
from specctl.fleet.layers import option_name
from specctl.fleet.rules.launches import Placed, placed
from specctl.fleet.secret_names import CARRIED, KEY_LIKE


def check(inventory: Inventory) -> Iterator[Problem]:
    """Yield the secrets that stand where they can be read."""
    for part in placed(inventory):
        yield from check_part(part)


def check_part(part: Placed) -> Iterator[Problem]:
    """Yield the secrets of one launch section that stand where they can be read."""
    for key, value in (part.section.options or {}).items():
        if value is not None:
            yield from _refused(part, option_name(key), "in the engine's arguments, which ps shows", "options", key)
    for name, value in (part.section.env or {}).items():
        if value is not None:
            yield from _refused(part, name, "in the unit's text, which any account reads", "env", name)


def _refused(part: Placed, name: str, where: str, section: str, key: str) -> Iterator[Problem]:
    secret = CARRIED.get(name)
    if secret is not None:
        example = f"secrets: {{{secret}: env:{secret.upper()}}}"
        yield part.problem(f"a secret may not stand {where}: write {example}", section, key, at_key=True)
    elif KEY_LIKE.search(name):
        words = f"looks like a secret, and would stand {where}: keep it in a file that the engine reads"
        yield part.problem(words, section, key, at_key=True)
