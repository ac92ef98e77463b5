"""What a line can say at all: recorded lines of SGLang 0.5.23 pass, and each bound is found where it is crossed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import Mode, mode, parse
from specctl.control.sample.engine import EngineInfo
from specctl.doctor.evidence import Evidence, Speed
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from tests.unit.doctor.checks.cases import Case, log, recorded_log

WIDEST = EngineInfo(said={"speculative_num_draft_tokens": 32})
CHAIN, TREE = parse("dflash:block_size=8"), parse("ddtree:block_size=8,tree_budget=7")
FIELD = "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=2.00 avg_commit_len=2.00 avg_accepted_depth=5.00"
DECODE = (
    "Decode batch, #running-req: 1, #token: 60, token usage: 0.00, accept len: {length}, accept rate: {rate}, "
    "cuda graph: True, gen throughput (token/s): 135.01, #queue-req: 0"
)
RECORDED = recorded_log("dialect/decode_lines.txt", "logs/spec-dflash/server.log")


def of(text: str, told: Mode | None = TREE) -> Evidence:
    """Return evidence with one line of the log."""
    return Evidence(mode=told, log=log(text), counts_root=True, counts_bonus=True, steady=True)


def decode(length: str, rate: str, told: Mode = CHAIN) -> Evidence:
    """Return evidence with one decode line."""
    return of(DECODE.format(length=length, rate=rate), told)


CASES = (
    Case(id="M016", name="the field's line", kind=Clear, evidence=of(FIELD)),
    Case(
        id="M016",
        name="a root that is not counted",
        kind=Hit,
        evidence=replace(of(FIELD), counts_root=False),
        words=("8.00 nodes", "budget of 7 and 0 root", FIELD),
    ),
    Case(
        id="M016",
        name="nine nodes",
        kind=Hit,
        evidence=of(FIELD.replace("nodes=8.00", "nodes=9.00")),
        words=("1 of 1 tree lines",),
    ),
    Case(id="M016", name="recorded lines of a chain", kind=Beside, evidence=Evidence(mode=CHAIN, log=RECORDED)),
    Case(id="M016", name="no line", kind=Unsure, evidence=Evidence(mode=TREE)),
    Case(id="M017", name="the field's line", kind=Clear, evidence=of(FIELD)),
    Case(
        id="M017",
        name="eight drafts of a budget of seven",
        kind=Hit,
        evidence=of(FIELD.replace("drafts=2.00", "drafts=8.00")),
        words=("accepted drafts 8.00", "at most 7 drafts"),
    ),
    Case(
        id="M017",
        name="the block is shorter than the budget",
        kind=Hit,
        evidence=of(FIELD.replace("drafts=2.00", "drafts=4.00"), parse("ddtree:block_size=4,tree_budget=7")),
        words=("at most 3",),
    ),
    Case(
        id="M017",
        name="recorded lines of block 8",
        kind=Clear,
        evidence=Evidence(mode=CHAIN, log=RECORDED, steady=True),
    ),
    Case(
        id="M017",
        name="an accept length of 9 in block 8",
        kind=Hit,
        evidence=decode("9.00", "1.00"),
        words=("8.00", "at most 7"),
    ),
    Case(
        id="M017",
        name="a commit of unknown convention",
        kind=Clear,
        evidence=replace(of(FIELD.replace("commit_len=2.00", "commit_len=8.00")), counts_bonus=None),
    ),
    Case(id="M017", name="plain decoding", kind=Beside, evidence=Evidence(mode=mode("none"))),
    Case(id="M017", name="no line", kind=Unsure, evidence=Evidence(mode=TREE)),
    Case(id="M018", name="recorded lines", kind=Clear, evidence=Evidence(mode=CHAIN, log=RECORDED)),
    Case(id="M018", name="over one", kind=Hit, evidence=decode("2.00", "1.14"), words=("1.14", "1 of 1 decode lines")),
    Case(
        id="M018",
        name="a figure over one",
        kind=Hit,
        evidence=Evidence(mode=CHAIN, speeds=(Speed(mode=CHAIN, tokens_s=1.0, accept_rate=1.2),)),
        words=("1.20",),
    ),
    Case(id="M018", name="no rate", kind=Unsure, evidence=Evidence(mode=CHAIN)),
    Case(id="M018", name="plain decoding", kind=Beside, evidence=Evidence(mode=mode("none"))),
    Case(
        id="M019",
        name="recorded lines of block 8",
        kind=Clear,
        evidence=Evidence(mode=CHAIN, log=RECORDED, steady=True),
    ),
    Case(
        id="M019",
        name="recorded lines taken for block 16",
        kind=Hit,
        evidence=Evidence(mode=parse("dflash:block_size=16"), log=RECORDED, steady=True),
        words=("of 15 drafts",),
    ),
    Case(
        id="M019",
        name="rates of the widest step that the engine allows",
        kind=Clear,
        evidence=replace(decode("1.68", "0.02"), info=WIDEST),
    ),
    Case(
        id="M019",
        name="rates of neither",
        kind=Hit,
        evidence=replace(decode("1.68", "0.05"), info=WIDEST),
        words=("of 7 drafts", "1 of 1"),
    ),
    Case(id="M019", name="a tree's rate is per node", kind=Beside, evidence=decode("2.00", "0.14", TREE)),
    Case(
        id="M019", name="the mode may have changed", kind=Unsure, evidence=replace(decode("2.00", "0.14"), steady=False)
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
