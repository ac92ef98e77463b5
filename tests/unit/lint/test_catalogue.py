"""Every rule is tested both ways, has a source, and reads like the others."""

from __future__ import annotations

import inspect
import re

from specctl.lint.catalogue import by_id, rule_sets
from specctl.lint.types import Severity
from tests.unit.lint.rules import (
    test_exposure,
    test_gate,
    test_memory,
    test_names,
    test_nccl,
    test_plugin,
    test_ports,
    test_serving,
    test_speculation,
    test_tree,
    test_unit,
    test_values,
    test_waivers,
)

MODULES = (
    test_exposure,
    test_gate,
    test_memory,
    test_names,
    test_nccl,
    test_plugin,
    test_ports,
    test_serving,
    test_speculation,
    test_tree,
    test_unit,
    test_values,
    test_waivers,
)
# Judged over all launches of a server, by run.unused, and tested there.
SETTLED = {"N090"}
# What needs no source outside this project: arithmetic on the inventory's own values.
UNSOURCED = {"E042", "E090", "N080", "W022", "W065", "W084", "E067"}


def test_every_rule_is_tested_both_ways() -> None:
    """Each rule has a launch that breaks it and one that keeps it, in the file of its own subject."""
    cases = {module.__name__.rpartition("test_")[2]: {case.rule for case in module.CASES} for module in MODULES}
    rules = {name: {rule.id for rule in found.rules} - SETTLED for name, found in rule_sets().items()}
    assert cases == rules


def test_every_rule_names_its_source() -> None:
    """The docstring of a check ends in where the fact is from, or in what code it speaks of."""
    lacking = []
    for rule in by_id().values():
        text = inspect.getdoc(rule.check) if rule.check is not None else "(settled)"
        if text is None or not re.search(r"\(.+\)|field notes|NCCL", text):
            lacking.append(rule.id)
    assert [one for one in lacking if one not in UNSOURCED] == []


def test_severity_is_the_first_letter() -> None:
    """E is an error, W a warning, N a note."""
    letters = {Severity.ERROR: "E", Severity.WARNING: "W", Severity.NOTE: "N"}
    assert all(letters[rule.severity] == rule.id[0] for rule in by_id().values())


def test_rules_read_alike() -> None:
    """Titles are phrases and differ; reasons and remedies are sentences; nothing breaks a table of the document."""
    titles = [rule.title for rule in by_id().values()]
    assert len(set(titles)) == len(titles)
    for rule in by_id().values():
        assert not rule.title.endswith(".")
        assert re.fullmatch(r"[A-Z0-9/].+\.|[a-z]+ .+\.", rule.reason), rule.id
        assert rule.remedy.endswith("."), rule.id
        assert "|" not in rule.title + rule.reason + rule.remedy
