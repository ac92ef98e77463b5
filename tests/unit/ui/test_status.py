"""The status table as people see it, on any width: what is unknown is —, what is old says so, no meaning goes with a column."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control.sight import GpuSight, Sight, Source, Told
from specctl.ui import status
from specctl.ui.status_watch import Changes, whole
from specctl.ui.theme import console
from tests import sights

GOLDEN = Path(__file__).parents[2] / "golden"
COUNTS = st.none() | st.builds(
    Told,
    value=st.integers(min_value=0, max_value=999),
    age_s=st.none() | st.floats(0, 500),
    source=st.just(Source.ENGINE),
)
AMOUNTS = st.none() | st.builds(
    Told, value=st.floats(0, 9999), age_s=st.none() | st.floats(0, 500), source=st.just(Source.ENGINE)
)
SIGHTS = st.builds(
    replace,
    st.sampled_from(sights.FLEET),
    running=COUNTS,
    waiting=COUNTS,
    tokens_per_s=AMOUNTS,
    accept_length=AMOUNTS,
    kv_ratio=st.none() | st.builds(Told, value=st.floats(0, 1), age_s=st.floats(0, 500), source=st.just(Source.AGENT)),
    gpus=st.none() | st.just(sights.gpus(2, None)) | st.just(sights.gpus(8, 212.0, age_s=99.0)),
)


def shown(found: Sequence[Sight], width: int, *, colour: bool = False) -> str:
    """Return what stands on a screen of that width."""
    out = console(file=io.StringIO(), width=width, terminal=colour)
    for each in whole(found, width):
        out.print(each)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [80, 110, 140, 200])
def test_golden(width: int) -> None:
    """A fleet in the states that an operator meets looks so."""
    text = "".join(f"{line.rstrip()}\n" for line in shown(sights.FLEET, width).splitlines())
    assert text == (GOLDEN / f"status-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", range(60, 251, 5))
def test_no_line_is_cut_by_the_screen(width: int) -> None:
    """From 60 to 250 columns each line fits, every host and state is whole, and what stands out is told in full."""
    lines = shown(sights.FLEET, width).splitlines()
    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= width
    for sight in sights.FLEET:
        assert any(line.startswith(f"{sight.host} ") and sight.state in line for line in lines)
    for words in ("ready in about 3:06", "benchmark, ops@desk", "connection timed out", "41 s old"):
        assert words in text


@settings(max_examples=150)
@given(SIGHTS)
def test_unknown_never_reads_as_a_number(sight: Sight) -> None:
    """A figure that nobody knows is —, in every column, and one that is known is that figure."""
    for told, cell in (
        (sight.running, status.figure(sight.running)),
        (sight.waiting, status.figure(sight.waiting)),
        (sight.tokens_per_s, status.figure(sight.tokens_per_s, 1)),
        (sight.accept_length, status.figure(sight.accept_length, 2)),
        (sight.kv_ratio, status.kv_text(sight)),
    ):
        assert (cell.plain == "—") == (told is None)
    power = [gpu.power_w for gpu in sight.gpus or () if gpu.power_w is not None]
    assert (status.power_text(sight).plain.rstrip("!") == "—") == (not power)


@settings(max_examples=150)
@given(SIGHTS)
def test_stale_is_never_shown_as_fresh(sight: Sight) -> None:
    """A figure that is old, or of unknown age, is dim, and the age column says so in a word."""
    for told, cell in (
        (sight.running, status.figure(sight.running)),
        (sight.tokens_per_s, status.figure(sight.tokens_per_s)),
    ):
        if told is not None:
            assert (cell.style == "quiet") == told.stale
    first = next((told for told in (sight.running, sight.waiting, sight.kv_ratio) if told is not None), None)
    assert ("old" in status.age_text(sight).plain) == (first is not None and first.stale)
    stale = [gpu for gpu in sight.gpus or () if gpu.stale and gpu.power_w is not None]
    assert not stale or status.power_text(sight).style in ("quiet", "warn")


@settings(max_examples=50)
@given(st.lists(SIGHTS, min_size=1, max_size=4), st.integers(min_value=60, max_value=250))
def test_any_fleet_fits_any_screen(fleet: list[Sight], width: int) -> None:
    """Whatever is known, no line is longer than the screen, and the age is there where a count is old."""
    text = shown(fleet, width)
    assert max(map(len, text.splitlines())) <= width
    assert "AGE" in text or not any(told.stale for sight in fleet for told in (sight.running, sight.waiting) if told)


def test_some_gpus_that_do_not_tell() -> None:
    """Where some GPUs tell their power and some do not, how many do is said."""
    some = (*sights.gpus(2, 200.0), GpuSight(index=2, age_s=0.1, source=Source.AGENT))
    assert status.power_text(replace(sights.READY, gpus=some)).plain == "2/3×200"


def test_colour_only_repeats_a_word() -> None:
    """With the escape sequences taken out, a coloured table is the plain one."""
    plain, coloured = shown(sights.FLEET, 140), shown(sights.FLEET, 140, colour=True)
    assert "\x1b[" in coloured
    assert _without_colour(coloured) == plain


def test_hosts_that_share_a_note() -> None:
    """A note of many hosts is one line."""
    fleet = [replace(sights.READY, host=f"gpu{n}", desired=sights.CHAIN) for n in range(5)]
    (line,) = [line for line in shown(fleet, 140).splitlines() if "the inventory says" in line]
    assert line.startswith("gpu0, gpu1 and 3 more  ")


def test_words_of_strangers_steer_no_terminal() -> None:
    """Control characters of an engine's or agent's words are spelled out."""
    evil = replace(sights.GONE, reason="\x1b[2Jgone\r\nnow", hint="\x07")
    text = shown([evil], 200)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_sum_tells_of_how_many() -> None:
    """The last line adds up what is known and fresh, and says of how many servers that is."""
    assert status.fleet_line(sights.FLEET).plain == (
        "5 servers · 2 ready · 1 loading · 1 frozen · 1 unreachable · 24 running, 4 waiting on the 2 that tell · 1522.2 tok/s"
    )
    assert status.fleet_line([sights.GONE, sights.BARE]).plain == "2 servers · 1 unreachable · 1 unknown"


def _without_colour(text: str) -> str:
    kept, _, rest = text.partition("\x1b[")
    while rest:
        _, _, rest = rest.partition("m")
        more, _, rest = rest.partition("\x1b[")
        kept += more
    return kept


def lines_of(changes: Changes, found: Sequence[Sight], at: str) -> str:
    """Return what a watch without a terminal prints at a moment."""
    out = console(file=io.StringIO(), width=140, terminal=False)
    for each in changes.lines(found, 140, at):
        out.print(each)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_a_watch_without_a_terminal_prints_what_changed() -> None:
    """First the whole table; then silence while only ages grow; then the row that changed, with the time of day."""
    changes = Changes()
    assert lines_of(changes, sights.FLEET, "10:00:00") == shown(sights.FLEET, 140)
    assert lines_of(changes, [sight.later(1.0) for sight in sights.FLEET], "10:00:02") == ""
    busier = [replace(sights.READY, running=sights.whole(5)), *sights.FLEET[1:]]
    printed = lines_of(changes, busier, "10:00:04").splitlines()
    assert (printed[0], printed[1].split()[0]) == ("10:00:04", "ct200")
    assert "HOST" not in printed[1]
    assert len(printed) == 2


def test_rows_that_changed_stand_under_their_headings() -> None:
    """A row stands as it stood in the whole table; where its columns have become others, they are named anew."""
    changes = Changes()
    table = lines_of(changes, sights.FLEET, "10:00:00").splitlines()
    slower = replace(sights.READY, running=sights.whole(2))
    (row,) = lines_of(changes, [slower, *sights.FLEET[1:]], "10:00:02").splitlines()[1:]
    assert row == table[1].replace(" 3 ", " 2 ", 1)
    quiet = [replace(sight, running=sights.whole(1), accept_length=None) for sight in sights.FLEET]
    heads = lines_of(changes, quiet, "10:00:04").splitlines()[1].split()
    assert heads[0] == "HOST"
    assert "ACCEPT" not in heads


def test_a_figure_that_grows_old_is_news() -> None:
    """A figure that was fresh and is stale now is told."""
    changes = Changes()
    changes.changed([sights.READY])
    assert changes.changed([sights.READY.later(60.0)]) == (sights.READY.later(60.0),)


def test_a_unit_that_goes_on_is_no_failure() -> None:
    """A word of the service manager on the way is shown as a phase, one of an end as bad."""
    assert [status.state_text(replace(sights.READY, state=word)).style for word in ("activating", "failed (1)")] == [
        "phase",
        "bad",
    ]
