"""Counters, gauges and lines of the real server against what its clients received."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import labmodels
from tests.labserver import LabServer, wait_until
from tests.unit.lab.serve.test_switching import DFLASH, NONE, TREE, switch

PROMPTS = ("def f(", "import os", "class A", "for x in", "return", "try:")


@pytest.mark.parametrize("wanted", [NONE, DFLASH, TREE], ids=["none", "dflash", "ddtree"])
def test_counters_equal_what_was_received(wanted: Mapping[str, object], server: LabServer) -> None:
    """Finish-time counters grow by exactly the tokens, requests and verify calls that the answers tell."""
    switch(server, wanted)
    before = server.metrics()
    with ThreadPoolExecutor(max_workers=len(PROMPTS)) as pool:
        answers = [answer.json() for answer in pool.map(lambda prompt: server.generate(prompt, tokens=50), PROMPTS)]
    infos = [answer["meta_info"] for answer in answers]
    after = server.metrics()
    switch(server, NONE)

    def grown(name: str) -> float:
        return after.get(f"sglang:{name}", 0.0) - before.get(f"sglang:{name}", 0.0)

    assert grown("prompt_tokens_total") == sum(info["prompt_tokens"] for info in infos)
    assert grown("generation_tokens_total") == sum(info["completion_tokens"] for info in infos) == 300
    assert grown("num_requests_total") == len(PROMPTS)
    assert grown("spec_verify_calls_total") == sum(info.get("spec_verify_ct", 0) for info in infos)
    assert grown("realtime_tokens_total") == sum(
        info["prompt_tokens"] + info["completion_tokens"] - 1 for info in infos
    )
    assert grown("e2e_request_latency_seconds_count") == grown("time_to_first_token_seconds_count") == len(PROMPTS)
    assert grown("http_responses_total") >= len(PROMPTS)


@pytest.fixture(scope="module")
def talkative(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A server whose drafter is often right and that prints a line for every decode step."""
    metronome = labmodels.write_metronome(tmp_path_factory.mktemp("metronome"))
    arguments = ("--enable-metrics", "--decode-log-interval", "1")
    with LabServer(metronome, logs, *arguments) as started:
        yield started.ready()


@pytest.mark.parametrize(("wanted", "proposed"), [(DFLASH, 7), (TREE, 16)], ids=["dflash", "ddtree"])
def test_lines_agree_with_the_answer(wanted: Mapping[str, object], proposed: int, talkative: LabServer) -> None:
    """For a lone request the lines, /v1/loads, the gauges and meta_info tell one and the same acceptance."""
    switch(talkative, wanted)
    talkative.post("/flush_cache")
    before = len(talkative.log())
    info = talkative.generate("def parse(self, text):", tokens=150).json()["meta_info"]
    lengths = [float(found) for found in re.findall(r"accept len: ([\d.]+)", talkative.log()[before:])]
    wait_until(lambda: talkative.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 0, what="an idle snapshot")
    load = talkative.get("/v1/loads").json()["loads"][0]["speculative"]
    calls, correct = info["spec_verify_ct"], info["spec_num_correct_drafts"]
    assert 0 < correct < calls * proposed
    assert (len(lengths), sum(lengths)) == (calls, calls + correct)
    assert load["accept_length"] == pytest.approx(1 + correct / calls)
    assert talkative.metrics()["sglang:spec_accept_length"] == lengths[-1]
    assert calls < info["spec_num_proposed_drafts"] <= proposed * calls
    assert 150 <= 1 + calls + correct < 150 + proposed


def test_a_chain_knows_one_beat_of_three(talkative: LabServer) -> None:
    """The metronome's chain has all drafts right or none, as it was made to, and meta_info counts both."""
    switch(talkative, DFLASH)
    counts = talkative.generate("tick", tokens=150).json()["meta_info"]["spec_correct_drafts_histogram"]
    assert (len(counts), counts[1:7], counts[0] > 0, counts[7] > 0) == (8, [0] * 6, True, True)


def test_tree_lines_obey_the_conventions(talkative: LabServer) -> None:
    """Nodes include the root, depth equals drafts, a commit is drafts plus bonus unless the request finished in the block."""
    switch(talkative, TREE)
    before = len(talkative.log())
    count = talkative.generate("def parse(self, text):", tokens=150).json()["meta_info"]["completion_tokens"]
    figures = r"avg_actual_nodes=(\S+) avg_accepted_drafts=(\S+) avg_commit_len=(\S+) avg_accepted_depth=(\S+)"
    found = re.findall(rf"DDTREE metrics: bs=1 budget=16 {figures}", talkative.log()[before:])
    lines = [tuple(float(number) for number in line) for line in found]
    assert all(1 <= nodes <= 17 and depth == drafts for nodes, drafts, _, depth in lines)
    assert all(commit == drafts + 1 for _, drafts, commit, _ in lines[:-1])
    assert sum(commit for _, _, commit, _ in lines) == count - 1


def test_gauges_while_busy_and_after(server: LabServer) -> None:
    """Running and queued requests show while they last and are 0 afterwards."""

    def load() -> dict[str, float]:
        found: dict[str, float] = server.get("/v1/loads").json()["loads"][0]
        return found

    server.post("/slow_down", {"forward_sleep_time": 0.01})
    with ThreadPoolExecutor(max_workers=6) as pool:
        answers = [pool.submit(server.generate, prompt, 400) for prompt in PROMPTS]
        wait_until(
            lambda: (load()["num_running_reqs"], load()["num_waiting_reqs"]) == (4, 2), what="a full batch and a queue"
        )
        wait_until(lambda: server.metrics()["sglang:num_running_reqs"] == 4, what="a decode line")
        busy = load()
        assert busy["num_waiting_uncached_tokens"] == busy["num_total_tokens"] - busy["num_used_tokens"] > 0
        assert server.metrics()["sglang:num_queue_reqs"] == 2
        server.post("/abort_request", {"abort_all": True})
        assert [answer.result(timeout=10).status_code for answer in answers] == [200] * 6
    server.post("/slow_down", {"forward_sleep_time": None})
    wait_until(lambda: server.metrics()["sglang:num_running_reqs"] == 0, what="idle gauges")
    found = server.metrics()
    assert [
        found[f"sglang:{name}"] for name in ("num_queue_reqs", "num_used_tokens", "token_usage", "gen_throughput")
    ] == [0] * 4
