"""Desired, deployed, running: each difference is told once, and what nobody asked for is unknown."""

from __future__ import annotations

import pytest

from specctl.control.mode import parse
from specctl.doctor.evidence import Configuration, Evidence
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from specctl.lint.catalogue import by_id
from specctl.lint.types import Finding
from tests.unit.doctor.checks.cases import Case, log, recorded_log

CHAIN, TREE = parse("dflash:block_size=8"), parse("ddtree:block_size=8,tree_budget=7")
OPEN = Finding(
    rule=by_id()["W031"], message="port 30001 is open", remedy="give a key", host="h", server="s", algos=("none",)
)
WAIVED = Finding(
    rule=by_id()["W031"],
    message="port 30001 is open",
    remedy="give a key",
    host="h",
    server="s",
    algos=("none",),
    waived="a trial",
)


def of(**values: object) -> Evidence:
    """Return evidence with a configuration."""
    return Evidence(host="ct200", configuration=Configuration(**values))  # type: ignore[arg-type]  # fields by name, as the tables give them


CASES = (
    Case(
        id="C001",
        name="two differences",
        kind=Hit,
        evidence=of(drift=("the unit file was edited", "the process is older")),
        words=("the unit file was edited", "the process is older"),
    ),
    Case(id="C001", name="none", kind=Clear, evidence=of(drift=())),
    Case(id="C001", name="not asked", kind=Unsure),
    Case(
        id="C002",
        name="another budget",
        kind=Hit,
        evidence=of(deployed=TREE, claimed=parse("ddtree:block_size=8,tree_budget=16")),
        words=("tree_budget=16", "tree_budget=7"),
    ),
    Case(
        id="C002",
        name="another page size",
        kind=Hit,
        evidence=of(deployed=CHAIN, claimed=CHAIN, arguments={"--page-size": ("1", "64")}),
        words=("--page-size: 64, 1 in the release",),
    ),
    Case(
        id="C002",
        name="the same, one knob not told",
        kind=Clear,
        evidence=of(deployed=TREE, claimed=parse("ddtree:block_size=8")),
    ),
    Case(id="C002", name="no answer", kind=Unsure, evidence=of(deployed=CHAIN)),
    Case(
        id="C003",
        name="not deployed yet",
        kind=Hit,
        evidence=of(desired=TREE, deployed=CHAIN),
        words=("asks for ddtree", "dflash"),
    ),
    Case(id="C003", name="deployed", kind=Clear, evidence=of(desired=CHAIN, deployed=CHAIN)),
    Case(
        id="C003",
        name="set live",
        kind=Clear,
        evidence=of(desired=CHAIN, deployed=TREE, moved_live=True),
        words=("set live",),
    ),
    Case(id="C003", name="never deployed", kind=Unsure, evidence=of(desired=CHAIN)),
    Case(
        id="C004",
        name="an open port",
        kind=Hit,
        evidence=of(lint=(OPEN,)),
        words=("W031", "port 30001 is open", "give a key"),
    ),
    Case(id="C004", name="waived", kind=Clear, evidence=of(lint=(WAIVED,))),
    Case(id="C004", name="not linted", kind=Unsure),
    Case(
        id="C005",
        name="a stock engine and a tree",
        kind=Hit,
        evidence=of(knows={"DDTREE": False}),
        words=("does not know DDTREE",),
    ),
    Case(id="C005", name="it has it", kind=Clear, evidence=of(knows={"DFLASH": True})),
    Case(id="C005", name="not asked", kind=Unsure),
    Case(id="C006", name="off", kind=Hit, evidence=of(metrics_enabled=False), words=("--enable-metrics",)),
    Case(id="C006", name="on", kind=Clear, evidence=of(metrics_enabled=True)),
    Case(id="C006", name="no answer", kind=Unsure),
    Case(
        id="C007",
        name="a recorded fallback",
        kind=Hit,
        evidence=Evidence(log=recorded_log("logs/spec-dflash/server.log")),
        words=("N006", "verified greedily"),
    ),
    Case(id="C007", name="nothing known", kind=Clear, evidence=Evidence(log=log("INFO: all is well"))),
    Case(id="C007", name="no log", kind=Unsure),
    Case(id="C008", name="stopped", kind=Hit, evidence=of(serving=False)),
    Case(id="C008", name="ready", kind=Clear, evidence=of(serving=True)),
    Case(id="C008", name="not asked", kind=Unsure, evidence=of()),
    Case(id="C008", name="files have no server", kind=Beside),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
