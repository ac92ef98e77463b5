"""Reading the lines of a start: what counts, what is aftermath, and what never reaches a person."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specctl.engines._log_types import Phase
from specctl.engines._sglang_log import GRAMMAR
from specctl.rollout import loadlog
from specctl.rollout.loadlog import MAX_SHOWN, TAIL_LINES, LogScan


def scan(*lines: str) -> LogScan:
    """Read lines from nothing."""
    return loadlog.read(GRAMMAR, LogScan(), lines)


def test_arguments_and_prompts_are_neither_kept_nor_searched() -> None:
    """The server_args line prints keys and a logged request prints a user's words: no tail, no verdict comes of them."""
    found = scan(
        "[2026-11-29 16:38:54] server_args={'api_key': 'hunter2', 'x': 'CUDA out of memory'}",
        "[2026-11-29 16:38:54] Receive: obj=GenerateReqInput(text='why CUDA out of memory?')",
    )
    assert (found.hits, found.tail, found.signs) == ((), (), 2)


def test_carriage_returns_split_a_bar_that_came_as_one_line() -> None:
    """A progress bar reaches the journal as one long line: the last redrawing is the bar, and none is in the tail."""
    found = scan(
        "\rMulti-thread loading shards:  50% Completed | 1/2 [x]\rMulti-thread loading shards: 100% Completed | 2/2 [x]"
    )
    assert (str(found.bar), found.phase, found.tail) == ("2 of 2 shards", Phase.TARGET_WEIGHTS, ())


def test_the_second_load_of_the_same_rank_is_the_drafts() -> None:
    """Two ranks that begin once each load the target; the second begin of one rank is the draft."""
    first = scan("[2026-11-29 16:39:06 TP0] Load weight begin.", "[2026-11-29 16:39:06 TP1] Load weight begin.")
    assert first.phase is Phase.TARGET_WEIGHTS
    assert loadlog.read(GRAMMAR, first, ["[2026-11-29 16:39:06 TP1] Load weight begin."]).phase is Phase.DRAFT_WEIGHTS


def test_of_two_causes_the_more_telling_is_chosen() -> None:
    """NCCL errors of the other ranks do not hide the rank that ran out of memory, whichever is read first."""
    found = scan("ncclUnhandledCudaError: Call to CUDA function failed.", "torch.OutOfMemoryError: CUDA out of memory.")
    hit = loadlog.cause(GRAMMAR, found)
    assert hit is not None
    assert hit.text.id == "F012"


def test_causes_after_the_collapse_are_aftermath() -> None:
    """What other ranks say after SIGQUIT does not replace the error above it."""
    found = scan("KeyError: 'layers.61'", "SIGQUIT received. signum=None", "NCCL watchdog thread terminated")
    assert loadlog.cause(GRAMMAR, found) is None
    assert found.error == ("KeyError: 'layers.61'",)


def test_source_lines_of_a_traceback_are_no_messages() -> None:
    """A frame that quotes `raise RuntimeError("CUDA out of memory")` is code, not a word of the engine."""
    assert scan('    raise RuntimeError("CUDA out of memory")').hits == ()


def test_an_errors_message_keeps_its_further_lines() -> None:
    """A message that runs over several lines is kept, up to four, and ends at the next stamped line."""
    found = scan("ValueError: one", "two", "three", "four", "five", "[2026-11-29 16:39:06] six")
    assert found.error == ("ValueError: one", "two", "three", "four")


def test_a_note_is_no_sign_of_life() -> None:
    """A health check that fails once a second is no progress, an ordinary line is."""
    found = scan(
        "[2026-11-29 16:39:06] Health check failed. Server couldn't get a response from detokenizer for",
        "[2026-11-29 16:39:07] x",
    )
    assert (found.signs, [hit.text.id for hit in found.notes]) == (1, ["N002"])


def test_stray_errors_are_no_cause() -> None:
    """The EOFError of a pipe whose other end died does not stand for the death."""
    assert scan("RuntimeError: real", "", "EOFError").error == ("RuntimeError: real",)


def test_control_characters_never_reach_a_terminal() -> None:
    """Escape sequences and direction marks of an engine's line are blanks in what is kept."""
    kept = scan("\x1b]0;pwned\x07 \u202eabc\x9b31m").tail[0]
    assert kept == " ]0;pwned   abc 31m"


@given(st.lists(st.text(max_size=80), max_size=60))
def test_whatever_is_read_stays_bounded(lines: list[str]) -> None:
    """Any lines give a scan with a short tail of short lines, phases in order, and a bar within bounds."""
    found = scan(*lines)
    assert len(found.tail) <= TAIL_LINES
    assert all(len(line) <= MAX_SHOWN for line in found.tail)
    assert [phase.place for phase in found.entered] == sorted({phase.place for phase in found.entered})
    assert found.bar is None or 0.0 <= found.bar.ratio <= 1.0


@given(
    st.lists(
        st.sampled_from(["KeyError: 'x'", "\rA\rB", "CUDA out of memory", "SIGQUIT received. signum=", " x", "y"]),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_reading_in_two_parts_is_reading_at_once(lines: list[str], cut: int) -> None:
    """Where the watcher cuts the stream changes the verdict's cause in nothing, but for the further lines of a message."""
    whole = scan(*lines)
    parted = loadlog.read(GRAMMAR, scan(*lines[:cut]), lines[cut:])
    assert [hit.text.id for hit in parted.hits] == [hit.text.id for hit in whole.hits]
    assert (parted.entered, parted.signs, parted.tail, parted.closed) == (
        whole.entered,
        whole.signs,
        whole.tail,
        whole.closed,
    )
    assert parted.error[:1] == whole.error[:1]
