"""Every format of a trace, and what is wrong with one, by its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control.replay import formats
from specctl.control.replay.arrivals import Windows
from specctl.control.replay.formats import MisreadError
from specctl.control.replay.load import Requests, Series
from tests.examples import HOSTILE

DATA = Path(__file__).parents[3] / "data" / "traces"
AZURE, MOONCAKE, RATES, LEVELS = (
    "TIMESTAMP,ContextTokens,GeneratedTokens", "timestamp_s,input_tokens,output_tokens", "window_start_s,rate_rps",
    "time_s,concurrency",
)  # fmt: skip


def read(name: str) -> formats.Trace:
    """Read a recorded trace."""
    return formats.parse((DATA / name).read_text(encoding="utf-8"))


def test_azures_traces_are_read() -> None:
    """Dates become seconds since the first request, to the ten-millionth that they are written with."""
    found = read("azure_conv.csv")
    assert isinstance(found, Requests)
    assert (len(found), found.at_s[0], found.inputs[:3], found.outputs[:3]) == (24, 0.0, (374, 396, 879), (44, 109, 55))
    assert found.at_s[1] == pytest.approx(4.314579, abs=1e-5)
    assert found.span_s == found.at_s[-1]


def test_mooncakes_traces_are_read() -> None:
    """Seconds stay what they are, and requests that come at once stay in their order."""
    found = read("mooncake.csv")
    assert isinstance(found, Requests)
    assert (len(found), found.at_s[:2], found.inputs[:3], found.outputs[:3]) == (
        24,
        [0.0, 0.0],
        (6758, 7322, 7236),
        (500, 490, 794),
    )


def test_rates_are_read() -> None:
    """Windows have their rates, and the last one is as long as the one before it."""
    found = read("servegen_rate.csv")
    assert isinstance(found, Windows)
    assert (found.starts_s[:2], found.rates[:2], found.last_s, found.span_s) == (
        [0.0, 600.0],
        [14.8633, 18.4033],
        600.0,
        7200.0,
    )


def test_a_concurrency_holds_until_the_next() -> None:
    """A series is laid on seconds: a level that stands for three of them is there three times."""
    assert read("concurrency.csv") == Series(step_s=1.0, levels=[0, 2, 2, 2, 2, 7, 1])


def test_a_recording_is_read() -> None:
    """Time begins with the first line; a level that was not known is taken to be the one before it."""
    assert read("recording.jsonl") == Series(step_s=1.0, levels=[3, 3, 3, 3, 0])


def test_order_and_case_and_blanks_do_not_matter() -> None:
    """Requests are put in order, a header may be spelled otherwise, and blank lines are passed over."""
    found = formats.parse("Timestamp_S, Input_Tokens ,output_tokens\r\n5,1,2\r\n\r\n3,4,0\r\n")
    assert found == Requests(at_s=[0.0, 2.0], inputs=(4, 1), outputs=(1, 2), span_s=2.0)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the file is empty"),
        ("a,b\n1,2\n", 1, "no known format begins so"),
        ("1,2,3\n", 1, "no known format begins so"),
        (f"{AZURE}\n", 2, "there is no request"),
        (f"{AZURE}\n2023-11-16 18:17:03.9,1\n", 2, "2 columns where the header has 3"),
        (f"{AZURE}\nyesterday,1,1\n", 2, "not a date and time: 'yesterday'"),
        (f"{MOONCAKE}\n0,1,1\n\n1,x,1\n", 4, "not tokens of a prompt: 'x'"),
        (f"{MOONCAKE}\n0,1,1.5\n", 2, "generated tokens: a whole number from 0"),
        (f"{MOONCAKE}\n0,-1,1\n", 2, "tokens of a prompt: a whole number from 0"),
        (f"{MOONCAKE}\n0,1,99999999999\n", 2, "generated tokens: a whole number from 0"),
        (f"{MOONCAKE}\nnan,1,1\n", 2, "not a time in seconds: nan"),
        (f"{MOONCAKE}\n0,inf,1\n", 2, "not tokens of a prompt: inf"),
        (f"{RATES}\n", 2, "there is no window"),
        (f"{RATES}\n0,1\n0,2\n", 3, "0 is not after the window before it"),
        (f"{RATES}\n0,-1\n", 2, "a rate is not below zero: -1"),
        (f"{LEVELS}\n", 2, "there is no concurrency"),
        (f"{LEVELS}\n1,1\n1,2\n", 3, "1 s is not after the row before it"),
        (f"{LEVELS}\n0,-1\n", 2, "a concurrency is 0 to"),
        (f"{LEVELS}\n0,1\n900000000,1\n", 3, "a series lasts at most"),
        ('{"time_s": 0}\n', 1, "a recording's line is an object with time_s and concurrency"),
        ('{"time_s": 0, "concurrency": 1}\n[]\n', 2, "a recording's line is an object"),
        ('{"time_s": 0, "concurrency": 1}\n{"time_s":\n', 2, "not JSON"),
        ('{"time_s": 0, "concurrency": "many"}\n', 1, "not a concurrency: 'many'"),
        ('{"time_s": null, "concurrency": 1}\n', 1, "not a time in seconds: 'None'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, words: str) -> None:
    """Each fault names its line, counted from one with the header, and what was wanted."""
    with pytest.raises(MisreadError) as caught:
        formats.parse(text)
    assert (caught.value.line, caught.value.message[: len(words)]) == (line, words)


def test_the_only_window_has_a_length() -> None:
    """A trace of one window takes the length that published ones have."""
    assert formats.parse(f"{RATES}\n0,2\n") == Windows(starts_s=[0.0], rates=[2.0], last_s=600.0)


def test_a_recording_is_what_json_writes() -> None:
    """Numbers may be whole or not, and other keys are passed over."""
    lines = [json.dumps({"time_s": second / 2, "concurrency": second, "mode": "none"}) for second in range(5)]
    assert formats.parse("\n".join(lines)) == Series(step_s=1.0, levels=[0, 2, 4])


CELLS = st.sampled_from(["0", "1", "-1", "1e3", "x", "", '"', "nan", "2023-11-16 18:17:03.97", "9" * 30, "\0", "é"])


@settings(max_examples=HOSTILE)
@given(
    st.one_of(
        st.text(max_size=200),
        st.builds(
            lambda head, rows: "\n".join([head, *(",".join(row) for row in rows)]),
            st.sampled_from([AZURE, MOONCAKE, RATES, LEVELS]),
            st.lists(st.lists(CELLS, max_size=4), max_size=5),
        ),
        st.lists(st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5), max_size=5).map(
            lambda values: "\n".join(json.dumps({"time_s": value, "concurrency": value}) for value in values)
        ),
    )
)
def test_no_text_does_more_than_be_refused(text: str) -> None:
    """Whatever a file holds, it is a trace or a fault with a line."""
    line, span_s = 1, 0.0
    try:
        span_s = formats.parse(text).span_s
    except MisreadError as error:
        line = error.line
    assert line >= 1
    assert span_s >= 0


@given(st.lists(st.integers(0, 500), min_size=1, max_size=50), st.integers(0, 10**9))
def test_a_table_by_the_second_is_read_like_any_other(levels: list[int], first: int) -> None:
    """The quick way for series without gaps gives what the way for any series gives."""
    rows = [f"{first + second},{level}" for second, level in enumerate(levels)]
    quick = formats.parse("\n".join([LEVELS, *rows]))
    assert quick == formats.parse("\n".join([LEVELS, "", *rows])) == Series(step_s=1.0, levels=levels)


@pytest.mark.parametrize("rows", [["0,1,1", "2"], ["0,1", "1"], ["0", "1,1,2"]])
def test_a_table_whose_rows_do_not_fit_is_not_taken_for_one_that_does(rows: list[str]) -> None:
    """As many cells as two columns would have, in rows of other widths: the row is told."""
    with pytest.raises(MisreadError, match="columns where the header has 2"):
        formats.parse("\n".join([LEVELS, *rows]))
