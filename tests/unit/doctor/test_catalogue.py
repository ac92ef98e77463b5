"""Every check is tested for each kind of answer that it can give, and reads like the others."""

from __future__ import annotations

import re

import pytest

from specctl.control.audit import CHECKS as AUDIT
from specctl.doctor.catalogue import by_id, check_sets
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from specctl.doctor.types import Clear, Hit, Unsure
from tests.unit.doctor.checks import (
    test_agreement,
    test_bounds,
    test_commit,
    test_configuration,
    test_cost,
    test_gauges,
    test_gpus,
    test_serving,
)
from tests.unit.doctor.checks.cases import kinds
from tests.unit.doctor.test_contradictions import CASES as PLANTED

TABLES = {
    "agreement": test_agreement.CASES,
    "bounds": test_bounds.CASES,
    "commit": test_commit.CASES,
    "configuration": test_configuration.CASES,
    "cost": test_cost.CASES,
    "gauges": test_gauges.CASES,
    "gpus": test_gpus.CASES,
    "serving": test_serving.CASES,
}
AUDITED = "audited"
# Rates that nobody measured are no question that is open.
NEVER = {("M024", Unsure)}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_check_is_tested_for_each_answer(name: str) -> None:
    """Each check of a set has evidence that it finds something in, evidence that is well, and evidence that does not decide."""
    told = kinds(TABLES[name])
    for check in check_sets()[name].checks:
        lacking = (
            {Hit, Clear, Unsure}
            - told.get(check.id, set())
            - {kind for check_id, kind in NEVER if check_id == check.id}
        )
        assert not lacking, f"{check.id}: {[kind.__name__ for kind in lacking]}"


def test_the_audit_is_asked_under_its_own_ids() -> None:
    """The agent's audit is the source of its ids: none is left out, none is made anew, and each is planted in a test."""
    ids = [check.id for check in check_sets()[AUDITED].checks]
    assert ids == [check_id for check_id, _ in AUDIT]
    assert set(ids) <= {check_id for case in PLANTED for check_id in case.ids}


def test_no_set_goes_untested() -> None:
    """A new set of checks needs its table here; those of verify traces and losslessness have their own tests."""
    assert set(check_sets()) - {"lossless", "replayed"} == {*TABLES, AUDITED}


def test_checks_read_alike() -> None:
    """Titles are claims without a full stop, meanings and remedies sentences; nothing breaks a table of the document."""
    for check in by_id().values():
        assert re.fullmatch(r"[a-zA-Z].*[^.]", check.title), check.id
        assert re.fullmatch(r"[A-Z/].*\.", check.meaning), check.id
        assert re.fullmatch(r"[A-Z].*\.", check.remedy), check.id
        assert not check.effect.endswith("."), check.id
        assert check.looks_at, check.id
        assert "|" not in check.title + check.meaning + check.remedy + check.effect + check.looks_at, check.id


def test_every_check_takes_no_evidence() -> None:
    """A check that is given nothing answers, and finds nothing."""
    assert judge(Evidence()).findings == ()
