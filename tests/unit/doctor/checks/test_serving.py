"""How the engine serves, on recorded lines and answers of SGLang 0.5.23 where they are its dialect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import parse
from specctl.control.sample.engine import DecodeSums
from specctl.doctor.evidence import OWN_RUN, Configuration, Evidence, Observation, Speed
from specctl.doctor.types import Beside, Clear, Hit, Unsure
from tests.unit.doctor.checks.cases import Case, log, look, recorded_load, recorded_log

CHAIN = parse("dflash:block_size=8")
LINE = (
    "[2026-11-29 18:03:29 TP0] Decode batch, #running-req: {batch}, #token: 60, token usage: 0.00, accept len: 2.00, "
    "accept rate: 0.14, cuda graph: {graph}, gen throughput (token/s): 135.01, #queue-req: 0"
)


def decode(*lines: tuple[int, bool]) -> Evidence:
    """Return evidence with decode lines of these batches, with a graph or without."""
    return Evidence(log=log(*(LINE.format(batch=batch, graph=graph) for batch, graph in lines)))


def overlap(on: bool | None, *implied: str) -> Evidence:  # what /server_info says
    """Return evidence with what is known of the overlap scheduler."""
    return Evidence(mode=parse("ddtree"), configuration=Configuration(overlap=on, implied=implied))


def queue(*waiting: int, running: int = 8) -> Evidence:
    """Return looks two seconds apart at a queue."""
    return Evidence(
        observations=tuple(look(2.0 * at, waiting=count, running=running) for at, count in enumerate(waiting))
    )


def stepping(step_s: float, *speeds: Speed) -> Evidence:
    """Return two looks between which 200 steps of one request were decoded."""
    before = DecodeSums(steps=100.0, requests=100.0, busy_s=2.0, request_busy_s=2.0, tokens=200.0)
    gained = DecodeSums(steps=200.0, requests=200.0, busy_s=200 * step_s, request_busy_s=200 * step_s, tokens=400.0)
    seen: tuple[Observation, ...] = (look(0.0, decoded=before), look(10.0, decoded=before + gained))
    return Evidence(mode=CHAIN, observations=seen, speeds=speeds)


KNOWN = Speed(mode=CHAIN, tokens_s=100.0, concurrency=1.0, steps_s=50.0, run="bench-1")

CASES = (
    Case(
        id="S003",
        name="eager above the captured batch",
        kind=Hit,
        evidence=decode((4, True), (32, False), (32, False)),
        words=("2 of 3", "batches of 32", "graphs were seen up to 4", "--cuda-graph-max-bs-decode to 32"),
    ),
    Case(id="S003", name="eager always", kind=Hit, evidence=decode((1, False)), words=("1 of 1", "batches of 1")),
    Case(id="S003", name="graphs", kind=Clear, evidence=decode((1, True), (8, True))),
    Case(
        id="S003",
        name="a recorded server without a GPU",
        kind=Beside,
        evidence=Evidence(log=recorded_log("logs/spec-dflash/server.log")),
    ),
    Case(id="S003", name="no line", kind=Unsure, evidence=Evidence(log=log("nothing of it"))),
    Case(
        id="S004",
        name="off for nothing",
        kind=Hit,
        evidence=overlap(False),
        words=("nothing that runs here needs it off",),
    ),
    Case(
        id="S004",
        name="off as the algo needs",
        kind=Hit,
        evidence=overlap(False, "--disable-overlap-schedule"),
        words=("as ddtree needs it", "third arm"),
    ),
    Case(id="S004", name="on", kind=Clear, evidence=overlap(True)),
    Case(id="S004", name="not told", kind=Unsure, evidence=overlap(None)),
    Case(id="S004", name="no GPU", kind=Beside, evidence=replace(overlap(False), no_gpus=True)),
    Case(
        id="S009",
        name="grows",
        kind=Hit,
        evidence=queue(3, 7, 12),
        words=("3 to 12", "all 8 places are taken", "waiting: 3, 7, 12"),
    ),
    Case(id="S009", name="stands", kind=Clear, evidence=queue(4, 4, 4)),
    Case(id="S009", name="ebbs", kind=Clear, evidence=queue(9, 12, 4)),
    Case(id="S009", name="begins from nothing", kind=Clear, evidence=queue(0, 1, 2)),
    Case(
        id="S009",
        name="one recorded look",
        kind=Unsure,
        evidence=Evidence(observations=(recorded_load("busy-8-queued-4"),)),
    ),
    Case(
        id="S010",
        name="a recorded frozen scheduler",
        kind=Hit,
        evidence=Evidence(observations=(recorded_load("frozen-40s"),)),
        words=("40 s ago", "4 requests running"),
    ),
    Case(
        id="S010",
        name="a recorded busy server",
        kind=Clear,
        evidence=Evidence(observations=(recorded_load("dflash-busy-4"),)),
    ),
    Case(
        id="S010",
        name="a recorded answer before any rank",
        kind=Unsure,
        evidence=Evidence(observations=(recorded_load("no-ranks"),)),
    ),
    Case(
        id="S011",
        name="twice as long",
        kind=Hit,
        evidence=stepping(0.04, KNOWN),
        words=("40.0 ms", "20.0", "bench-1", "200 steps"),
    ),
    Case(id="S011", name="as it was", kind=Clear, evidence=stepping(0.021, KNOWN), words=("21.0 ms",)),
    Case(id="S011", name="another batch", kind=Unsure, evidence=stepping(0.04, replace(KNOWN, concurrency=8.0))),
    Case(id="S011", name="the load itself", kind=Unsure, evidence=stepping(0.04, replace(KNOWN, run=OWN_RUN))),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_check_answers(case: Case) -> None:
    """Each row of the table."""
    case.holds()
