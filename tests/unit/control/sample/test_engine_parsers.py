"""Parsers of an engine's answers: whatever the text, they neither raise nor make a number out of what is none."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.sample import engine_info, engine_lines, engine_loads, engine_metrics, numbers
from specctl.control.sample.engine import NO_STEPS, EngineCounters, EngineLines, EngineLoad, TreeLine
from specctl.engines._sglang_log import GRAMMAR
from specctl.engines._sglang_metrics import METRICS

DATA = Path(__file__).parents[3] / "data" / "sglang-0.5.23"
WHOLE = (DATA / "metrics" / "dflash-busy-4-whole.txt").read_bytes()
LOAD = (DATA / "loads" / "dflash-busy-4.json").read_bytes()
INFO = (DATA / "dialect" / "server_info.json").read_bytes()
READING = engine_lines.reader(GRAMMAR, r"DDTREE metrics: bs=\d+ budget=(?P<tree_budget>\d+) .*")
TREE = (
    "[2026-11-29 14:02:11] DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=2.00 "
    "avg_commit_len=3.00 avg_accepted_depth=5.00"
)
NAMES = [wanted.family for wanted in METRICS.wanted]

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
LINES = st.builds(
    "{}{}{}\n".format,
    st.sampled_from(NAMES),
    st.text(max_size=40),
    st.sampled_from([" 1.0", " NaN", " -1", " 1e400", ""]),
)


@given(st.binary(max_size=400))
def test_no_bytes_make_a_parser_raise(body: bytes) -> None:
    """Arbitrary bytes are no load and no info, and a page of them has no figure that is not in them."""
    assert engine_loads.parse(body) is None
    assert engine_info.parse(body) is None
    assert engine_metrics.parse(body, METRICS) == EngineCounters()


@given(JSON, JSON)
def test_no_document_makes_a_parser_raise(rank: object, top: object) -> None:
    """Any JSON in the place of a rank, a state or the whole gives None or a value whose numbers are None or sensible."""
    for document in (top, {"loads": [rank], "timestamp": top}, {"loads": rank}, {"internal_states": [rank], "x": top}):
        body = json.dumps(document).encode()
        load = engine_loads.parse(body)
        engine_info.parse(body)
        assert load is None or load.running is None or load.running >= 0


@given(
    st.fixed_dictionaries(
        dict.fromkeys(
            ("num_running_reqs", "num_waiting_reqs", "num_used_tokens", "timestamp", "max_running_requests"), SCALARS
        )
        | {"decode_moments": st.lists(SCALARS, max_size=8) | SCALARS}
    )
)
def test_what_is_no_number_stays_unknown(rank: dict[str, object]) -> None:
    """A field that is no number of 0 or more is None, and never 0."""
    load = engine_loads.parse(json.dumps({"timestamp": "2026-11-29T16:41:22+00:00", "loads": [rank]}).encode())
    assert load is not None
    for name, found in (("num_running_reqs", load.running), ("num_used_tokens", load.used_tokens)):
        assert found == numbers.count(rank[name])
    moments = rank["decode_moments"]
    sensible = isinstance(moments, list) and len(moments) >= 6 and None not in map(numbers.amount, moments[:6])
    assert (load.decoded is not None) == (sensible or moments is None)


@given(st.lists(st.one_of(LINES, st.text(max_size=60)), max_size=12).map("".join))
def test_no_page_makes_a_figure_below_zero(page: str) -> None:
    """Whatever stands behind a wanted name, a figure is None or finite and not negative."""
    found = engine_metrics.parse(page.encode("utf-8", "replace"), METRICS)
    figures = [getattr(found, wanted.field) for wanted in METRICS.wanted]
    assert all(figure is None or 0 <= figure <= numbers.LARGEST for figure in figures)


@given(st.integers(min_value=0, max_value=len(WHOLE)))
def test_a_page_that_breaks_off_has_whole_figures_only(length: int) -> None:
    """A page cut anywhere says of each figure what the whole page says, or nothing."""
    whole, half = engine_metrics.parse(WHOLE, METRICS), engine_metrics.parse(WHOLE[:length], METRICS)
    for wanted in METRICS.wanted:
        assert getattr(half, wanted.field) in (None, getattr(whole, wanted.field))


@pytest.mark.parametrize("parse", [engine_loads.parse, engine_info.parse])
def test_deep_long_and_endless_json_is_refused(parse: object) -> None:
    """Nesting without end, numbers of 10,000 digits and 10 MB are no answers."""
    assert callable(parse)
    for body in (
        b"[" * 200_000,
        b'{"loads": ' + b"9" * 10_000 + b"}",
        b'{"loads": [], "x": "' + b"a" * 10_000_000 + b'"}',
    ):
        assert parse(body) is None


def test_a_page_of_ten_megabytes_is_refused() -> None:
    """A page over the limit has no figures, though the wanted ones stand in it."""
    page = WHOLE + b"# HELP x " + b"a" * 10_000_000 + b"\n"
    assert engine_metrics.parse(page, METRICS) == EngineCounters()
    assert not engine_metrics.is_page(page)


def test_a_page_of_many_series_costs_a_bounded_time() -> None:
    """Four megabytes of one wanted family are read to a bound, and make no figure: a part of a sum is none."""
    line = b'sglang:num_running_reqs{model_name="m",dp_rank="%d"} 1.0\n'
    page = b"# TYPE sglang:num_running_reqs gauge\n" + b"".join(line % place for place in range(60_000))
    assert len(page) < engine_metrics.MAX_BYTES
    began = time.process_time()
    assert engine_metrics.parse(page, METRICS).running is None
    assert time.process_time() - began < 2.0


def test_a_whole_page_costs_little() -> None:
    """The wanted figures of a recorded page of 82 KB take under 2 ms of CPU (0.23 ms where this was written)."""
    began = time.process_time()
    for _ in range(50):
        engine_metrics.parse(WHOLE, METRICS)
    assert (time.process_time() - began) / 50 < 0.002


def test_text_that_is_no_exposition_is_told() -> None:
    """A 200 with garbage is no page; a recorded page is one."""
    assert engine_metrics.is_page(WHOLE)
    assert not engine_metrics.is_page(b"<html>sglang:num_running_reqs 3</html>\n")


@pytest.mark.parametrize(
    ("line", "running"),
    [
        (b"sglang:num_running_reqs 3\n", 3),
        (b"sglang:num_running_reqs 3 1795970482000\n", 3),
        (b'sglang:num_running_reqs{model_name="a}b\\"c, d"} 3\n', 3),
        (b"sglang:num_running_reqs 3", None),
        (b"sglang:num_running_reqs_total 3\n", None),
        (b" sglang:num_running_reqs 3\n", None),
        (b'sglang:num_running_reqs{model_name="m" 3\n', None),
        (b"sglang:num_running_reqs NaN\n", None),
        (b"sglang:num_running_reqs +Inf\n", None),
        (b"sglang:num_running_reqs 0x10\n", None),
        (b"sglang:num_running_reqs{dp_rank=\"0\"} 3\nsglang:num_running_reqs{dp_rank=\"1\"} NaN\n", None),
        (b"sglang:num_running_reqs 1_0\n", None),
        (b"\nsglang:num_queue_reqs 1\nsglang:num_running_reqs 1\nx 2\nsglang:num_running_reqs{a=\"1\"} 2\n", 3),
    ],
)  # fmt: skip
def test_lines_of_a_page(line: bytes, running: float | None) -> None:
    """Labels may hold braces, quotes and commas; a name must be whole, a line ended, a number plain."""
    assert engine_metrics.parse(line, METRICS).running == running


def test_every_wanted_figure_has_a_field() -> None:
    """The engine's data and the value agree on names, so that no look can fail on one."""
    assert {wanted.field for wanted in METRICS.wanted} <= set(EngineCounters.__dataclass_fields__)


@pytest.mark.parametrize("answered", ["2026-11-29T16:41:22", "yesterday", "0001-01-01T00:00:00+23:59", 5, None])
def test_a_time_that_is_none_gives_no_age(answered: object) -> None:
    """Without a time stamp of the answer that names its zone, the age of the load is unknown."""
    body = json.dumps({"timestamp": answered, "loads": [{"timestamp": 1795970482.0}]}).encode()
    assert engine_loads.parse(body) == EngineLoad(ranks=1)


def test_sums_before_the_first_step_are_none_yet_and_known() -> None:
    """Null stands for no step so far; an engine without the field has no sums, which is something else."""
    rank: dict[str, object] = {"num_running_reqs": 0}
    with_null = engine_loads.parse(json.dumps({"loads": [{**rank, "decode_moments": None}]}).encode())
    without = engine_loads.parse(json.dumps({"loads": [rank]}).encode())
    assert with_null is not None
    assert without is not None
    assert (with_null.decoded, without.decoded) == (NO_STEPS, None)


def test_ranks_add_up_and_the_oldest_counts() -> None:
    """Two data-parallel ranks: requests and sums add up, the age is the older one's; what one does not say is unknown."""
    document = json.loads(LOAD)
    rank = document["loads"][0]
    document["loads"] = [rank, {**rank, "timestamp": rank["timestamp"] - 7, "num_used_tokens": None}]
    one, two = engine_loads.parse(LOAD), engine_loads.parse(json.dumps(document).encode())
    assert one is not None
    assert two is not None
    assert one.decoded is not None
    assert (two.running, two.max_running, two.ranks, two.used_tokens) == (8, 16, 2, None)
    assert two.decoded == one.decoded + one.decoded
    assert two.age_s == pytest.approx((one.age_s or 0.0) + 7)


@given(st.text(max_size=2000))
def test_no_line_makes_the_reader_raise(text: str) -> None:
    """Any text is a line; it adds at most one to what is counted."""
    found = engine_lines.fold(EngineLines(), [text], READING)
    assert found.decode_lines + found.tree_lines + len(found.fatal) <= 1


@pytest.mark.parametrize(
    "line",
    [
        "Decode batch, " + "#running-req: " * 2000,
        "Decode batch, accept len: " + "1." * 5000,
        "DDTREE metrics: bs=1 budget=" + "7" * 100_000,
        "budget=" * 20_000,
        "Error: " * 20_000,
        " " * 100_000,
    ],
    ids=range(6),
)
def test_hostile_lines_cost_little(line: str) -> None:
    """Lines made to be dear are cut, and cost a few milliseconds of CPU."""
    began = time.process_time()
    engine_lines.fold(EngineLines(), [line], READING)
    assert time.process_time() - began < 0.2


def test_a_tree_line_tells_its_figures() -> None:
    """The field's line is read whole, the budget by its profile's group."""
    found = engine_lines.fold(EngineLines(), [TREE], READING)
    assert found.last_tree == TreeLine(batch=1, tree_budget=7, nodes=8, accepted_drafts=2, commit=3, depth=5)
    assert (found.tree_lines, found.last_is_tree) == (1, True)


def test_another_builds_tree_line_is_read_by_its_groups() -> None:
    """A fork's own spelling is read by the groups of its profile's pattern."""
    reading = engine_lines.reader(GRAMMAR, r"tree decode: budget (?P<tree_budget>\d+), nodes (?P<nodes>[\d.]+)")
    found = engine_lines.fold(EngineLines(), ["tree decode: budget 16, nodes 15.2, commit 3.10"], reading)
    assert found.last_tree == TreeLine(tree_budget=16, nodes=15.2)


def test_a_pattern_that_is_none_falls_back() -> None:
    """A tree line that does not compile is as if none were given: the field's own line is looked for."""
    found = engine_lines.fold(EngineLines(), [TREE], engine_lines.reader(GRAMMAR, "(("))
    assert found.tree_lines == 1


def test_decode_lines_alone_end_a_tree() -> None:
    """A tree's line follows each decode line; two decode lines with none between mean that no tree decodes."""
    decode = "Decode batch, #running-req: 1, cuda graph: True, gen throughput (token/s): 1.0, #queue-req: 0"
    during = engine_lines.fold(EngineLines(), [decode, TREE, decode], READING)
    after = engine_lines.fold(during, [decode], READING)
    assert (during.last_is_tree, after.last_is_tree, after.since_tree) == (True, False, 2)


def test_fatal_texts_are_kept_by_id_once_and_bounded() -> None:
    """A known death is kept by its id and not by its words; the same one in a row once; at most a few."""
    oom = "[2026-11-29 14:02:11 TP0] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    found = engine_lines.fold(EngineLines(), [oom, oom, "all is well"], READING)
    assert len(found.fatal) == 1
    assert found.fatal[0] in {text.id for text in GRAMMAR.texts}
    other = "[2026-11-29 14:02:11] SIGQUIT received. signum=3, frame=None"
    many = engine_lines.fold(found, [oom, other] * 20, READING)
    assert len(many.fatal) == engine_lines.MAX_FATAL


def test_arguments_and_routine_lines_are_no_deaths() -> None:
    """Lines that print arguments, a prefill or a request are not searched, whatever they hold."""
    lines = [
        "[2026-11-29 14:02:11] server_args=ServerArgs(x='CUDA out of memory')",
        'INFO:     127.0.0.1:1 - "GET /v1/loads?include=core,spec HTTP/1.1" 200 OK',
        '[2026-11-29 14:02:11] INFO: 127.0.0.1:1 - "POST /CUDA out of memory HTTP/1.1" 404 Not Found',
        "[2026-11-29 14:02:11] Prefill batch, #new-seq: 1, CUDA out of memory",
    ]
    assert engine_lines.fold(EngineLines(), lines, READING).fatal == ()


@given(st.lists(st.sampled_from(["Decode batch, #running-req: 1", TREE, "nothing"]), max_size=30), st.integers(0, 30))
def test_lines_fold_alike_in_one_or_two_looks(lines: list[str], cut: int) -> None:
    """Where the looks fell between lines changes nothing."""
    at_once = engine_lines.fold(EngineLines(), lines, READING)
    assert engine_lines.fold(engine_lines.fold(EngineLines(), lines[:cut], READING), lines[cut:], READING) == at_once


def test_numbers_are_read_strictly() -> None:
    """What float() takes and no engine prints is no number."""
    assert [numbers.word(text) for text in ("1.5", "1e3", "", "-1", "nan", "inf", "1_0", "٣", "9" * 40)] == [
        1.5, 1000.0, None, None, None, None, None, None, None,
    ]  # fmt: skip
    assert [numbers.count(value) for value in (2, 2.0, 2.5, True, -1, float("nan"), 1e16, "2")] == [
        2, 2, None, None, None, None, None, None,
    ]  # fmt: skip
