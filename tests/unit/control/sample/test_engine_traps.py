"""Every trap of SGLang 0.5.23's figures that touches sampling, on recorded text (tests/data/sglang-0.5.23/{loads,metrics,dialect}).

Numbers are those of the recordings' list of surprises; § are of the engine's facts that the project keeps.

| trap | told by | test |
|---|---|---|
| 2, 3: endpoints answer 200 in the warm-up window, status says "ready" | /ready | test_warm_up_is_not_idleness |
| 4: families are absent before the first request | page | test_a_family_that_is_absent_is_unknown |
| 14: a frozen scheduler, every endpoint answers with its last numbers | age | test_a_frozen_scheduler_is_told_by_its_age |
| 16: a pause in place freezes the load at its moment | /ready, age | test_a_pause_is_not_load |
| 16: a pause that aborts looks idle | /ready | test_a_pause_that_aborts_is_not_idleness |
| 16, 22: gauges of /metrics and /v1/loads contradict each other, gauges lag | loads | test_gauges_of_the_page_are_not_the_load |
| 22: throughput gauges are sticky, come back, or average over idle time | – | test_sticky_and_misleading_figures_are_not_read |
| 22: left-over tokens in the pool while nothing runs | running | test_left_over_tokens_are_nobodys_context |
| 23: spec gauges keep the last window when idle | idle | test_an_accept_length_of_idle_time_is_not_a_rate |
| 23: spec gauges are 0 when speculation is off | zero | test_an_accept_length_of_zero_is_unknown |
| 23: length since start beside rate of the last window | sums | test_the_length_of_a_window_is_not_the_lifetimes |
| 23, 26: both absent after a reset; a reset moves no sums | sums | test_a_reset_of_the_average_touches_no_sums |
| 28: /server_info prints the API keys | fields | test_no_key_leaves_server_info |
| 30: an unknown rank answers an empty list | ranks | test_no_rank_is_not_no_request |
| 31: the retraction gauge is gone within a second | counter | test_retractions_are_counted |
| §3.2: without --enable-metrics some figures are 0 and mean nothing | – | test_zeros_of_an_engine_without_metrics_are_not_read |
| sums over decode steps are null before the first | null | test_no_step_yet_is_a_known_zero |
| §4: counters that grow when a request ends are bursty | basis | test_finish_time_counters_lag_behind_tokens |
| §4: commit length by finished requests is of the same requests | basis | test_finished_requests_and_steps_agree |
| §4: ranks repeat each other; data-parallel ranks add up | labels | test_ranks_repeat_and_data_parallel_ranks_add_up |
| §4: totals of priorities are under priority="" | labels | test_priorities_are_not_added_to_their_total |
| §4: counters begin anew with a restart | sums | test_a_restart_is_no_negative_rate |
| §4: accept rate of a tree is per node | – | test_sticky_and_misleading_figures_are_not_read |
| §5.1: the decode line has no trailing comma in 0.5.23 | – | test_every_recorded_decode_line_is_read |
"""

from __future__ import annotations

import csv
import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control.mode import mode
from specctl.control.sample import engine_info, engine_lines, engine_loads, engine_metrics
from specctl.control.sample.engine import (
    NO_STEPS,
    Activity,
    DecodeLine,
    EngineCounters,
    EngineInfo,
    EngineLines,
    EngineLoad,
    EngineSample,
    Look,
    Page,
)
from specctl.control.sample.engine_track import EngineTrack, advance
from specctl.engines._sglang_log import GRAMMAR
from specctl.engines._sglang_metrics import METRICS

DATA = Path(__file__).parents[3] / "data" / "sglang-0.5.23"
DFLASH = mode("dflash", {"block_size": 8})


def load(name: str) -> EngineLoad:
    """Return a recorded answer of /v1/loads."""
    found = engine_loads.parse((DATA / "loads" / f"{name}.json").read_bytes())
    assert found is not None
    return found


def page(name: str, folder: str = "metrics") -> EngineCounters:
    """Return a recorded page of /metrics."""
    return engine_metrics.parse((DATA / folder / f"{name}.txt").read_bytes(), METRICS)


def samples(*looks: Look, pages: tuple[Page, ...] = ()) -> list[EngineSample]:
    """Return the samples of looks a second apart, the page of the same place with each."""
    track, found = EngineTrack(), []
    for place, look in enumerate(looks):
        with_page = pages[place] if place < len(pages) else None
        track, sample = advance(track, at_s=look.at_s, look=look, page=with_page, mode=DFLASH)
        found.append(sample)
    return found


def twice(name: str, *, ready: bool | None = True) -> EngineSample:
    """Return the second of two samples that a second apart saw the same recorded load."""
    return samples(*(Look(at_s=at_s, load=load(name), ready=ready) for at_s in (1.0, 2.0)))[1]


def test_warm_up_is_not_idleness() -> None:
    """A server in its warm-up window answers an empty load; while /ready refuses, nothing is believed of it."""
    assert twice("warmup", ready=False).activity is Activity.UNREADY
    assert twice("warmup", ready=False).concurrency is None


def test_a_family_that_is_absent_is_unknown() -> None:
    """Before the first request a page has no running gauge and no token counter: None, not 0."""
    found = page("metrics_warmup", "dialect")
    assert engine_metrics.is_page((DATA / "dialect" / "metrics_warmup.txt").read_bytes())
    assert (found.running, found.queued, found.decode_tokens, found.verify_calls) == (None, None, None, None)


@pytest.mark.parametrize(
    ("name", "activity", "concurrency"),
    [
        ("frozen-before", Activity.ACTIVE, 4),
        ("frozen-3s", Activity.ACTIVE, 4),
        ("frozen-12s", Activity.FROZEN, None),
        ("frozen-40s", Activity.FROZEN, None),
    ],
)
def test_a_frozen_scheduler_is_told_by_its_age(name: str, activity: Activity, concurrency: int | None) -> None:
    """Four requests are said to run 40 s after the scheduler stopped; from 10 s on that is unknown."""
    assert load(name).running == 4
    assert (twice(name).activity, twice(name).concurrency) == (activity, concurrency)


@pytest.mark.parametrize("name", ["paused-in-place", "paused-retract"])
def test_a_pause_is_not_load(name: str) -> None:
    """A pause leaves two requests standing in the load for ever; while /ready refuses, they are not counted."""
    assert load(name).running == 2
    assert (twice(name, ready=False).activity, twice(name, ready=False).running) == (Activity.UNREADY, None)


def test_a_pause_that_aborts_is_not_idleness() -> None:
    """After a pause that aborted all, the load is empty and fresh; only /ready tells that nothing is served."""
    assert twice("paused-abort").activity is Activity.IDLE
    assert twice("paused-abort", ready=False).activity is Activity.UNREADY


def test_gauges_of_the_page_are_not_the_load() -> None:
    """Of one paused server the page says 0 running and 2 queued, the load 2 and 0: concurrency is never read off a page."""
    gauges = page("paused-retract")
    assert (gauges.running, gauges.queued) == (0, 2)
    said = load("paused-retract")
    assert (said.running, said.waiting) == (2, 0)
    with_page = samples(
        *(Look(at_s=at_s, load=said, ready=True) for at_s in (1.0, 2.0)), pages=(Page(at_s=1.0, counters=gauges),) * 2
    )
    assert (with_page[1].running, with_page[1].waiting) == (2, 0)


def test_sticky_and_misleading_figures_are_not_read() -> None:
    """Throughput gauges, last_gen_throughput and accept rates are in no value: there is nothing to misread."""
    values = (EngineLoad, EngineCounters, EngineInfo, DecodeLine, EngineSample)
    names = {field.name for value in values for field in dataclasses.fields(value)}
    assert not {name for name in names if name.endswith(("throughput", "_rate", "utilization"))}


def test_left_over_tokens_are_nobodys_context() -> None:
    """Tokens may stand in the pool after warm-up while nothing runs (28 of them): they are the context of no request."""
    left_over = replace(load("idle"), used_tokens=28)
    looks = (Look(at_s=at_s, load=left_over, ready=True) for at_s in (1.0, 2.0))
    assert samples(*looks)[1].context_tokens is None
    assert twice("busy-4").context_tokens == 2044 / 4


def test_an_accept_length_of_idle_time_is_not_a_rate() -> None:
    """The gauge stays at its last window through idle seconds, and a sample of such a second has no accept length."""
    with (DATA / "metrics" / "dflash-gauges.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    after = [row for row in rows if row["phase"] == "after8"]
    stale = {row["metrics:spec_accept_length"] for row in after if row["loads:num_running_reqs"] == "0"}
    assert stale == {"1.01869"}
    idle = twice("dflash-after-8")
    assert (idle.activity, idle.decoded and idle.decoded.accept_length) == (Activity.IDLE, None)


def test_an_accept_length_of_zero_is_unknown() -> None:
    """Without speculation the gauge says 0, which is no length; draft tokens of 0 do say that nothing drafts."""
    assert (page("after-8").accept_length, page("after-8").draft_tokens) == (None, 0)
    assert (page("dflash-after-8").accept_length, page("dflash-after-8").draft_tokens) == (1.0186915887850467, 8)


def test_the_length_of_a_window_is_not_the_lifetimes() -> None:
    """The average since the start says 1.41; the steps between two looks committed 1.24 tokens each."""
    looks = (
        Look(at_s=1.0, load=load("dflash-busy-8"), ready=True),
        Look(at_s=2.0, load=load("dflash-after-8"), ready=True),
    )
    gained = samples(*looks)[1].decoded
    assert looks[0].load.lifetime_accept_length == pytest.approx(1.41, abs=0.01)
    assert gained is not None
    assert gained.accept_length == pytest.approx(1.24, abs=0.01)


def test_a_reset_of_the_average_touches_no_sums() -> None:
    """After a threshold was set the average is absent; sums over steps are what they were."""
    before, after = load("dflash-after-8"), load("dflash-after-reset")
    assert (before.lifetime_accept_length, after.lifetime_accept_length) == (1.324094172649858, None)
    assert before.decoded == after.decoded


def test_no_key_leaves_server_info() -> None:
    """Nothing that is read from /server_info has an API key in it, nor a path."""
    document = json.loads((DATA / "dialect" / "server_info.json").read_text(encoding="utf-8"))
    document |= {"api_key": "sk-one", "admin_api_key": "sk-two", "speculative_draft_model_path": "sk-three"}
    document["internal_states"] = [{**document.get("internal_states", [{}])[0], "api_key": "sk-one"}]
    document["launch_command"] = "--api-key sk-one"
    info = engine_info.parse(json.dumps(document).encode())
    assert info is not None
    assert info.version == "0.5.23"
    assert "sk-" not in repr(info)


def test_no_rank_is_not_no_request() -> None:
    """A 200 with an empty list of ranks knows nothing of requests."""
    assert load("no-ranks") == EngineLoad(version="0.5.23")
    assert twice("no-ranks").activity is Activity.STALE


def test_no_step_yet_is_a_known_zero() -> None:
    """A server that has decoded nothing answers null for its sums: that is no step yet, and so it can be shown to be idle."""
    assert load("before-first-step").decoded == NO_STEPS
    assert twice("before-first-step").activity is Activity.IDLE


def test_retractions_are_counted() -> None:
    """The gauge is back at 0 a second later; the counter keeps the one retraction."""
    assert (page("retracted").retracted, page("retracted-after").retracted) == (1, 1)


def test_zeros_of_an_engine_without_metrics_are_not_read() -> None:
    """Without --enable-metrics requests and sums are right, and what is not is in no field."""
    said = load("no-metrics-busy")
    assert (said.running, said.waiting, said.lifetime_accept_length) == (1, 0, None)
    assert said.decoded is not None
    assert said.decoded.tokens == 6


def test_finish_time_counters_lag_behind_tokens() -> None:
    """While four requests run, finished ones have made 1496 tokens, and steps already 2673."""
    found = page("dflash-busy-4-whole")
    assert (found.generated_tokens, found.decode_tokens) == (1496, 2673)
    assert (found.verify_calls, found.running, found.queued) == (1308, 4, 0)


def test_finished_requests_and_steps_agree() -> None:
    """All requests over: commit length by finished requests and by steps are one figure, and both by one basis each."""
    finished, steps = page("dflash-after-8"), load("dflash-after-8").decoded
    assert finished.generated_tokens is not None
    assert finished.verify_calls is not None
    assert finished.requests is not None
    assert steps is not None
    by_requests = (finished.generated_tokens - finished.requests) / finished.verify_calls
    assert steps.accept_length == pytest.approx(by_requests, rel=0.005)
    assert steps.tokens == pytest.approx(finished.decode_tokens, rel=0.005)


def test_ranks_repeat_and_data_parallel_ranks_add_up() -> None:
    """Eight tensor-parallel ranks of two data-parallel groups that each say a number: it counts once a group."""
    recorded = (DATA / "metrics" / "busy-8-queued-4.txt").read_text(encoding="utf-8")
    line = next(row for row in recorded.splitlines() if row.startswith("sglang:num_running_reqs{"))
    ranks = [
        line.replace('tp_rank="0"', f'tp_rank="{tp}",dp_rank="{dp}"').replace(" 8.0", f" {5 + dp}.0")
        for tp in range(8)
        for dp in range(2)
    ]
    assert engine_metrics.parse(("\n".join(ranks) + "\n").encode(), METRICS).running == 11


def test_priorities_are_not_added_to_their_total() -> None:
    """With priority scheduling the series under an empty priority is the total of the others."""
    recorded = (DATA / "metrics" / "busy-8-queued-4.txt").read_text(encoding="utf-8")
    line = next(row for row in recorded.splitlines() if row.startswith("sglang:num_running_reqs{"))
    rows = [line.replace("{", f'{{priority="{priority}",') for priority in ("", "1", "2")]
    assert engine_metrics.parse(("\n".join(rows) + "\n").encode(), METRICS).running == 8


def test_a_restart_is_no_negative_rate() -> None:
    """Sums that fell are a restart: that sample gained nothing, and the next one counts from the new start."""
    after = load("dflash-idle")
    assert after.decoded is not None
    more = replace(after, decoded=after.decoded + after.decoded)
    found = samples(
        Look(at_s=1.0, load=load("dflash-after-8"), ready=True),
        Look(at_s=2.0, load=after, ready=True),
        Look(at_s=3.0, load=more, ready=True),
    )
    assert [(one.restarted, one.decoded) for one in found[1:]] == [(True, None), (False, after.decoded)]


def test_every_recorded_decode_line_is_read() -> None:
    """Each decode line of the recording tells requests, queue, accept length and that no graph was used."""
    recorded = (DATA / "dialect" / "decode_lines.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in recorded if "Decode batch" in line]
    reading = engine_lines.reader(GRAMMAR, None)
    found = engine_lines.fold(EngineLines(), lines, reading)
    assert (found.decode_lines, found.tree_lines, found.last_is_tree) == (len(lines), 0, False)
    first = engine_lines.decode_line(lines[0])
    assert first == DecodeLine(running=1, queued=0, accept_length=1.12, graph=False)
