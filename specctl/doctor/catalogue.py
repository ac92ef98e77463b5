"""All checks, found in doctor/checks by their files, and each id checked when it is loaded."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType

from specctl.doctor.types import Check, CheckSet
from specctl.plugins import discover

_ID = re.compile(r"[MSCL][0-9]{3}")


@functools.cache
def check_sets() -> Mapping[str, CheckSet]:
    """Return the sets of checks by name."""
    return discover("specctl.doctor.checks", "CHECKS", CheckSet)


@functools.cache
def by_id() -> Mapping[str, Check]:
    """Return every check by its id; raises TypeError for an id that is taken or not of the form (a fault of ours)."""
    found: dict[str, Check] = {}
    for check in (check for each in check_sets().values() for check in each.checks):
        if not _ID.fullmatch(check.id) or check.id in found:
            raise TypeError(f"doctor check {check.id!r} is taken, or not of the form M000, S000, C000 or L000")
        found[check.id] = check
    return MappingProxyType(dict(sorted(found.items())))
