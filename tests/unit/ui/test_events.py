"""The events of `--json`: the documented fields, always JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from specctl.rollout.gate_types import GateState, PastLoad
from specctl.rollout.observation import Port
from specctl.ui import events
from tests.unit.rollout.replay import load, replay, spec_for
from tests.unit.rollout.test_gate import GONE, look, run

DOCUMENT = Path(__file__).parents[3] / "docs" / "json-events.md"


def _states() -> dict[str, GateState]:
    spec = spec_for(stall_s=60.0, load_s=600.0, past_loads=(PastLoad(total_s=10.0),))
    return {
        "loading": run(spec, look(1.0)),
        "slow": run(spec, look(30.0)),
        "ready": run(spec, look(1.0, port=Port.OWN, ready=200)),
        "dead": run(spec, look(1.0, unit=GONE, journal_lost=True)),
        "failed": replay(load("failed/weights-file-absent"))[-1],
        "stalled": run(spec, *(look(float(t), cpu_s=1.0) for t in range(0, 70, 5))),
        "timed-out": run(spec, look(601.0)),
    }


STATES = _states()
FIELDS = {
    "loading": set(),
    "slow": {"usual_s", "over_s"},
    "ready": {"took_s"},
    "dead": {"how", "exit_status"},
    "failed": {"id", "title", "cause", "remedy", "exit_status"},
    "stalled": {"for_s", "watched"},
    "timed-out": {"after_s", "moving"},
}


@pytest.mark.parametrize("word", sorted(STATES))
def test_a_gate_event_has_the_documented_fields(word: str) -> None:
    """Each verdict has its kind and its own fields, and the whole is strict JSON."""
    event = json.loads(json.dumps(events.gate_event("ct200", STATES[word]), allow_nan=False))
    assert set(event["verdict"]) == {"kind", *FIELDS[word]}
    assert event["verdict"]["kind"] == word
    assert set(event) == {
        "event", "host", "phase", "progress", "detail", "elapsed_s", "eta_s", "quiet_s", "verdict", "phases", "notes"
    }  # fmt: skip


def test_a_failures_event_says_what_people_see() -> None:
    """Id, title, cause and status of a recorded failure are in the event as in the story."""
    verdict = events.gate_event("ct200", STATES["failed"])["verdict"]
    assert verdict == {
        "kind": "failed",
        "id": "F014",
        "title": "no weights in /models/tiny-corrupt_noweights",
        "cause": ["RuntimeError: Cannot find any model weights with `/models/tiny-corrupt_noweights`"],
        "remedy": "copy the weight files to the host; the folder has a config but no safetensors",
        "exit_status": 137,
    }


def test_every_field_is_documented() -> None:
    """docs/json-events.md names every field and every kind of verdict."""
    named = set(re.findall(r"`([a-z_-]+)`", DOCUMENT.read_text("utf-8")))
    event = events.gate_event("ct200", STATES["loading"])
    span = {"began_s", "took_s"}
    assert {*event, *FIELDS, *(field for fields in FIELDS.values() for field in fields), *span} <= named
    assert {*events.step_event("h", "n", "t"), *events.final_event("h", "n", "t")} <= named
