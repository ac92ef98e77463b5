"""A verdict told to people."""

from __future__ import annotations

import pytest

from specctl.rollout.gate_types import GateState, TimedOut
from specctl.rollout.observation import Observation, Port
from specctl.rollout.story import clock, exit_words, kind, story
from tests.unit.rollout.replay import OOM, load, replay, spec_for
from tests.unit.rollout.test_gate import GONE, look, run


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (291.0, "4:51"), (3723.0, "1:02:03"), (-3.0, "0:00")],
)
def test_durations_read_as_off_a_clock(seconds: float, words: str) -> None:
    """Minutes and seconds, hours where there are some."""
    assert clock(seconds) == words


@pytest.mark.parametrize(
    ("status", "words"),
    [(None, ""), (1, ", exit status 1"), (137, ", exit status 137 (SIGKILL)"), (255, ", exit status 255")],
)
def test_exit_statuses_name_their_signal(status: int | None, words: str) -> None:
    """A status over 128 names its signal where there is one of that number."""
    assert exit_words(status) == words


def test_a_failure_tells_phase_time_cause_and_remedy() -> None:
    """The story of a recorded failure has the id, the engine's own line and what to do."""
    state = next(state for state in replay(load("failed/weights-file-absent")) if state.is_final)
    assert story(state) == (
        ("failed", "weights, 0:38   F014 no weights in /models/tiny-corrupt_noweights"),
        ("because", "RuntimeError: Cannot find any model weights with `/models/tiny-corrupt_noweights`"),
        ("remedy", "copy the weight files to the host; the folder has a config but no safetensors"),
    )


def test_a_death_tells_its_status_and_the_logs_last_lines() -> None:
    """A death without words shows the last lines, newest last."""
    state = next(state for state in replay(load("shutdown/sigterm-while-loading")) if state.is_final)
    told = story(state, 1)
    assert told[0] == ("dead", "weights, 0:30   process gone, exit status 143 (SIGTERM)")
    assert told[1][0] == "log"
    assert "Load weight end" in told[1][1]


def test_ranks_that_spin_before_the_weights_point_at_nccl() -> None:
    """A time-out in which only processor time moved before any weights is a hang in NCCL, and the remedy says so."""
    seen = [look(float(t), cpu_s=float(t)) for t in range(0, 130, 5)]
    state = run(spec_for(load_s=120.0), *seen)
    assert isinstance(state.verdict, TimedOut)
    assert story(state)[-1] == (
        "remedy",
        "only CPU time moves before any weights load: the ranks spin in NCCL; check NCCL_* and the fabric",
    )


def _endings() -> dict[str, GateState]:
    spec = spec_for(stall_s=60.0, load_s=600.0)
    return {
        "loading": run(spec, look(1.0)),
        "ready": run(spec, look(1.0, port=Port.OWN, ready=200)),
        "dead": run(spec, look(1.0, unit=GONE, journal_lost=True)),
        "failed": run(spec, look(1.0, OOM), look(9.0)),
        "stalled": run(spec, *(look(float(t), cpu_s=1.0) for t in range(0, 70, 5))),
        "timed-out": run(spec, Observation(at_s=601.0, unit=look(0.0).unit)),
    }


@pytest.mark.parametrize("word", ["loading", "ready", "dead", "failed", "stalled", "timed-out"])
def test_every_verdict_has_its_word_and_a_story(word: str) -> None:
    """Each kind of verdict is told by the same word everywhere, its own line first."""
    state = _endings()[word]
    assert kind(state) == word
    assert story(state)[0][0] == word
