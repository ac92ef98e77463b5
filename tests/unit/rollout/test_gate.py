"""The rules of the health gate, one by one, on observations made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.rollout import gate
from specctl.rollout.gate_types import (
    Dead,
    Failed,
    GateSpec,
    GateState,
    How,
    Loading,
    PastLoad,
    Phase,
    Ready,
    Slow,
    Stalled,
    TimedOut,
)
from specctl.rollout.observation import Observation, Port, UnitState
from tests.unit.rollout.replay import INVOCATION, OOM, RAISED, SIGQUIT, spec_for

RUNNING = UnitState(active="active", sub="running", invocation=INVOCATION, restarts=0, main_pid=41)
GONE = UnitState(active="failed", sub="failed", invocation=INVOCATION, restarts=0, exit_status=137)


def look(at_s: float, *lines: str, unit: UnitState = RUNNING, **figures: object) -> Observation:
    """Return an observation."""
    return Observation(at_s=at_s, unit=unit, lines=lines, **figures)  # type: ignore[arg-type]  # fields by keyword


def run(spec: GateSpec, *seen: Observation) -> GateState:
    """Fold observations and return the last state."""
    state = gate.begin(spec)
    for each in seen:
        state = gate.advance(spec, state, each)
    return state


def test_a_refused_port_says_nothing() -> None:
    """While the process lives a refused port is loading, however long."""
    state = run(spec_for(), *(look(float(t), port=Port.REFUSED) for t in range(0, 500, 5)))
    assert state.verdict == Loading()


def test_ready_needs_our_own_port_and_200() -> None:
    """/ready's 200 counts from a port that is known to be our own."""
    assert run(spec_for(), look(1.0, port=Port.OWN, ready=200)).verdict == Ready(took_s=1.0)
    assert run(spec_for(), look(1.0, port=None, ready=200)).verdict == Loading()
    assert run(spec_for(), look(1.0, port=Port.OWN, ready=503)).verdict == Loading()


def test_a_changed_invocation_is_death() -> None:
    """Another InvocationID is another start: the first is dead, never "loading again", even if the second is ready."""
    again = replace(RUNNING, invocation="c3d4")
    state = run(spec_for(), look(1.0), look(2.0, unit=again, port=Port.OWN, ready=200))
    assert state.verdict == Dead(how=How.INVOCATION)


def test_a_moved_restart_counter_is_death() -> None:
    """A restart counter that moved says the same where the service manager has no invocation."""
    state = run(spec_for(invocation=None), look(1.0), look(2.0, unit=replace(RUNNING, invocation=None, restarts=1)))
    assert state.verdict == Dead(how=How.RESTARTS)


def test_what_was_not_pinned_is_pinned_by_the_first_look() -> None:
    """A spec without an invocation takes the first one seen."""
    spec = spec_for(invocation=None, restarts=None)
    assert run(spec, look(1.0), look(2.0, unit=replace(RUNNING, restarts=2))).verdict == Dead(how=How.RESTARTS)
    assert run(spec, look(1.0), look(2.0, unit=replace(RUNNING, invocation="x"))).verdict == Dead(how=How.INVOCATION)


def test_lines_of_another_invocation_are_not_read() -> None:
    """What the second start logs does not become the first one's cause."""
    state = run(spec_for(), look(1.0), look(2.0, OOM, unit=replace(RUNNING, invocation="c3d4")))
    assert state.verdict == Dead(how=How.INVOCATION)


def test_a_restart_after_a_named_failure_is_that_failure() -> None:
    """Where the cause was read before the service manager started it again, the cause is the verdict."""
    state = run(spec_for(), look(1.0, OOM), look(2.0, unit=replace(RUNNING, invocation="c3d4")))
    assert isinstance(state.verdict, Failed)
    assert state.verdict.fatal == "F012"


@pytest.mark.parametrize(
    "unit",
    [
        GONE,
        replace(GONE, active="inactive", sub="dead"),
        replace(GONE, active="deactivating", sub="stop-sigterm"),
        replace(GONE, active="activating", sub="auto-restart"),
    ],
)
def test_a_process_that_is_gone_is_dead_within_a_second(unit: UnitState) -> None:
    """Whatever word the service manager has for it, the verdict comes within a second, with the exit status."""
    state = run(spec_for(), look(1.0), look(2.0, unit=unit), look(2.25, unit=unit), look(2.5, unit=unit))
    assert state.verdict == Dead(how=How.GONE, exit_status=137)


def test_a_death_without_a_name_hears_its_last_words() -> None:
    """Lines that a busy journal brings after the verdict give a death its cause; any other verdict stays, and so does silence."""
    words = (RAISED, '  File "x.py", line 1, in f', "KeyError: 'model.layers.61'", "", SIGQUIT)
    dead = run(spec_for(), look(1.0), look(2.0, unit=GONE), look(2.6, unit=GONE))
    assert gate.last_words(spec_for(), dead, ("a line of no meaning",)).verdict == dead.verdict
    told = gate.last_words(spec_for(), dead, words).verdict
    assert isinstance(told, Failed)
    assert (told.cause, told.exit_status) == (("KeyError: 'model.layers.61'",), 137)
    for other in (
        run(spec_for(), look(1.0)),
        run(spec_for(), look(1.0), look(2.0, unit=replace(GONE, invocation="b2"))),
    ):
        assert gate.last_words(spec_for(), other, words) == other


def test_no_processes_are_death_where_nobody_else_tells() -> None:
    """Without a word from the service manager, processes that were there and are not are a death."""
    unknown = UnitState()
    state = run(
        spec_for(), look(1.0, unit=unknown, processes=3), *(look(t, unit=unknown, processes=0) for t in (2.0, 2.6))
    )
    assert state.verdict == Dead(how=How.GONE)


def test_no_processes_yet_are_no_death() -> None:
    """Before the first process was seen, none is a start that has not begun."""
    assert run(spec_for(), *(look(float(t), unit=UnitState(), processes=0) for t in range(5))).verdict == Loading()


def test_last_words_that_come_late_are_waited_for() -> None:
    """The journal may bring the cause after the exit was seen: half a second is given."""
    first = run(spec_for(), look(1.0), look(2.0, unit=GONE))
    assert first.verdict == Loading()
    state = gate.advance(spec_for(), first, look(2.4, OOM, SIGQUIT, unit=GONE))
    assert isinstance(state.verdict, Failed)
    assert (state.verdict.fatal, state.verdict.exit_status) == ("F012", 137)


def test_a_lost_journal_is_not_waited_for() -> None:
    """Where no line can come, the death is told at once."""
    assert run(spec_for(), look(2.0, unit=GONE, journal_lost=True)).verdict == Dead(how=How.GONE, exit_status=137)


def test_conclude_tells_what_is_known_when_the_watcher_stops() -> None:
    """A death or a fatal text that waits for more words is final when no look will come; a load stays a load."""
    spec = spec_for()
    assert gate.conclude(spec, run(spec, look(2.0, unit=GONE))).verdict == Dead(how=How.GONE, exit_status=137)
    failing = gate.conclude(spec, run(spec, look(2.0, OOM)))
    assert isinstance(failing.verdict, Failed)
    assert gate.conclude(spec, run(spec, look(2.0))).verdict == Loading()


def test_a_cause_is_given_six_seconds_for_a_better_one() -> None:
    """The engine sleeps five seconds before its diagnostics: a better cause in that time wins, none makes it later."""
    better = "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
    waiting = run(spec_for(), look(10.0, OOM), look(15.9))
    assert waiting.verdict == Loading()
    told = run(spec_for(), look(10.0, OOM), look(14.0, better), look(16.0))
    assert isinstance(told.verdict, Failed)
    assert told.verdict.fatal == "F021"


def test_consequences_alone_are_told_as_such() -> None:
    """A collapse whose cause the log does not name is a failure with the most telling consequence."""
    state = run(spec_for(), look(1.0, SIGQUIT), look(2.0, unit=GONE), look(3.0, unit=GONE))
    assert isinstance(state.verdict, Failed)
    assert state.verdict.fatal == "F105"


def test_an_unknown_error_above_the_sigquit_is_the_cause() -> None:
    """An exception that nobody listed is told in the engine's own words; what comes after the collapse is aftermath."""
    lines = (
        RAISED,
        '  File "x.py", line 1, in f',
        "    raise KeyError(1)",
        "KeyError: 'model.layers.61'",
        "",
        SIGQUIT,
        "ValueError: late",
    )
    state = run(spec_for(), look(1.0, *lines), look(2.0, unit=GONE))
    state = gate.conclude(spec_for(), state)
    assert isinstance(state.verdict, Failed)
    assert (state.verdict.fatal, state.verdict.cause) == ("F900", ("KeyError: 'model.layers.61'",))
    assert state.verdict.title == "an error that specctl has no entry for: KeyError: 'model.layers.61'"


def test_an_error_that_the_engine_survives_fails_nothing() -> None:
    """A traceback that nothing follows is no failure: the load goes on and is ready."""
    state = run(
        spec_for(),
        look(1.0, "Traceback (most recent call last):", "ImportError: no falcon"),
        look(20.0, port=Port.OWN, ready=200),
    )
    assert state.verdict == Ready(took_s=20.0)


def test_a_scary_text_without_a_collapse_yields_to_ready() -> None:
    """An out-of-memory line that the engine survived (an autotuner's try) does not keep a ready server from being ready."""
    state = run(spec_for(), look(1.0, OOM), look(3.0, port=Port.OWN, ready=200))
    assert state.verdict == Ready(took_s=3.0)


def test_ready_after_a_collapse_is_not_believed() -> None:
    """/ready repeats its last answer while a dead scheduler's parent lingers: a collapse outweighs it."""
    state = run(
        spec_for(), look(1.0, OOM, SIGQUIT), look(3.0, port=Port.OWN, ready=200), look(7.0, port=Port.OWN, ready=200)
    )
    assert isinstance(state.verdict, Failed)


def test_a_plug_in_that_failed_explains_the_unknown_algorithm() -> None:
    """The engine only logs a plug-in's failure and dies later of an unknown algorithm: the plug-in is the verdict."""
    lines = (
        "Failed to load plugin sglang_ddtree: No module named 'numba'",
        "ValueError: Unknown speculative algorithm name: DDTREE",
    )
    state = run(spec_for(), look(1.0, *lines), look(2.0, unit=GONE))
    assert isinstance(state.verdict, Failed)
    assert state.verdict.fatal == "N005"
    assert state.verdict.cause == lines


def test_the_reason_of_the_ddtree_plugin_is_the_verdict() -> None:
    """What SGLang logs of the failure names the plugin alone; the plugin's own line has the reason, and is what is shown."""
    lines = (
        "DDTREE plugin not loaded: DDTREE was tested with SGLang 0.5.23, not with 0.5.24",
        "Failed to execute general plugin: ddtree",
        "ValueError: Unknown speculative algorithm name: DDTREE",
    )
    state = run(spec_for(), look(1.0, *lines), look(2.0, unit=GONE))
    assert isinstance(state.verdict, Failed)
    assert (state.verdict.fatal, state.verdict.cause) == ("N007", (lines[0], lines[2]))


def test_slow_is_not_stalled_and_never_ended_before_the_deadline() -> None:
    """A load that takes longer than it ever did, but moves, is slow until the deadline, then timed out while moving."""
    spec = spec_for(past_loads=(PastLoad(total_s=100.0),), stall_s=60.0, load_s=600.0)
    slow = run(spec, *(look(float(t), rss_bytes=t * 10**8) for t in range(0, 300, 10)))
    assert isinstance(slow.verdict, Slow)
    assert slow.verdict.usual_s == 100.0
    late = run(spec, *(look(float(t), rss_bytes=t * 10**8) for t in range(0, 610, 10)))
    assert late.verdict == TimedOut(after_s=600.0, phase=Phase.START, moving=("memory",))


def test_stalled_names_the_signals_and_their_last_values() -> None:
    """No sign in any watched signal for the limit is a stall that says what was watched."""
    spec = spec_for(stall_s=60.0)
    state = run(
        spec,
        look(0.0, "[2026-11-29 16:39:06] Init parallel begin."),
        *(look(float(t), cpu_s=12.5, rss_bytes=3 * 10**9, read_bytes=10**9) for t in range(1, 70, 3)),
    )
    assert isinstance(state.verdict, Stalled)
    assert {signal.name: signal.value for signal in state.verdict.watched} == {
        "log lines": 1.0,
        "CPU time": 12.5,
        "disk reads": 1e9,
        "memory": 3e9,
        "phase": 1.0,
    }


def test_a_dripping_processor_is_no_progress_but_a_working_one_is() -> None:
    """Two hundredths of a core are a poll loop; half a core is work."""
    spec = spec_for(stall_s=60.0)
    dripping = run(spec, *(look(float(t), cpu_s=5.0 + 0.02 * t) for t in range(0, 120, 2)))
    working = run(spec, *(look(float(t), cpu_s=5.0 + 0.5 * t) for t in range(0, 120, 2)))
    assert isinstance(dripping.verdict, Stalled)
    assert working.verdict == Loading()


def test_our_own_probes_lines_are_no_progress() -> None:
    """The access log of /ready and /health grows because we ask: it keeps nothing alive."""
    spec = spec_for(stall_s=60.0)
    line = '[2026-11-29 16:39:06] INFO:     127.0.0.1:1 - "GET /ready HTTP/1.1" 503 Service Unavailable'
    state = run(spec, *(look(float(t), line, cpu_s=5.0) for t in range(0, 120, 2)))
    assert isinstance(state.verdict, Stalled)


def test_phases_and_progress_of_a_tree_start_on_eight_ranks() -> None:
    """Ranks each load twice; the second load is the draft's; bars and bytes give the progress; phases have durations."""
    spec = spec_for(has_draft=True, target_bytes=590 * 10**9, draft_bytes=4 * 10**9)
    begin = [f"[2026-11-29 16:39:06 TP{rank}] Load weight begin. avail mem=90 GB" for rank in range(8)]
    end = [f"[2026-11-29 16:45:06 TP{rank}] Load weight end. elapsed=1 s" for rank in range(8)]
    capture = "[2026-11-29 16:46:06 TP0] Capture target verify CUDA graph begin. backend=full"
    state = run(
        spec,
        look(1.0, "[2026-11-29 16:39:05 TP0] Init parallel begin.", gpu_bytes=10**9),
        look(10.0, *begin, gpu_bytes=10**9),
    )
    assert (state.phase, state.progress, state.detail) == (Phase.TARGET_WEIGHTS, None, "0 of 8 ranks")
    state = gate.advance(spec, state, look(290.0, gpu_bytes=413 * 10**9))
    assert (state.detail, round(state.progress or 0.0, 3)) == ("412 of 590 GB", round(412 / 590, 3))
    state = gate.advance(spec, state, look(400.0, *end, begin[0], gpu_bytes=600 * 10**9))
    assert state.phase is Phase.DRAFT_WEIGHTS
    state = gate.advance(
        spec, state, look(420.0, "[x] Memory pool end. avail mem=1", "[2026-11-29 16:46:00 TP0] Memory pool end.")
    )
    assert state.phase is Phase.KV_POOL
    state = gate.advance(
        spec, state, look(440.0, capture, "Capturing batches (bs=24 avail_mem=4.08 GB):  50%|█████     | 24/48 [00:10<")
    )
    assert (state.phase, state.detail, state.progress) == (Phase.GRAPHS, "target verify, bs 24 of 48", 0.5)
    took = {span.phase: span.took_s for span in state.phases}
    assert took[Phase.TARGET_WEIGHTS] == 390.0
    assert took[Phase.GRAPHS] is None


def test_the_logs_bar_outranks_the_estimate() -> None:
    """Where the log shows n of m it is shown, unless it has not begun to move."""
    spec = spec_for(target_bytes=100 * 10**9)
    begin = "[2026-11-29 16:39:06] Load weight begin. avail mem=90 GB"
    first = run(
        spec,
        look(0.0, gpu_bytes=0),
        look(1.0, begin, gpu_bytes=0),
        look(9.0, "Loading safetensors checkpoint shards:   0% Completed | 0/61 [", gpu_bytes=10**10),
    )
    assert first.detail == "10 of 100 GB"
    state = gate.advance(
        spec, first, look(10.0, "Loading safetensors checkpoint shards:   5% Completed | 3/61 [", gpu_bytes=10**10)
    )
    assert state.detail == "3 of 61 shards"


def test_memory_tells_the_weights_without_a_log() -> None:
    """With the journal lost, memory that grows by a share of the weights is weights, in bytes."""
    spec = spec_for(target_bytes=50 * 10**9)
    state = run(spec, *(look(float(t), rss_bytes=10**9 + t * 10**9, journal_lost=True) for t in range(21)))
    assert (state.phase, state.detail, state.progress) == (Phase.TARGET_WEIGHTS, "20 of 50 GB", 0.4)


def test_memory_while_the_log_speaks_is_not_taken_for_weights() -> None:
    """Processes that start grow too: while the log tells the phase, memory does not."""
    spec = spec_for(target_bytes=50 * 10**9)
    line = "[2026-11-29 16:38:54] No chat template found"
    state = run(spec, *(look(float(t), line, rss_bytes=10**9 + t * 10**9) for t in range(21)))
    assert (state.phase, state.progress) == (Phase.START, None)


def test_more_bytes_than_expected_are_all_of_them() -> None:
    """An estimate never passes the expected size, in the ratio or in words."""
    spec = spec_for(target_bytes=50 * 10**9)
    state = run(spec, *(look(float(t), rss_bytes=10**9 + t * 10**9, journal_lost=True) for t in range(71)))
    assert (state.detail, state.progress) == ("50 of 50 GB", 1.0)


def test_small_weights_are_not_guessed_from_memory() -> None:
    """Weights of a few megabytes drown in what an interpreter needs: no estimate, rather than "all there" at once."""
    spec = spec_for(target_bytes=2 * 10**6)
    begin = "[2026-11-29 16:39:06] Load weight begin. avail mem=90 GB"
    state = run(spec, look(0.0, rss_bytes=10**7), look(1.0, begin, rss_bytes=10**7), look(2.0, rss_bytes=10**9))
    assert (state.phase, state.progress, state.detail) == (Phase.TARGET_WEIGHTS, None, None)


def test_the_eta_comes_from_past_loads_and_slides_when_late() -> None:
    """Without a past load there is none; with one it counts down, and past its end it moves away instead of turning negative."""
    assert run(spec_for(), look(10.0)).eta_s is None
    spec = spec_for(past_loads=(PastLoad(total_s=100.0),))
    assert run(spec, look(40.0)).eta_s == 60.0
    assert run(spec, look(140.0)).eta_s == 10.0


def test_an_observation_from_the_past_changes_no_clock() -> None:
    """A clock that runs backwards, or is no number, never makes time negative."""
    state = run(spec_for(), look(5.0), look(1.0), look(float("nan")), look(float("inf")))
    assert (state.at_s, state.elapsed_s, state.verdict) == (5.0, 5.0, Loading())
