"""DDTREE where the engine is set up otherwise: pages of 16 tokens, no overlap, requests taken back, a trace written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl.doctor import replay
from tests.fleet.waiting import until
from tests.sglang import ddtree_cases as cases
from tests.sglang.ddtree_cases import PROMPTS, Plain
from tests.sglang.ddtree_engine import Engine, started

pytestmark = pytest.mark.sglang

PAGE = 16
EVERY = 9
PAIRS = ((0, 1), (7, 1), (3, 8), (16, 4), (24, 3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give where the engine writes."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def server(folder: Path, plain: Plain) -> Iterator[Engine]:  # one engine at a time
    """Give an engine with pages of 16 tokens that takes requests back every few steps and puts them in line again."""
    env = {
        "DDTREE_MAX_BUDGET": "24",
        "DDTREE_MAX_TOPK": "8",
        "DDTREE_TRACE": str(folder / "trace"),
        "SGLANG_TEST_RETRACT": "true",
        "SGLANG_TEST_RETRACT_INTERVAL": str(EVERY),
    }
    with started(folder, "DDTREE", env=env, options=("--page-size", str(PAGE), "--disable-overlap-schedule")) as engine:
        yield engine


@pytest.mark.parametrize(("budget", "topk"), PAIRS)
def test_requests_that_are_taken_back_end_as_plainly(server: Engine, plain: Plain, budget: int, topk: int) -> None:
    """Requests of a batch that are taken back in the middle and read again have plain decoding's text at the end."""
    assert server.turn(ddtree_budget=budget, ddtree_topk=topk)
    alone = server.ask_all(cases.plain_bodies())
    together = server.ask_all(cases.plain_bodies(), at_once=len(PROMPTS))
    assert [answer.tokens for answer in alone] == plain.texts
    assert [answer.tokens for answer in together] == plain.texts
    assert sum(int(str(answer.meta["num_retractions"])) for answer in together) > 0


def test_prompts_that_go_on_in_a_trees_pages(server: Engine, plain: Plain) -> None:
    """Whole pages that a tree left are used again by a prompt that goes on from its text."""
    assert server.turn(ddtree_budget=16, ddtree_topk=4)
    server.ask_all(cases.plain_bodies())
    bodies = cases.special_bodies(plain.texts)
    for name in ("follow-up", "follow-up cut inside a text", "stop token inside a text"):
        answer = server.ask(bodies[name])
        assert (name, answer.tokens) == (name, plain.special[name].tokens)
        if name == "follow-up":
            assert int(str(answer.meta["cached_tokens"])) > len(PROMPTS[4]) + PAGE


def ended(trace: Path) -> set[str]:
    """Return the requests whose end a trace tells; a line that is being written tells nothing yet."""
    whole = trace.read_text().rpartition("\n")[0].splitlines()
    return {record["rid"] for record in map(json.loads, whole[1:]) if record["finish"] not in (None, "abort")}


def test_trace_is_found_sound_by_the_doctor(server: Engine, folder: Path) -> None:
    """The trace of all of this is read whole by specctl's replay, which shares no code with the plugin, and nothing diverges.

    What it says was committed, over all the times that a request was taken back, is what the client received.
    """
    assert server.turn(ddtree_budget=16, ddtree_topk=4)
    answers = server.ask_all(cases.plain_bodies(), at_once=3)
    wanted = {str(answer.meta["id"]) for answer in answers}
    # A step is written once the scheduler has settled it, which is a moment after its answer has left.
    until(lambda: wanted <= ended(folder / "trace"), what="the end of every request in the trace", within_s=10.0)
    lines = (folder / "trace").read_text().splitlines()
    found = replay.check(lines)
    assert (found.engine, found.malformed, found.divergences) == ("sglang-ddtree", 0, ())
    assert found.sums.steps > 100
    committed: dict[str, list[int]] = {}
    for record in map(json.loads, lines[1:]):
        committed.setdefault(record["rid"], []).extend(record["committed"])
    for answer in answers:
        assert committed[str(answer.meta["id"])] == answer.tokens
