"""A sight in words: one clause on what was decided last, and what a person should know, each thing once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.mode import Mode
from specctl.control.sight import AgentSight, Decided, LastAct, Loading, Sight, mode_of
from specctl.control.sight_words import age, last_decision, mode_text, notes, stands_out, wish
from tests import sights


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, None),
        (0.04, "0.0 s"),
        (0.4, "0.4 s"),
        (9.94, "9.9 s"),
        (12.0, "12 s"),
        (126.0, "2 min"),
        (14_400.0, "4 h"),
        (3e5, "3 d"),
    ],
)
def test_ages(seconds: float | None, said: str | None) -> None:
    """An age has its unit, and one that is not known is none."""
    assert age(seconds) == said


@pytest.mark.parametrize(
    ("sight", "said"),
    [
        (sights.READY, "hold: gain 1.2 of 9.6 needed"),
        (sights.LOADING, "weights, 412 of 590 GB, ready in about 3:06"),
        (sights.PINNED, "pinned to dflash (benchmark, ops@desk), 3 h left"),
        (sights.GONE, "connection timed out"),
        (sights.FROZEN, "deploy by ops, 4 h ago"),
        (sights.BARE, None),
        (replace(sights.BARE, state="ready", last=LastAct(act="deploy")), "deploy"),
        (replace(sights.LOADING, loading=Loading(phase="graphs", progress=0.25)), "graphs, 25 %"),
        (
            replace(sights.LOADING, loading=Loading(phase="weights", fatal="CUDA out of memory")),
            "weights: CUDA out of memory",
        ),
        (replace(sights.READY, agent=AgentSight(held="firmware", pinned="dflash (x, y)")), "held: firmware"),
        (replace(sights.READY, agent=AgentSight(decision=Decided(text="hold"))), "hold"),
    ],
)
def test_the_last_decision(sight: Sight, said: str | None) -> None:
    """Why nothing is known, how a load goes, what people ordered, what the agent decided, or the last act, in that order."""
    assert last_decision(sight) == said


def test_what_must_not_be_lost() -> None:
    """A load, an order of people and a host that is gone stand out; an everyday decision and a past act do not."""
    assert [stands_out(sight) for sight in sights.FLEET] == [False, True, True, False, True]


def test_notes_tell_everything_once() -> None:
    """Guard, lease, drift, heat, trouble, orders that are not the decision itself, findings: each a note, nothing twice."""
    found = list(notes(replace(sights.FULL, loading=None, reason=None)))
    assert len(found) == len(set(found))
    for words in (
        "guard armed: back to release 1, none",
        "locked by ann@desk (upgrade)",
        "the unit file differs",
        "GPU 3 slowed: hw thermal",
        "no figures of GPUs: driver gone",
        "agent: the agent does not answer",
        "frozen: the gain did not show",
        "held: firmware",
        "pinned to dflash",
        "M005",
        "set live by agent; a start would run dflash",
        "a warning",
    ):
        assert sum(note.startswith(words) or words in note for note in found) == 1, words
    assert not any(note.startswith("switching") for note in found)


def test_a_quiet_server_has_no_notes() -> None:
    """Where all is well there is silence."""
    assert list(notes(sights.READY)) == []


@pytest.mark.parametrize(
    ("desired", "told"),
    [
        (sights.CHAIN, "the inventory says dflash 8, and ddtree 7/1 is deployed"),
        (mode_of("ddtree", {"tree_budget": 7}), None),
        (mode_of("ddtree", {"tree_budget": 9}), "the inventory says ddtree 9, and ddtree 7/1 is deployed"),
    ],
)
def test_what_the_inventory_wants_otherwise(desired: Mode, told: str | None) -> None:
    """Another algo or knob than is deployed is told; a knob that the inventory leaves to the engine is no difference."""
    assert wish(replace(sights.READY, desired=desired)) == told


def test_a_host_that_is_gone_says_how_old_its_figures_are() -> None:
    """What was seen before the host was lost is told to be old."""
    assert "its figures are of 2 min ago" in list(notes(replace(sights.READY, state="unreachable", age_s=126.0)))


def test_modes() -> None:
    """An algo with its knobs, in the algo's order."""
    assert (mode_text(sights.TREE), mode_text(mode_of("none", {}))) == ("ddtree 7/1", "none")


def test_what_is_not_ready_says_why() -> None:
    """An engine that hangs behind its open port is told apart from one that answers and does not serve yet."""
    answers = replace(sights.READY, state="not ready")
    assert list(notes(answers)) == ["the engine answers, and says that it is not ready"]
    silent = replace(answers, running=None, waiting=None, tokens_per_s=None)
    assert list(notes(silent)) == [
        "the engine holds its port and tells nothing: it hangs, or has just begun (specctl logs)"
    ]
