"""A load as people see it: nothing wider than the terminal, host, phase and time never lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from specctl.rollout.gate_types import GateState, PastLoad, Phase
from specctl.rollout.story import clock
from specctl.ui import gate
from tests.examples import examples
from tests.unit.rollout.replay import OOM, spec_for
from tests.unit.rollout.test_gate import GONE, look, run

BEGIN = "[2026-11-29 16:39:06 TP0] Load weight begin. avail mem=90 GB"
CAPTURE = "[2026-11-29 16:46:06 TP0] Capture target verify CUDA graph begin. backend=full"
BAR = "Capturing batches (bs=24 avail_mem=4.08 GB):  50%|█████     | 24/48 [00:10<"


def weights(past_s: float = 478.0) -> GateState:
    """Return the load of the ux sketch: 412 of 590 GB after 4:52."""
    spec = spec_for(target_bytes=590 * 10**9, past_loads=(PastLoad(total_s=past_s),) if past_s else ())
    return run(spec, look(0.0, gpu_bytes=0), look(30.0, BEGIN, gpu_bytes=0), look(292.0, gpu_bytes=412 * 10**9))


def graphs() -> GateState:
    """Return a load that captures graphs."""
    return run(spec_for(), look(0.0), look(440.0, BEGIN, CAPTURE, BAR))


def failed() -> GateState:
    """Return a load that failed."""
    return run(spec_for(), look(0.0), look(251.0, BEGIN, OOM), look(252.0, unit=GONE))


def test_a_wide_line_is_the_sketchs() -> None:
    """Host, phase, bar, detail, elapsed and the expected end stand in one line."""
    line = gate.load_line("ct200", weights(), width=88).plain
    assert line == "  ct200  weights    ███████████████░░░░░░  412 of 590 GB           4:52   ready in ~3:06"


def test_eighty_columns_keep_every_column() -> None:
    """At 80 columns the bar gets shorter, nothing else."""
    line = gate.load_line("ct200", weights(), width=80).plain
    assert line == "  ct200  weights    ██████████████░░░░░░  412 of 590 GB    4:52   ready in ~3:06"


def test_a_narrow_terminal_loses_the_bar_before_the_meaning() -> None:
    """Where no bar fits a percentage stands for it."""
    line = gate.load_line("ct200", weights(), width=50).plain
    assert line == "  ct200  weights    70 % 412 of 590 GB        4:52"


def test_without_a_past_load_no_end_is_promised() -> None:
    """An unknown ETA is not shown."""
    assert "ready in" not in gate.load_line("ct200", weights(past_s=0.0), width=100).plain


def test_a_silent_phase_shows_its_silence_and_the_time() -> None:
    """A phase without any figure still shows that time passes, and for how long nothing was heard."""
    state = run(spec_for(), look(0.0), look(30.0, "[2026-11-29 16:39:06] Init parallel begin."), look(72.0))
    assert gate.load_line("ct200", state, width=60).plain.split() == [
        "ct200",
        "dist",
        "init",
        "quiet",
        "for",
        "0:42",
        "1:12",
    ]


def test_a_slow_load_says_what_it_took_before() -> None:
    """A load that is over its usual length says so beside its progress."""
    assert "412 of 590 GB, took 3:20 before" in gate.load_line("ct200", weights(past_s=200.0), width=100).plain


def test_plain_ascii_terminals_get_a_plain_bar() -> None:
    """Where the encoding has no blocks the bar is drawn with signs that it has."""
    assert "###########----------" in gate.load_line("ct200", graphs(), width=100, ascii_only=True).plain


def test_a_final_verdict_is_its_headline() -> None:
    """A load that is over shows the verdict's line in place of a bar."""
    line = gate.load_line("ct200", failed(), width=80).plain
    assert line == "  ct200  failed     weights, 4:12   F012 CUDA out of memory on GPU 3"


def test_a_continuation_does_not_repeat_the_host() -> None:
    """because, log and remedy stand under the host's line, in the same column."""
    first = gate.final_line("ct200", "failed", "weights").plain
    then = gate.final_line("ct200", "because", "pid 4121").plain
    assert (first, then) == ("  ct200  failed     weights", "         because    pid 4121")


def test_engine_text_cannot_steer_the_terminal() -> None:
    """Escape sequences in a text that is shown are blanks, and brackets are no markup."""
    assert gate.final_line("h", "log", "\x1b[2J[bold]x\x1b]0;t\x07").plain.endswith(" [2J[bold]x ]0;t")


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (weights(), "  ct200  weights    4:52, 412 of 590 GB, 70 %, ready in ~3:06"),
        (graphs(), "  ct200  graphs     7:20, target verify, bs 24 of 48, 50 %"),
        (failed(), "  ct200  failed     weights, 4:12   F012 CUDA out of memory on GPU 3"),
        (run(spec_for(), look(3.0)), "  ct200  start      0:03"),
    ],
)
def test_plain_lines_say_the_same_in_words(state: GateState, line: str) -> None:
    """A pipe gets the same values as words."""
    assert gate.plain_line("ct200", state) == line


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(24, 200),
    st.text(min_size=1, max_size=12),
    st.sampled_from([weights(), graphs(), failed(), weights(200.0)]),
)
def test_no_line_is_wider_than_its_terminal(width: int, host: str, state: GateState) -> None:
    """Whatever the width and the host's name, the line fits, and a load's line keeps phase and time where they can fit at all."""
    line = gate.load_line(host, state, width=width).plain
    assert cell_len(line) <= width
    if state.phase in {Phase.TARGET_WEIGHTS, Phase.GRAPHS} and not state.is_final and width >= 24 + cell_len(host):
        assert state.phase.label in line
        assert line.rstrip().split()[-1].strip("~")
        assert clock(state.elapsed_s) in line
