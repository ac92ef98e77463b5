"""All rules, found in lint/rules by their files, and each checked when it is loaded."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType

from specctl.lint.types import Rule, RuleSet
from specctl.plugins import discover

_ID = re.compile(r"[EWN][0-9]{3}")


@functools.cache
def rule_sets() -> Mapping[str, RuleSet]:
    """Return the sets of rules by name."""
    return discover("specctl.lint.rules", "RULES", RuleSet)


@functools.cache
def by_id() -> Mapping[str, Rule]:
    """Return every rule by its id; raises TypeError for an id that is taken or not of the form (a fault of ours)."""
    found: dict[str, Rule] = {}
    for rule in (rule for rules in rule_sets().values() for rule in rules.rules):
        if not _ID.fullmatch(rule.id) or rule.id in found:
            raise TypeError(f"lint rule {rule.id!r} is taken, or not of the form E000, W000 or N000")
        found[rule.id] = rule
    return MappingProxyType(dict(sorted(found.items())))
