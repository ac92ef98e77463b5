"""The lists of option strings: complete, well formed, and asked as the engines' parsers would be."""

from __future__ import annotations

import argparse
import hashlib

import pytest

from specctl.lab.serve.options import _parser
from specctl.lint.flags import Change, Fate, Flag, FlagTable, Kind, parse
from specctl.ops.lint import flag_table

# Of the 561 names that the parser of the wheel sglang 0.5.23 printed when it was run, sorted, a line each.
PRINTED_SHA256 = "83e30960ecb0ea674d79be2f22a5b3bc7ce31dbd8d15e54c1f9989b3d5087b19"
SMALL = """
# a comment
! abbreviations
! algorithms DFLASH NGRAM
--size int
--size-limit human-int
--mode text fast|slow
--quick switch
--speed = --mode
~ --old renamed --mode it is shorter
~ --gone removed -
"""


def test_the_list_is_what_the_parser_printed() -> None:
    """All 561 names of SGLang 0.5.23 are there, and no other."""
    names = sorted(flag_table("sglang-0.5.23").flags)
    assert len(names) == 561
    assert hashlib.sha256("\n".join(names).encode()).hexdigest() == PRINTED_SHA256


def test_the_list_of_the_lab_is_its_parser() -> None:
    """The lab's list has each of its parser's names with what it takes, no other, and no abbreviations, as its parser."""
    parser, table = _parser(), flag_table("lab")
    kinds: dict[str, Kind | None] = {}
    for action in parser._actions:
        switch = action.nargs == 0
        takes = {int: Kind.INT, float: Kind.FLOAT}.get(action.type) if isinstance(action.type, type) else None
        kinds |= dict.fromkeys(action.option_strings, Kind.SWITCH if switch else takes)
    assert sorted(kinds) == sorted(table.flags)
    for name, kind in kinds.items():
        flag = table.flag(name)
        assert flag is not None
        assert (flag.kind is Kind.SWITCH) == (kind is Kind.SWITCH)
        assert kind in (None, Kind.SWITCH, flag.kind)
    assert (parser.allow_abbrev, table.abbreviations) == (False, False)


def test_every_name_of_a_change_is_true_to_its_fate() -> None:
    """What is gone is not on the list, what is deprecated or ineffective is, and what takes a place exists."""
    table = flag_table("sglang-0.5.23")
    assert len(table.changes) == 14
    for name, change in table.changes.items():
        assert (name in table.flags) == (change.fate in (Fate.DEPRECATED, Fate.INEFFECTIVE))
        assert change.replacement is None or change.replacement in table.flags


def test_aliases_lead_to_names() -> None:
    """Another spelling leads to a flag that is none itself."""
    for table in (flag_table("sglang-0.5.23"), flag_table("lab")):
        for flag in table.flags.values():
            assert flag.alias_of is None or table.flags[flag.alias_of].alias_of is None


def test_abbreviations_are_read_as_argparse_reads_them() -> None:
    """Of every prefix of a few names, the list says what Python's own parser would make of it."""
    table = flag_table("sglang-0.5.23")
    parser = argparse.ArgumentParser(add_help=False)
    for name in table.flags:
        if table.flags[name].alias_of is None:
            others = [one for one in table.flags if table.flags[one].alias_of == name]
            parser.add_argument(name, *others, dest=name, nargs="?")
    for whole in ("--context-length", "--cuda-graph-max-bs-decode", "--tp-size", "--enable-metrics"):
        for prefix in (whole[:length] for length in range(3, len(whole) + 1)):
            matches = {action.dest for action, *_ in parser._get_option_tuples(prefix)}
            if table.flag(prefix) is None:
                assert set(table.abbreviated(prefix)) == matches
                assert table.canonical(prefix) == (min(matches) if len(matches) == 1 else prefix)


def test_a_list_is_parsed() -> None:
    """Names, kinds, values, aliases, fates and settings."""
    table = parse("small", SMALL)
    assert table == FlagTable(
        name="small",
        flags={
            "--size": Flag(name="--size", kind=Kind.INT),
            "--size-limit": Flag(name="--size-limit", kind=Kind.HUMAN_INT),
            "--mode": Flag(name="--mode", kind=Kind.TEXT, choices=("fast", "slow")),
            "--quick": Flag(name="--quick", kind=Kind.SWITCH),
            "--speed": Flag(name="--speed", kind=Kind.TEXT, alias_of="--mode"),
        },
        changes={
            "--old": Change(name="--old", fate=Fate.RENAMED, replacement="--mode", words="it is shorter"),
            "--gone": Change(name="--gone", fate=Fate.REMOVED),
        },
        abbreviations=True,
        algorithms=("DFLASH", "NGRAM"),
    )
    assert table.canonical("--speed") == table.canonical("--mo") == "--mode"
    assert table.canonical("--si") == "--si"


@pytest.mark.parametrize("line", ["--size", "--size many", "~ --old lost -", "--mode text fast slow wide", "--a ="])
def test_a_line_of_no_known_form_is_a_fault(line: str) -> None:
    """A slip in a list is told with its line when it is read."""
    with pytest.raises(ValueError, match="broken, line 2"):
        parse("broken", f"# first\n{line}\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("--contxt-length", "--context-length"),
        ("--pagesize", "--page-size"),
        ("--max_running_requests", "--max-running-requests"),
        ("--enable-mtrics", "--enable-metrics"),
        ("--weight-version-x", "--weight-version"),
        ("--xyzzy", None),
        ("-", None),
        ("", None),
    ],
)
def test_near_misses(written: str, meant: str | None) -> None:
    """A slip of the pen leads to the flag, wherever in the alphabet it stands; what resembles nothing leads nowhere."""
    assert flag_table("sglang-0.5.23").near(written) == meant
