"""Benches: kept and read back, summed up, doubted, compared, drawn."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.measure import bench_wire
from specctl.measure.bench import METRICS, summary
from specctl.measure.bench_compare import compare
from specctl.measure.bench_doubts import doubts, grouped
from specctl.measure.bench_figure import figure
from specctl.measure.figures import Figures
from specctl.measure.intervals import Interval
from tests.examples import HOSTILE
from tests.unit.measure.benches import SETTING, SUBJECT, bench, level, one_run
from tests.unit.measure.loads import answer, run


def test_bench_comes_back_from_json_as_it_was() -> None:
    """Through JSON and back nothing is lost, unknown stays unknown."""
    for made in (
        bench(),
        bench(levels=(level("1", [1.5], runs=(Figures(failed=3),)),), note=None, stopped="interrupted"),
    ):
        assert bench_wire.from_wire(json.loads(json.dumps(bench_wire.as_wire(made)))) == made


def test_a_newer_field_is_left_alone_and_an_older_file_lacks_some() -> None:
    """Fields that this specctl does not know are passed over; those that an older one did not write have their default."""
    wire = json.loads(json.dumps(bench_wire.as_wire(bench())))
    wire["subject"]["colour"] = "red"
    del wire["subject"]["kernel"]
    del wire["gpu_source"]
    assert bench_wire.from_wire(wire) == bench()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("levels",), 5, "bench.levels is no list"),
        (("levels", 0, "runs", 0, "tokens_s"), "fast", r"bench.levels\[0\].runs\[0\].tokens_s is str"),
        (("levels", 0, "runs", 0, "requests"), True, "requests is bool"),
        (("subject",), None, "bench.subject is no object"),
        (("setting", "seed"), 1.5, "bench.setting.seed is float"),
    ],
)
def test_what_is_no_bench_is_told_with_its_place(path: tuple[str | int, ...], value: object, words: str) -> None:
    """A field of another type is named with where it stands."""
    wire = json.loads(json.dumps(bench_wire.as_wire(bench())))
    place = wire
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=words):
        bench_wire.from_wire(wire)


WIRE = bench_wire.as_wire(bench())
LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=5)
JSON = LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(st.sampled_from(("name", "runs", "host", "x")), LEAVES)


@given(levels=JSON, subject=JSON)
@settings(max_examples=HOSTILE, deadline=None)
def test_any_json_is_read_or_refused(levels: object, subject: object) -> None:
    """Whatever a file holds, it is a bench or a ValueError."""
    for name, value in (("levels", levels), ("subject", subject)):
        try:
            assert bench_wire.from_wire({**WIRE, name: value}).levels == ()
        except ValueError as error:
            assert str(error).startswith(f"bench.{name}")  # noqa: PT017  # an empty list of levels is a bench


def test_summary_is_the_median_over_runs_with_its_range() -> None:
    """Three runs give their median, their range, and the confidence that a range of three has."""
    found = summary(level("1", [90.0, 110.0, 100.0]), "tokens_s")
    assert found == Interval(centre=100.0, low=90.0, high=110.0, confidence=0.75, count=3)


def test_summary_of_a_part_of_the_runs_is_unknown() -> None:
    """A figure that one run does not tell has no median over the level."""
    made = level("1", [1.0], runs=(one_run(90.0), replace(one_run(90.0), tokens_s=None)))
    assert summary(made, "tokens_s") is None


def test_every_figure_is_summed_up() -> None:
    """Each figure of the list is there for runs that tell all."""
    assert set(bench_wire.summaries(level("1", [90.0, 91.0]))) == {metric.name for metric in METRICS}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (one_run(9.0, client_busy_ratio=0.9), "the sender took 0.90 of a core"),
        (
            one_run(9.0, bursts=2),
            "2 of 30 answers came in bursts, not as they were made: EACH and STEPS/S are of the others",
        ),
        (
            one_run(9.0, bursts=30),
            "30 of 30 answers came in bursts, not as they were made: EACH and STEPS/S are not known",
        ),
        (one_run(9.0, client_lag_s=0.25), "its alarms came 250 ms late"),
        (one_run(9.0, cached_ratio=0.5), "50 % of the prompts' tokens came from the prefix cache"),
        (one_run(9.0, foreign_requests=3.0, foreign_tokens=40.0), "served 3 other requests with 40 tokens meanwhile"),
        (one_run(9.0, in_flight=1.2), "1.2 requests were in flight on the mean, not 2"),
        (one_run(9.0, late_s=0.3), "a request was sent 300 ms after its moment"),
        (one_run(9.0, window_s=None), "there was no steady stretch"),
        (one_run(9.0, requests=1), "fewer than two whole requests"),
    ],
)
def test_doubts_name_what_spoils_a_run(figures: Figures, words: str) -> None:
    """Each thing that makes figures doubtful is named, and nothing else is."""
    made = run([answer(0.0, 1.0, warmup=True)], concurrency=2)
    found = doubts(made, figures)
    assert len(found) == 1
    assert words in found[0]


def test_doubts_of_several_runs_are_told_once() -> None:
    """What differs in its numbers alone is said once, with how many runs had it."""
    found = grouped(
        [
            "a request was sent 73 ms after its moment",
            "2 of 4 requests failed: x",
            "a request was sent 6.5 ms after its moment",
        ]
    )
    assert found == ("a request was sent 73 ms after its moment (so in 2 runs)", "2 of 4 requests failed: x")


def test_heat_is_a_doubt_and_the_power_cap_is_not() -> None:
    """Clocks held down by heat are named; a full GPU at its power limit is as it is."""
    made = run([answer(0.0, 1.0)], concurrency=2)
    hot = one_run(9.0)
    assert hot.gpus is not None
    hot = replace(hot, gpus=replace(hot.gpus, throttle=("hw_thermal", "sw_power_cap")))
    assert doubts(made, hot) == ("clocks were held down: hw_thermal",)
    assert doubts(made, one_run(9.0)) == ()


def test_failures_and_the_reason_of_an_end_are_doubts() -> None:
    """Requests that failed are counted with the first one's words; a run that ended before its time says why."""
    broken = replace(answer(0.0, 1.0), failure="status 503")
    made = run([broken, answer(1.0, 2.0)], concurrency=2, stopped="the limit was over")
    assert doubts(made, one_run(9.0)) == (
        "the run ended before its time: the limit was over",
        "1 of 2 requests failed: status 503",
    )


def test_same_bench_shows_no_difference() -> None:
    """A bench against itself differs in nothing, in every figure of every level."""
    found = compare(bench(), bench())
    assert found.refusals == ()
    assert found.differences == ()
    assert len(found.rows) == 2 * len(METRICS)
    assert {row.verdict for row in found.rows} == {"none shown"}


def test_a_clear_gain_is_better_and_a_clear_loss_is_worse() -> None:
    """A fifth more throughput is better, and so are shorter times; the other way round both are worse."""
    slow, fast = bench(), bench(speeds=(120.0, 122.0, 121.0))
    verdicts = {row.metric.name: row.verdict for row in compare(slow, fast).rows if row.level == "1"}
    assert (verdicts["tokens_s"], verdicts["itl_p50_s"], verdicts["ttft_p50_s"]) == ("better", "better", "none shown")
    back = {row.metric.name: row.verdict for row in compare(fast, slow).rows if row.level == "1"}
    assert (back["tokens_s"], back["itl_p50_s"]) == ("worse", "worse")


def test_one_run_tells_no_difference() -> None:
    """Without a spread nobody knows: unknown, however large the difference."""
    rows = compare(bench(speeds=(100.0,)), bench(speeds=(200.0,))).rows
    assert {row.verdict for row in rows} == {"unknown"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(SETTING, tokens=64), "other lengths"),
        (replace(SETTING, prompts_digest="zzz"), "the prompts differ"),
        (replace(SETTING, pace="open"), "another kind"),
        (replace(SETTING, temperature=1.0), "temperatures"),
    ],
)
def test_unlike_benches_are_refused(other: object, words: str) -> None:
    """Other lengths, prompts, loads or temperatures make figures that cannot be compared."""
    found = compare(bench(), bench(setting=other))
    assert len(found.refusals) == 1
    assert words in found.refusals[0]


def test_benches_without_a_common_level_are_refused() -> None:
    """At other concurrencies throughput says nothing (the field's own mistake)."""
    found = compare(bench(levels=(level("1", [1.0]),)), bench(levels=(level("8", [1.0]),)))
    assert found.refusals == ("no level is in both (1 and 8)",)
    assert found.alone == ("1", "8")


def test_what_else_differs_is_listed() -> None:
    """Another mode, release or machine is often what is compared: it is listed, and refuses nothing."""
    found = compare(bench(), bench(subject=replace(SUBJECT, mode="none", gpus=None)))
    assert found.refusals == ()
    assert found.differences == (("mode", "dflash:block_size=8", "none"), ("GPUs", "8× H200", "—"))


def test_figure_has_a_panel_for_what_is_told() -> None:
    """A bench without speculation has no panels of acceptance; every point has its range."""
    plain = level(
        "1", [1.0], runs=tuple(one_run(speed, accept_length=None, verify_steps_s=None) for speed in (9.0, 10.0, 11.0))
    )
    found = figure(bench(levels=(plain,)))
    assert [panel.y_label for panel in found.panels] == [
        "tokens a second",
        "tokens a second, each",
        "first token, ms",
        "a token, ms",
    ]
    point = found.panels[0].lines[0].points[0]
    assert (point.x, point.low, point.y, point.high) == (1.0, 9.0, 10.0, 11.0)
