"""How far a load has come, by what it has logged: the recorded starts of SGLang 0.5.23, cut off at a moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.sight import Loading
from specctl.control.sight_loading import loading
from specctl.rollout.launch import engines
from specctl.rollout.observation import Port, UnitState
from tests import fakes
from tests.unit.rollout.replay import load

GRAMMAR = engines()["sglang"].log
PAST = {"act": "deploy", "algo": "dflash", "result": "done", "serving": ["3", "dflash"], "load_s": 40.0}
FACTS = replace(
    fakes.facts({}, records=(PAST,)), port=Port.REFUSED, unit=UnitState(active="active", invocation="i1", restarts=0)
)


def lines(name: str, until_s: float) -> list[str]:
    """Return the lines that a recorded start had logged by a moment."""
    return [text for at_s, text in load(name).lines if at_s <= until_s]


@pytest.mark.parametrize(("at_s", "phase"), [(1.0, "start"), (26.0, "dist init"), (27.0, "draft"), (28.0, "warm-up")])
def test_phases_of_a_recorded_start(at_s: float, phase: str) -> None:
    """The phase is the log's, the time since the process began, and what is left goes by this host's past loads."""
    found = loading(GRAMMAR, fakes.SERVER, replace(FACTS, now_s=500.0 + at_s), lines("spec-dflash", at_s), 500.0)
    assert (found.phase, found.elapsed_s, found.eta_s) == (phase, at_s, 40.0 - at_s)
    assert found.fatal is None


def test_a_load_that_fails_says_why() -> None:
    """A known text that ends this start is named while the process still lives."""
    name = "failed/corrupt-safetensors"
    found = loading(GRAMMAR, fakes.SERVER, replace(FACTS, now_s=560.0), lines(name, 1e9), 500.0)
    assert found.fatal == "a weight file is damaged or cut short"


def test_a_first_load_has_no_end() -> None:
    """Without a past load nobody knows how long this one takes."""
    found = loading(GRAMMAR, fakes.SERVER, replace(FACTS, records=(), now_s=501.0), [], 500.0)
    assert (found.phase, found.elapsed_s, found.eta_s) == ("start", 1.0, None)


def test_a_start_that_nobody_timed() -> None:
    """Where the process's start is not known, nothing about its time is."""
    assert loading(GRAMMAR, fakes.SERVER, replace(FACTS, now_s=501.0), [], None) == Loading(phase="start")
