"""What a person sees of a bench: plans, tables that fit, comparisons."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import RenderableType

from specctl.measure.bench_compare import compare
from specctl.ui import bench as views
from specctl.ui import bench_compare, bench_plan
from specctl.ui.theme import console
from tests.unit.measure.benches import SETTING, SUBJECT, bench, level, one_run


def shown(what: RenderableType, width: int) -> list[str]:
    """Return the lines that a terminal of that width shows."""
    out = console(file=io.StringIO(), width=width)
    out.print(what)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [45, 60, 80, 130])
def test_table_fits_and_keeps_its_levels(width: int) -> None:
    """On 45 columns as on 130 every level has its row, no figure is cut, and wide ones show the GPUs' power too."""
    busy = level("32", [12345.6, 12399.9, 12301.1])
    lines = shown(views.view(bench(levels=(level("1", [100.0, 102.0, 101.0]), busy)), width=width), width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line.replace("12,301.1…12,399.9", "").replace("100.0…102.0", "") for line in lines)
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("1 ", "32 "))}
    assert (rows["1"][1], "100.0…102.0" in rows["1"]) == ("101.0", width >= 60)
    assert rows["32"][1] == "12,345.6"
    assert any("GPU W" in line for line in lines) == (width == 130)


def test_unknown_is_a_dash_and_never_zero() -> None:
    """Without speculation there is no accept length; without GPUs no power."""
    plain = replace(one_run(100.0), accept_length=None, verify_steps_s=None, gpus=None)
    lines = shown(views.table([level("1", [1.0], runs=(plain, plain))], width=130), 130)
    assert lines[1].split()[8:10] == ["—", "—"]
    assert lines[1].split()[-2:] == ["—", "—"]


def test_doubts_and_the_reason_of_an_end_stand_under_the_table() -> None:
    """What makes figures doubtful is said with its level, and so is why a bench is not whole."""
    made = bench(levels=(level("8", [9.0], notes=("the sender took 0.90 of a core",)),), stopped="interrupted")
    text = "\n".join(shown(views.view(made, width=80), 80))
    assert "doubt  8: the sender took 0.90 of a core" in text
    assert "doubt  not whole: interrupted" in text


def test_plan_says_what_will_be_sent_and_for_how_long() -> None:
    """A person reads levels, requests, tokens, minutes, and who else is there, before saying yes."""
    lines = bench_plan.lines(
        SUBJECT,
        SETTING,
        levels=["1", "8"],
        requests=1200,
        tokens=600_000,
        seconds=(130.0, 400.0),
        running=3,
        warnings=["hot"],
    )
    text = "\n".join(line.plain for line in lines)
    assert "gpu1 · chat · sglang-0.5.23 · dflash:block_size=8, claimed · 8× H200 · release 3" in text
    assert "levels   1 8" in text
    assert "about 1,200 requests and 600,000 tokens; about 2.2 to 6.7 min" in text
    assert "3 other requests are there now: they slow the figures, and the bench slows them" in text
    assert "warning  hot" in text


@pytest.mark.parametrize(("proven", "word"), [(True, "proven"), (False, "claimed"), (None, "claimed")])
def test_title_tells_a_proof_from_a_claim(*, proven: bool | None, word: str) -> None:
    """What a deploy proved is called proven; what the engine only says is claimed, also where no record tells."""
    assert f"dflash:block_size=8, {word} · 8× H200" in views.title(replace(SUBJECT, proven=proven)).plain


def test_plan_of_a_loop_that_lasts_seconds_says_at_least() -> None:
    """How much such a loop sends depends on the engine: the count is a least one."""
    lines = bench_plan.lines(
        SUBJECT,
        replace(SETTING, seconds=60.0),
        levels=["1"],
        requests=4,
        tokens=99,
        seconds=None,
        running=None,
        warnings=[],
    )
    text = "\n".join(line.plain for line in lines)
    assert "at least 4 requests and 99 tokens" in text
    assert "— (the engine does not say what is running)" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "how long it takes shows after a first request"),
        ((0.1, 0.2), "about 1 s"),
        ((10.0, 40.0), "about 10 to 40 s"),
    ],
)
def test_duration_is_in_a_unit_that_fits(seconds: tuple[float, float] | None, words: str) -> None:
    """Seconds, minutes, or not known yet."""
    assert bench_plan.duration(seconds) == words


def test_progress_fits_behind_a_hosts_name_on_80_columns() -> None:
    """The line of a long bench with many levels leaves room for the host and the step."""
    line = bench_plan.progress(
        level="1024",
        number=10,
        levels=12,
        run=10,
        runs=12,
        share=0.834,
        rest="1024 in flight  1,234,567 tok",
        drawn=True,
    )
    assert line.startswith("████████░░  83 %  1024 (10/12) run 10/12  ")
    assert len(line) <= 80


def test_comparison_fits_80_columns() -> None:
    """Level, figure, both values, difference, interval, verdict: on 80 columns nothing is cut."""
    found = compare(bench(), bench(speeds=(120.0, 122.0, 121.0), subject=replace(SUBJECT, mode="none")))
    lines = shown(bench_compare.view(found, every=True), 80)
    rows = [line for line in lines if "tokens/s" in line and "each" not in line]
    assert rows[0].split()[:4] == ["1", "tokens/s", "101.0", "121.0"]
    assert rows[0].endswith("better")
    assert any(line.startswith("differs  mode: dflash:block_size=8 in A, none in B") for line in lines)
    assert not any("…" in line.split("…")[0] and line.endswith("…") for line in lines)
    assert max(map(len, lines)) <= 80


def test_list_has_a_row_a_bench() -> None:
    """Each bench with its host, mode, levels and best throughput; one that is not whole says so."""
    lines = shown(views.listed([bench(), bench(stopped="interrupted")], width=130), 130)
    assert "bench-20261130-020000-abcd" in lines[1]
    assert "404.0" in lines[1]
    assert "1,8 (not whole)" in lines[2]


def test_narrow_screens_cut_words_and_neither_ids_nor_figures() -> None:
    """On 60 columns an id can still be typed again, and every figure of a comparison is whole."""
    made = bench(levels=(level("16", [12_345.6, 12_399.9, 12_301.1]),))
    assert shown(views.listed([made], width=60), 60)[1].split() == [made.id, made.subject.host, "12,345.6"]
    assert shown(views.listed([made], width=80), 80)[1].split()[-1] == "12,345.6"
    lines = shown(bench_compare.view(compare(made, made), every=False), 60)
    (row,) = [line.split() for line in lines if "12,345.6" in line]
    assert row[2:7] == ["12,345.6", "12,345.6", "+0.0", "%", "-0.9"]
