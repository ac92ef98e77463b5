"""Live changes of the algorithm on the real server: nothing lost, everything told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.labmodels import Folders
from tests.labserver import LabServer, wait_until

DFLASH: Mapping[str, object] = {"speculative_algorithm": "DFLASH", "speculative_dflash_block_size": 8}
TREE: Mapping[str, object] = {
    "speculative_algorithm": "DDTREE",
    "speculative_ddtree_budget": 16,
    "speculative_ddtree_topk_cap": 4,
}
NONE: Mapping[str, object] = {"speculative_algorithm": None}


def switch(server: LabServer, wanted: Mapping[str, object]) -> list[bool]:
    """Ask for a live change and return the answer."""
    answer = server.post("/set_internal_state", {"server_args": dict(wanted)})
    assert answer.status_code == 200
    found: list[bool] = answer.json()
    return found


def state(server: LabServer) -> dict[str, object]:
    """Return what the scheduler says of its speculation."""
    inner = server.get("/server_info").json()["internal_states"][0]
    names = ("speculative_algorithm", "speculative_num_draft_tokens", "speculative_ddtree_budget")
    return {name.removeprefix("speculative_"): inner[name] for name in names}


def test_greedy_answers_do_not_change(server: LabServer) -> None:
    """Greedy answers are the same, token for token, under every algorithm."""
    answers = []
    for wanted in (NONE, DFLASH, TREE, NONE):
        assert switch(server, wanted) == [True]
        answers.append(server.generate("def parse(", tokens=80).json()["output_ids"])
    assert answers == [answers[0]] * 4


def test_a_switch_under_load_loses_nothing(server: LabServer) -> None:
    """Requests in flight go on through every switch with the tokens they would have had."""
    wanted = server.generate("class Node:", tokens=300).json()["output_ids"]
    server.post("/slow_down", {"forward_sleep_time": 0.002})
    with server.background_generate(text="class Node:", tokens=300) as running:
        wait_until(lambda: server.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 1, what="the request")
        switches = 0
        while not running.done():
            assert switch(server, (DFLASH, TREE, NONE)[switches % 3]) == [True]
            switches += 1
        answer = running.result(timeout=30)
    server.post("/slow_down", {"forward_sleep_time": None})
    switch(server, NONE)
    assert (answer.json()["output_ids"], switches > 3) == (wanted, True)


def test_the_state_is_told(server: LabServer) -> None:
    """The internal state follows the switch and the top level stays as started; the log names the tree."""
    assert switch(server, TREE) == [True]
    assert state(server) == {"algorithm": "DDTREE", "num_draft_tokens": 17, "ddtree_budget": 16}
    assert server.get("/server_info").json()["speculative_algorithm"] is None
    assert "Initialized DDTREE verifier. tree_budget=16, topk_cap=4, block_size=8" in server.log()
    assert switch(server, {"speculative_ddtree_budget": 7}) == [True]
    assert state(server) == {"algorithm": "DDTREE", "num_draft_tokens": 8, "ddtree_budget": 7}
    assert switch(server, {"speculative_algorithm": "NONE"}) == [True]
    assert state(server) == {"algorithm": None, "num_draft_tokens": None, "ddtree_budget": None}


def test_the_tree_line_comes_and_goes(server: LabServer) -> None:
    """The DDTREE line is printed while a tree decodes and at no other time."""
    switch(server, TREE)
    server.generate(tokens=90)
    trees = server.log().count("DDTREE metrics: bs=1 budget=16")
    assert trees >= 1
    switch(server, DFLASH)
    server.generate(tokens=90)
    assert server.log().count("DDTREE metrics: bs=1 budget=16") == trees
    switch(server, NONE)


@pytest.mark.parametrize(
    "wanted",
    [
        {"speculative_algorithm": "NOSUCH"},
        {"speculative_algorithm": "DDTREE", "speculative_ddtree_budget": 0},
        {"speculative_algorithm": "DDTREE", "speculative_ddtree_budget": 2.5},
        {"speculative_algorithm": "DFLASH", "speculative_dflash_block_size": 9},
        {"speculative_algorithm": 5},
        {"speculative_algorithm": "DFLASH", "nosuch": 1},
        {"speculative_algorithm": "DFLASH", "pp_max_micro_batch_size": 99},
    ],
)
def test_a_refused_switch_changes_nothing(wanted: dict[str, object], server: LabServer) -> None:
    """An unknown algorithm, a knob out of bounds or one bad key refuses all: [false], and the state stays."""
    before = state(server)
    assert switch(server, wanted) == [False]
    assert state(server) == before


def test_no_switch_without_a_drafter(folders: Folders, logs: Path) -> None:
    """A server without a drafter refuses to speculate and serves on."""
    with LabServer(folders, logs, draft=False) as plain:
        assert switch(plain.ready(), DFLASH) == [False]
        assert plain.generate(tokens=5).status_code == 200
