"""The option strings of one build of an engine: which are exact, what each takes, and what became of others.

The text comes from specctl/engines/flags (read by ops/lint.py); here it is parsed and asked.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from specctl.fleet.suggest import nearest

_COMMON_WORDS = frozenset(("enable", "disable", "size", "backend", "mode", "max", "num", "speculative", "no"))


class Kind(enum.Enum):
    """What follows a flag on the command line."""

    SWITCH = "switch"
    INT = "int"
    HUMAN_INT = "human-int"
    FLOAT = "float"
    TEXT = "text"
    LIST = "list"


class Fate(enum.Enum):
    """What became of a name."""

    REMOVED = "removed"
    RENAMED = "renamed"
    DEPRECATED = "deprecated"
    INEFFECTIVE = "ineffective"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One exact option string; `choices` empty: any value; `alias_of`: the name that it is another spelling of."""

    name: str
    kind: Kind
    choices: tuple[str, ...] = ()
    alias_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of a name, what takes its place (None: nothing) and what more there is to say."""

    name: str
    fate: Fate
    replacement: str | None = None
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagTable:
    """All option strings of one build, by name; `abbreviations` says that its parser takes a prefix of one name for it."""

    name: str
    flags: Mapping[str, Flag]
    changes: Mapping[str, Change] = field(default_factory=dict)
    abbreviations: bool = False
    algorithms: tuple[str, ...] = ()

    def flag(self, name: str) -> Flag | None:
        """Return the flag of that exact name; of an alias, what it stands for."""
        found = self.flags.get(name)
        return self.flags.get(found.alias_of, found) if found is not None and found.alias_of else found

    def abbreviated(self, name: str) -> tuple[str, ...]:
        """Return the names that a parser with abbreviations could take this one for, aliases of one flag counted once."""
        if not self.abbreviations or not name.startswith("--") or len(name) < len("--x"):
            return ()
        found = (one for one in self.flags if one.startswith(name))
        return tuple(dict.fromkeys(self.flags[one].alias_of or one for one in found))

    def canonical(self, name: str) -> str:
        """Return the name that the parser acts on: of an alias or a clear abbreviation, the flag that it stands for."""
        exact = self.flag(name)
        if exact is not None:
            return exact.name
        longer = self.abbreviated(name)
        return longer[0] if len(longer) == 1 else name

    def near(self, name: str) -> str | None:
        """Return the exact name closest to an unknown one, or None.

        Comparing all names takes too long: those that share a telling word come first, then those that begin alike.
        """
        words = set(name.replace("_", "-").strip("-").split("-")) - _COMMON_WORDS
        stem = name[: max(4, len(name) - 3)]
        akin = [one for one in self.flags if words & set(one.strip("-").split("-")) or one.startswith(stem)]
        return nearest(name, akin) or nearest(name, (one for one in self.flags if one[:4] == name[:4]))


def parse(name: str, text: str) -> FlagTable:
    """Read a list of option strings; raises ValueError with the line for what is not of its form (a fault of ours)."""
    flags: dict[str, Flag] = {}
    changes: dict[str, Change] = {}
    settings: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            match words:
                case ["!", setting, *rest]:
                    settings[setting] = tuple(rest)
                case ["~", old, fate, other, *rest]:
                    new = None if other == "-" else other
                    changes[old] = Change(name=old, fate=Fate(fate), replacement=new, words=" ".join(rest))
                case [alias, "=", other]:
                    flags[alias] = Flag(name=alias, kind=Kind.TEXT, alias_of=other)
                case [flag, kind, *rest] if len(rest) < 2:
                    flags[flag] = Flag(name=flag, kind=Kind(kind), choices=_choices(rest))
                case _:
                    raise ValueError("not of any known form")
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {line!r}: {error}") from error
    return FlagTable(
        name=name,
        flags=flags,
        changes=changes,
        abbreviations="abbreviations" in settings,
        algorithms=settings.get("algorithms", ()),
    )


def _choices(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(choice for word in words for choice in word.split("|"))
