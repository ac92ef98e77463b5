"""Launch settings, wherever they stand: algos and knobs that exist and stay in bounds, flags and variables that can be rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specctl.algos import ALGOS
from specctl.errors import Problem
from specctl.fleet.declared import Entry, Inventory
from specctl.fleet.layers import option_name
from specctl.fleet.positions import Document, KeyPath, shorten
from specctl.fleet.schema import HardwareSection, LaunchSection, SharedSection
from specctl.fleet.suggest import listed, nearest

OPTION = re.compile(r"(--)?[A-Za-z0-9][A-Za-z0-9.-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DIRECTIVE = re.compile(r"[A-Z][A-Za-z0-9]*")
RULE = re.compile(r"[A-Z][0-9]{3}")

# Lines of a unit that specctl writes itself, and the key that says the same.
OWN_DIRECTIVES: Mapping[str, str] = {
    "Environment": "env",
    "EnvironmentFile": "env or secrets",
    "ExecStart": "options",
    "LoadCredential": "secrets",
    "MemoryMax": "unit.memory_max",
    "Restart": "unit.restart",
    "TimeoutStopSec": "limits.drain",
    "SetCredential": "secrets",
    "User": "unit.user",
    "WorkingDirectory": "working_dir",
}
FIXED_DIRECTIVES = frozenset(("KillMode", "KillSignal", "TimeoutStartSec", "Type"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A launch section and where it stands."""

    document: Document
    path: KeyPath
    section: LaunchSection

    def problem(self, message: str, *below: str | int, suggestion: str | None = None, at_key: bool = False) -> Problem:
        """Make a problem of a path below the section."""
        return self.document.problem((*self.path, *below), message, suggestion=suggestion, at_key=at_key)


def placed(inventory: Inventory) -> Iterator[Placed]:
    """Yield every launch section of the inventory."""
    for server in inventory.servers.values():
        if server.section is not None:
            yield Placed(document=server.document, path=server.path, section=server.section)
    shared: list[Entry[HardwareSection] | Entry[SharedSection]] = [
        *inventory.hardware.values(),
        *inventory.groups.values(),
    ]
    shared += [*inventory.hosts.values(), *([inventory.defaults] if inventory.defaults else [])]
    for entry in shared:
        if entry.section is not None and entry.section.launch is not None:
            yield Placed(document=entry.document, path=(*entry.path, "launch"), section=entry.section.launch)


def check(inventory: Inventory) -> Iterator[Problem]:
    """Yield what is wrong with any launch section on its own."""
    for part in placed(inventory):
        yield from check_part(part)


def check_part(part: Placed) -> Iterator[Problem]:
    """Yield what is wrong with one launch section."""
    yield from _algos(part)
    yield from _knobs(part)
    yield from _options(part)
    yield from _names(part)
    if part.section.python is not None and part.section.venv is not None:
        yield part.problem("says the same as python: keep one of the two", "venv", at_key=True)


def _algos(part: Placed) -> Iterator[Problem]:
    algo = part.section.algo
    if algo is not None and algo not in ALGOS:
        yield part.problem(
            f"there is no algo {shorten(algo)} (there is {listed(ALGOS)})", "algo", suggestion=nearest(algo, ALGOS)
        )


def _knobs(part: Placed) -> Iterator[Problem]:
    for name, knobs in (part.section.knobs or {}).items():
        algo = ALGOS.get(name)
        if algo is None:
            words = f"there is no algo {shorten(name)} (there is {listed(ALGOS)})"
            yield part.problem(words, "knobs", name, suggestion=nearest(name, ALGOS), at_key=True)
            continue
        known = tuple(knob.name for knob in algo.knobs)
        for knob, value in (knobs or {}).items():
            faults = algo.faults({knob: value}) if value is not None else ()
            unknown = algo.knob(knob) is None
            for fault in faults:
                near = nearest(knob, known) if unknown else None
                yield part.problem(fault, "knobs", name, knob, suggestion=near, at_key=unknown)


def _options(part: Placed) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for key, value in (part.section.options or {}).items():
        name = option_name(key)
        if not OPTION.fullmatch(key):
            better = key.strip().split("=")[0].strip().lstrip("-").replace("_", "-")
            fits = OPTION.fullmatch(better) and better != key
            words = f'"{shorten(key)}" is no flag: give its exact name as the key, its value as the value'
            yield part.problem(words, "options", key, suggestion=better if fits else None, at_key=True)
        elif name in first:
            yield part.problem(f"is the same flag as {first[name]} above", "options", key, at_key=True)
        elif isinstance(value, str) and value.startswith("--"):
            words = "a value that begins with -- would be read as another flag: give that flag its own key"
            yield part.problem(words, "options", key)
        first.setdefault(name, key)


def _names(part: Placed) -> Iterator[Problem]:
    for name in part.section.env or {}:
        if not VARIABLE.fullmatch(name):
            yield part.problem(
                f'"{shorten(name)}" cannot name a variable: letters, digits and _', "env", name, at_key=True
            )
    for name in part.section.waivers or {}:
        if not RULE.fullmatch(name):
            words = f'"{shorten(name)}" is no rule: a letter and three digits, such as W031'
            yield part.problem(words, "waivers", name, at_key=True)
    unit = part.section.unit
    for name in (unit.extra if unit else None) or {}:
        yield from _directive(part, name)


def _directive(part: Placed, name: str) -> Iterator[Problem]:
    path = ("unit", "extra", name)
    if name in OWN_DIRECTIVES:
        yield part.problem(f"specctl writes {name} itself: say it as {OWN_DIRECTIVES[name]}", *path, at_key=True)
    elif name in FIXED_DIRECTIVES:
        yield part.problem(f"specctl sets {name} and depends on it", *path, at_key=True)
    elif not DIRECTIVE.fullmatch(name):
        yield part.problem(f'"{shorten(name)}" cannot name a line of a unit, such as LimitNOFILE', *path, at_key=True)
