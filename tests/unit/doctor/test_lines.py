"""Logs are read into windows: recorded ones exactly, hostile ones without harm."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.control.sample.engine import TreeLine
from specctl.doctor import lines
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from tests.examples import HOSTILE
from tests.unit.doctor.worlds import READER

RECORDED = Path(__file__).parents[2] / "data" / "sglang-0.5.23" / "logs"
DECODE = (
    "[2026-11-29 18:03:{at:02d}{rank}] Decode batch, #running-req: {batch}, #token: 65, accept len: 2.00, "
    "accept rate: 0.14, cuda graph: True, gen throughput (token/s): 98.20, #queue-req: 0"
)
TREE = (
    "[2026-11-29 18:03:{at:02d}{rank}] DDTREE metrics: bs={batch} budget=7 avg_actual_nodes=8.00 "
    "avg_accepted_drafts=1.00 avg_commit_len=2.00 avg_accepted_depth=1.00"
)


class _Line(str):
    """A line whose end can be seen."""

    __slots__ = ("__weakref__",)


def recorded(name: str) -> list[str]:
    """Return the lines of a recorded log."""
    return (RECORDED / name / "server.log").read_text(encoding="utf-8").splitlines()


def test_a_recorded_log_is_read_whole() -> None:
    """Each decode line of the real server is a window with its figures; a CPU's graph is no graph that is missing."""
    log = lines.read(recorded("spec-dflash"), READER)
    assert (len(log.windows), log.engine.decode_lines, log.engine.tree_lines) == (15, 15, 0)
    first = log.windows[0]
    assert first.decode is not None
    assert (first.decode.accept_length, first.accept_rate, first.tokens_s, first.decode.graph) == (
        1.12,
        0.02,
        6.94,
        None,
    )
    assert first.at == "2026-11-29 18:03:27"
    assert [(one.id, one.is_note) for one in log.texts] == [("N006", True)]


def test_a_plain_server_has_no_lengths() -> None:
    """Decode lines of a server without speculation tell none, and that is None, not 0."""
    log = lines.read(recorded("kill9-detokenizer-serving"), READER)
    assert {one.decode.accept_length for one in log.windows if one.decode is not None} == {None}


def test_a_trees_line_goes_to_the_decode_line_of_its_rank() -> None:
    """Lines of data-parallel ranks come in any order, and each tree's line belongs to its own rank's decode line."""
    texts = [
        DECODE.format(at=1, rank=" DP0 TP0", batch=3),
        DECODE.format(at=1, rank=" DP1 TP0", batch=5),
        TREE.format(at=1, rank=" DP1 TP0", batch=5),
        TREE.format(at=1, rank=" DP0 TP0", batch=3),
    ]
    found = lines.read(texts, READER).windows
    assert [(one.decode.running, one.tree.batch) for one in found if one.decode and one.tree] == [(3, 3), (5, 5)]


def test_a_trees_line_alone_is_a_window() -> None:
    """The field had one line and nothing else."""
    (found,) = lines.read([TREE.format(at=1, rank="", batch=1)], READER).windows
    assert found.decode is None
    assert found.tree == TreeLine(batch=1, tree_budget=7, nodes=8.0, accepted_drafts=1.0, commit=2.0, depth=1.0)


def test_only_the_last_start_counts() -> None:
    """What an engine printed before its last start is of another server."""
    texts = [
        TREE.format(at=1, rank="", batch=1),
        "[2026-11-29 18:04:00] server_args=ServerArgs(...)",
        DECODE.format(at=2, rank="", batch=1),
    ]
    log = lines.read(texts, READER)
    assert [(one.tree, one.decode is not None) for one in log.windows] == [(None, True)]
    assert log.whole
    assert not lines.read(texts[:1], READER).whole


def test_a_prompt_is_no_start() -> None:
    """A prompt that holds the word does not make the log forget."""
    texts = [DECODE.format(at=1, rank="", batch=1), "Receive: obj=GenerateReqInput(text='what is server_args= for?')"]
    assert len(lines.read(texts, READER).windows) == 1


def test_what_came_since_a_live_change_is_known() -> None:
    """A request that changes the running engine parts the log's windows; without one nothing is parted, and a prompt is none."""
    line = DECODE.format(at=1, rank="", batch=1)
    before, after = [line] * 3, [line] * 2
    change = '[2026-11-30 08:51:33] INFO:     127.0.0.1:40310 - "POST /set_internal_state HTTP/1.1" 200 OK'
    assert lines.read([*before, change, *after], READER).since_change == 2
    assert lines.read([*before, change, *after, change], READER).since_change == 0
    assert lines.read([*before, "POST /set_internal_state"], READER).since_change is None
    assert not lines.is_change("x" * 5000 + change)


def test_newest_counts_back_from_the_last_line() -> None:
    """Of a log only the last so many seconds are kept, by its own time stamps; lines without one stay with what they follow."""
    texts = [DECODE.format(at=at, rank="", batch=1) for at in (1, 20, 30)]
    assert lines.newest([*texts, "no stamp"], 15.0) == [*texts[1:], "no stamp"]
    assert lines.newest(["no stamp"], 15.0) == ["no stamp"]


def test_newest_of_a_stream_holds_no_more_than_it_returns() -> None:
    """A day's log through a pipe is not kept in memory for the sake of its last minute."""
    seen: list[weakref.ref[_Line]] = []
    most = 0

    def stream() -> Iterator[str]:
        nonlocal most
        for second in range(600):
            line = _Line(f"[2026-11-30 10:{second // 60:02}:{second % 60:02}] Decode batch")
            seen.append(weakref.ref(line))
            yield line
            del line
            most = max(most, sum(ref() is not None for ref in seen))

    found = lines.newest(stream(), 5.0)
    assert [line[18:20] for line in found] == ["54", "55", "56", "57", "58", "59"]
    assert most <= 10


def test_the_newest_windows_are_kept() -> None:
    """Of more windows than are kept the oldest go."""
    count = 3 * lines.MOST_WINDOWS
    found = lines.read((DECODE.format(at=1, rank="", batch=number) for number in range(count)), READER).windows
    assert len(found) == lines.MOST_WINDOWS
    assert found[-1].decode is not None
    assert found[-1].decode.running == count - 1


@pytest.mark.parametrize(
    "texts",
    [
        ["Decode batch" + "," * 10_000_000],
        ["\x00\xff" * 1_000_000] * 5,
        ["DDTREE metrics: bs=" + "9" * 5_000_000],
        ["[2026-11-29 18:03:01] " * 200_000],
        [
            "DDTREE metrics: avg_commit_len=nan avg_accepted_depth=inf avg_accepted_drafts=1e999 budget=-3 bs=99999999999999999999"
        ],
        ["Decode batch, #running-req: , accept len: 1..2, accept rate: ., gen throughput (token/s): 1.2.3"],
        ["Decode batch, accept len: "] * 50_000,
    ],
    ids=["ten megabytes", "binary", "one number", "stamps", "no numbers", "half numbers", "half lines"],
)
def test_hostile_logs_do_no_harm(texts: list[str]) -> None:
    """Whatever stands in a log, it is read in seconds, no figure is made of nonsense, and nothing is found in it."""
    began_s = time.monotonic()
    log = lines.read(texts, READER)
    assert judge(Evidence(log=log)).findings == ()
    assert time.monotonic() - began_s < 10.0


@settings(max_examples=HOSTILE, deadline=None)
@given(st.lists(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")), max_size=8))
def test_any_text_is_read(texts: list[str]) -> None:
    """No text makes reading or judging fail."""
    bent = [
        prefix + text
        for text in texts
        for prefix in ("", "Decode batch", "DDTREE metrics: bs=", "[2026-11-29 18:03:01 TP0] ")
    ]
    judge(Evidence(log=lines.read(bent, READER)))
