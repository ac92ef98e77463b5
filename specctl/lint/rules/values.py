"""Flags by value: what the parser would refuse, or take for something else than was meant (engine facts §1.1, §1.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from specctl.fleet.suggest import listed, nearest
from specctl.lint.flags import Flag, Kind
from specctl.lint.subject import Given, Subject, number
from specctl.lint.types import Hit, Rule, RuleSet

_PLAIN = re.compile(r"\s*[+-]?\d+(_\d+)*\s*")
_HUMAN = re.compile(r"(\d+)(Ki|Mi|Gi|Ti)|(\d+(\.\d+)?)(k|M|G|T)")
_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
# What people write, and the suffixes that are read: powers of 1024 first, since contexts and pools are that.
_MEANT: Mapping[str, str] = {"k": "k", "m": "M", "g": "G", "t": "T"}
_POWER_OF_TWO = frozenset(1 << n for n in range(3, 11))
# Old names of attention backends (facts §1.2), with what takes their place.
_OLD_BACKENDS: Mapping[str, str] = {"nsa": "dsa", "compressed": "dsv4", "tokenspeed_mla": "cutedsl_mla"}
_BACKEND_FLAGS = (
    "--attention-backend",
    "--decode-attention-backend",
    "--prefill-attention-backend",
    "--speculative-draft-attention-backend",
)


def _known(subject: Subject) -> Iterator[tuple[Given, Flag]]:
    table = subject.table
    if table is None:
        return
    for given in subject.given:
        flag = table.flag(given.name)
        if flag is not None:
            yield given, flag


def _count(subject: Subject) -> Iterator[Hit]:
    """Hold the number of values against the flag's kind: a switch takes none, most others one (facts §1.1)."""
    for given, flag in _known(subject):
        many = len(given.values)
        if flag.kind is Kind.SWITCH and many:
            words = f"{given.written} takes no value, and {given.values[0]!r} follows it"
            yield Hit(message=words, key=subject.key(given), remedy="say true to give the flag, false to leave it out")
        elif flag.kind not in (Kind.SWITCH, Kind.LIST) and many != 1:
            words = f"{given.written} takes one value, not {many or 'none'}"
            yield Hit(message=words, key=subject.key(given), remedy=f"give {given.written} one value")


def _unreadable(flag: Flag, value: str) -> bool:
    if flag.kind is Kind.INT:
        return not _PLAIN.fullmatch(value)
    if flag.kind is Kind.HUMAN_INT:
        return not (_PLAIN.fullmatch(value) or _HUMAN.fullmatch(value.strip()))
    return flag.kind is Kind.FLOAT and number(value) is None


def _numbers(subject: Subject) -> Iterator[Hit]:
    """Hold numbers against what is read: 32k and 32Ki where the flag takes suffixes, never 32K (facts §1.1)."""
    for given, flag in _known(subject):
        value = given.value
        if value is None or not _unreadable(flag, value):
            continue
        takes = {Kind.INT: "a whole number", Kind.HUMAN_INT: "a whole number, 32k or 32Ki"}.get(flag.kind, "a number")
        yield Hit(
            message=f"{given.written} {value} is not read: it takes {takes}",
            key=subject.key(given),
            remedy=_better(flag, value),
        )


def _better(flag: Flag, value: str) -> str | None:
    """Say what was meant by a number with a suffix that is not read; None where that cannot be told."""
    found = _SUFFIXED.fullmatch(value.strip())
    letter = _MEANT.get(found[2][0].lower()) if found else None
    if found is None or letter is None:
        return None
    thousands = int(float(found[1]) * 1000 ** ("kMGT".index(letter) + 1))
    binary = int(float(found[1]) * 1024 ** ("kMGT".index(letter) + 1))
    if flag.kind is Kind.HUMAN_INT and found[1].isdecimal():
        upper = letter.upper()
        return f"write {found[1]}{upper}i ({binary}) or {found[1]}{letter} ({thousands}): suffixes are case sensitive"
    return f"write {binary} or {thousands}" if flag.kind is Kind.INT else None


def _thousands(subject: Subject) -> Iterator[Hit]:
    """Find 32k where 32Ki was perhaps meant: 32k is 32000, 32Ki is 32768 (facts §1.1)."""
    for given, flag in _known(subject):
        value = given.value or ""
        found = re.fullmatch(r"(\d+)k", value)
        if flag.kind is Kind.HUMAN_INT and found and int(found[1]) in _POWER_OF_TWO:
            count = int(found[1])
            yield Hit(
                message=f"{given.written} {value} is {count * 1000}, not {count * 1024}",
                key=subject.key(given),
                remedy=f"write {count}Ki for {count * 1024}",
            )


def _choices(subject: Subject) -> Iterator[Hit]:
    for given, flag in _known(subject):
        for value in given.values if flag.choices else ():
            if value in flag.choices:
                continue
            near = nearest(value, flag.choices)
            guess = f" (did you mean {near}?)" if near else f" (it takes {listed(flag.choices, most=12)})"
            yield Hit(message=f"{given.written} does not take {value!r}{guess}", key=subject.key(given))


def _choices_of_the_build(subject: Subject) -> Iterator[Hit]:
    """Hold a value against the closed list of its flag (facts §1.2; failed-starts/attention-backend-invalid: exit 2)."""
    if subject.is_exact:
        yield from _choices(subject)


def _choices_of_the_base(subject: Subject) -> Iterator[Hit]:
    """Hold a fork's value against the list of the build that it began with (facts §1.2)."""
    if not subject.is_exact:
        yield from _choices(subject)


def _left_out(subject: Subject) -> Iterator[Hit]:
    """Find false for a flag that has an opposite: left out, it keeps its default (srt/arg_groups, BooleanOptionalAction)."""
    table = subject.table
    if table is None:
        return
    for name, value in subject.server.options.items():
        opposite = f"--no-{name.removeprefix('--')}"
        if value is False and opposite in table.flags:
            yield Hit(
                message=f"{name} is left out, which leaves the engine its default",
                key=f"options.{name}",
                remedy=f"give {opposite.removeprefix('--')}: true to switch it off, or take this out",
            )


def _old_backends(subject: Subject) -> Iterator[Hit]:
    """Find old names of attention backends (facts §1.2)."""
    for given in subject.given:
        new = _OLD_BACKENDS.get(given.value or "") if given.name in _BACKEND_FLAGS else None
        if new is not None:
            yield Hit(
                message=f"{given.written} {given.value} is the old name of {new}",
                key=subject.key(given),
                remedy=f"say {new}",
            )


RULES = RuleSet(
    name="values",
    title="Values of flags",
    rules=(
        Rule(
            id="E005",
            title="value where none is taken, or none where one is",
            reason="The parser ends with exit status 2.",
            remedy="Say true for a flag that stands alone; give every other flag its value.",
            check=_count,
        ),
        Rule(
            id="E006",
            title="number that the engine does not read",
            reason="The parser ends with exit status 2; suffixes are case sensitive, and most flags take none.",
            remedy="Write the number in digits.",
            check=_numbers,
        ),
        Rule(
            id="N006",
            title="k is a thousand",
            reason="The engine reads 32k as 32000 and 32Ki as 32768.",
            remedy="Write Ki where a power of two is meant.",
            check=_thousands,
        ),
        Rule(
            id="E007",
            title="value that the flag does not take",
            reason="The parser holds the value against a closed list and ends with exit status 2.",
            remedy="Use one of the values that the engine's --help lists.",
            check=_choices_of_the_build,
        ),
        Rule(
            id="W007",
            title="value unknown to the build that the fork began with",
            reason="A fork may have added it; if it has not, the engine ends with exit status 2 before it loads anything.",
            remedy="Check the fork's --help; waive this rule if the fork takes the value.",
            check=_choices_of_the_base,
        ),
        Rule(
            id="W010",
            title="false that switches nothing off",
            reason="false leaves a flag out; one that has an opposite may be on by default, and only its opposite switches it off.",
            remedy="Give the flag's opposite, --no-….",
            check=_left_out,
        ),
        Rule(
            id="W008",
            title="old name of an attention backend",
            reason="The engine still takes it, warns in its log, and will drop it.",
            remedy="Use the new name.",
            check=_old_backends,
        ),
    ),
)
