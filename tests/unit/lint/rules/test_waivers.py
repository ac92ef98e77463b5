"""The rule on waivers themselves; how a waiver silences others is in test_run.py."""

from __future__ import annotations

import dataclasses

import pytest

from specctl.fleet.types import Waiver
from specctl.lint.run import lint
from tests.unit.lint.subjects import Case, Made, check_broken, check_kept, subject

UNKNOWN = Made(server={"waivers": (Waiver(rule="W311", reason="because"),)})
KNOWN = Made(server={"waivers": (Waiver(rule="W031", reason="because"),)})
CASES = (Case(rule="E090", broken=UNKNOWN, says="there is no rule W311", kept=KNOWN, key="waivers.W311"),)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_found(case: Case) -> None:
    """A waiver of a rule that does not exist is said, with its place in the inventory."""
    check_broken(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_kept_rule_is_silent(case: Case) -> None:
    """A waiver of a rule that exists is not."""
    check_kept(case)


@pytest.mark.parametrize(("written", "meant"), [("W311", "W031"), ("W32", "W032"), ("X031", "W031")])
def test_a_near_miss_is_offered(written: str, meant: str) -> None:
    """An unknown id comes with the rule that was perhaps meant."""
    (one,) = lint(subject(Made(server={"waivers": (Waiver(rule=written, reason="because"),)})))
    assert one.message == f"there is no rule {written} (did you mean {meant}?)"


def test_rules_of_others_are_known_when_named() -> None:
    """Whoever calls the linter beside checks of its own names their ids, and a waiver of one is no problem."""
    made = Made(server={"waivers": (Waiver(rule="P003", reason="because"),)})
    judged = subject(made)
    assert [one.rule.id for one in lint(judged)] == ["E090"]
    assert lint(dataclasses.replace(judged, elsewhere=frozenset(("P003",)))) == ()
