"""Flags by name: those that the build does not know, would take for another, has dropped, or ignores (engine facts §1.3)."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.lint.flags import Change, Fate
from specctl.lint.subject import Given, Subject
from specctl.lint.types import Hit, Rule, RuleSet


def _own_names(subject: Subject) -> frozenset[str]:
    """Return the names that the engine profile itself uses: a fork's own flags are known by it."""
    profile = subject.server.profile
    names = set(profile.flags.values()) | set(profile.aliases) | set(profile.aliases.values())
    for algo in profile.algos.values():
        names |= {*algo.select, *algo.implies, *algo.knobs.values()} | ({algo.draft} if algo.draft else set())
    return frozenset(names)


def _unlisted(subject: Subject) -> Iterator[Given]:
    """Yield the flags whose names are not on the build's list, changed names left out."""
    table = subject.table
    if table is None:
        return
    own = frozenset[str]() if subject.is_exact else _own_names(subject)
    for given in subject.given:
        if given.written in table.flags or given.written in own or given.written in table.changes:
            continue
        yield given


def _unknown(subject: Subject) -> Iterator[Hit]:
    table = subject.table
    assert table is not None, "without a list no flag is unlisted"
    for given in _unlisted(subject):
        if table.abbreviated(given.written):
            continue
        near = table.near(given.written)
        guess = f" (did you mean {near}?)" if near else ""
        yield Hit(message=f"{table.name} has no {given.written}{guess}", key=subject.key(given))


def _unknown_to_the_build(subject: Subject) -> Iterator[Hit]:
    """Hold every name against the exact list: 561 for 0.5.23 (facts §1.3; failed-starts/unknown-flag: exit 2)."""
    if subject.is_exact:
        yield from _unknown(subject)


def _unknown_to_the_base(subject: Subject) -> Iterator[Hit]:
    """Hold a fork's names against the list of the build that it began with (facts §1.3)."""
    if subject.table is not None and not subject.is_exact:
        yield from _unknown(subject)


def _ambiguous(subject: Subject) -> Iterator[Hit]:
    """Find a prefix of several names: the parser ends with "ambiguous option", exit 2 (facts §1.3)."""
    for given in _unlisted(subject):
        longer = subject.table.abbreviated(given.written) if subject.table else ()
        if len(longer) > 1:
            words = " or ".join(longer[:4]) + (f" or {len(longer) - 4} more" if len(longer) > 4 else "")
            yield Hit(message=f"{given.written} could be {words}: the parser refuses it", key=subject.key(given))


def _abbreviated(subject: Subject) -> Iterator[Hit]:
    """Find a prefix of one name: it works until a sibling is added, as it befell --cuda-graph-max-bs (facts §1.3)."""
    for given in _unlisted(subject):
        longer = subject.table.abbreviated(given.written) if subject.table else ()
        if len(longer) == 1:
            yield Hit(
                message=f"{given.written} is taken for {longer[0]} only because no other flag begins so",
                key=subject.key(given),
                remedy=f"write {longer[0]}",
            )


def _changed(subject: Subject, *fates: Fate) -> Iterator[tuple[Given, Change]]:
    table = subject.table
    if table is None:
        return
    for given in subject.given:
        change = table.changes.get(given.written)
        if change is not None and change.fate in fates:
            yield given, change


def _hit(subject: Subject, given: Given, change: Change, words: str) -> Hit:
    more = f": {change.words}" if change.words else ""
    remedy = f"use {change.replacement} instead" if change.replacement else f"take {given.written} out"
    return Hit(message=f"{given.written} {words}{more}", key=subject.key(given), remedy=remedy)


def _gone(subject: Subject) -> Iterator[Hit]:
    """Find names that the build has dropped (facts §1.3: "unrecognized arguments" or "ambiguous option", exit 2)."""
    for given, change in _changed(subject, Fate.REMOVED, Fate.RENAMED):
        new = f" to {change.replacement}" if change.fate is Fate.RENAMED else ""
        yield _hit(subject, given, change, f"was {change.fate.value}{new}")


def _deprecated(subject: Subject) -> Iterator[Hit]:
    """Find names that still work and will not (facts §1.3)."""
    for given, change in _changed(subject, Fate.DEPRECATED):
        yield _hit(subject, given, change, "is deprecated and will be removed")


def _ineffective(subject: Subject) -> Iterator[Hit]:
    """Find names that are parsed and then read by nothing (facts §1.1: num-continuous-decode-steps)."""
    for given, change in _changed(subject, Fate.INEFFECTIVE):
        yield _hit(subject, given, change, "has no effect")


def _twice(subject: Subject) -> Iterator[Hit]:
    """Find a flag that is given under two names: argparse keeps the last one and says nothing (facts §1.1, aliases)."""
    seen: dict[str, Given] = {}
    table = subject.table
    if table is None:
        return
    for given in subject.given:
        name = table.canonical(given.written)
        first = seen.setdefault(name, given)
        if first is not given and first.written != given.written:
            yield Hit(
                message=f"{first.written} and {given.written} are one flag: the last one counts",
                key=subject.key(first),
                remedy=f"keep {name} alone",
            )


def _joined_config(subject: Subject) -> Iterator[Hit]:
    """Find --config=FILE: only the two-word form is merged, this one is parsed and ignored (facts §1.4, run)."""
    flag = subject.server.profile.flags.get("config", "--config")
    for given in subject.given:
        if given.joined and given.written == flag:
            yield Hit(
                message=f"{flag}={given.values[0]} is ignored without a word",
                key=subject.key(given),
                remedy=f"write the file as a word of its own after {flag}",
            )


RULES = RuleSet(
    name="names",
    title="Flags by name",
    rules=(
        Rule(
            id="E001",
            title="unknown flag",
            reason="The parser of the engine ends with exit status 2 on a name that it does not have.",
            remedy="Use an exact name of the engine's --help, or take the flag out.",
            check=_unknown_to_the_build,
        ),
        Rule(
            id="W001",
            title="flag unknown to the build that the fork began with",
            reason="A fork may have added it; if it has not, the engine ends with exit status 2 before it loads anything.",
            remedy="Check the fork's --help; if it has the flag, list it in the engine profile, as an alias of itself.",
            check=_unknown_to_the_base,
        ),
        Rule(
            id="E002",
            title="ambiguous abbreviation",
            reason="The parser takes prefixes of names, and ends with exit status 2 where several names begin so.",
            remedy="Write the whole name.",
            check=_ambiguous,
        ),
        Rule(
            id="W002",
            title="abbreviated flag",
            reason="A prefix stops to work on the day the engine adds another flag that begins so.",
            remedy="Write the whole name.",
            check=_abbreviated,
        ),
        Rule(
            id="E003",
            title="flag that is gone",
            reason="The engine dropped or renamed it and ends with exit status 2 on the old name.",
            remedy="Use what took its place, or take it out.",
            check=_gone,
        ),
        Rule(
            id="W003",
            title="deprecated flag",
            reason="The engine still takes it, warns in its log, and will drop it.",
            remedy="Use what takes its place.",
            check=_deprecated,
        ),
        Rule(
            id="W033",
            title="flag without effect",
            reason="The parser takes it and nothing reads it: whoever set it believes in something that does not happen.",
            remedy="Take it out.",
            check=_ineffective,
        ),
        Rule(
            id="W004",
            title="one flag under two names",
            reason="The parser keeps the last value and says nothing.",
            remedy="Keep one of the two.",
            check=_twice,
        ),
        Rule(
            id="E004",
            title="--config=FILE",
            reason="The engine merges the file only when it is a word of its own; joined by an equals sign it is ignored silently.",
            remedy="Give the file as a word of its own.",
            check=_joined_config,
        ),
    ),
)
