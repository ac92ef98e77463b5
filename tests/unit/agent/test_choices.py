"""The agent chooses among what it owns, as far as the engine takes it live or a release on the host starts with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specctl.fleet.types import AgentSettings
from specctl.rollout.server_note import ReleaseNote, ServerNote
from specctl_agent.choices import choices, ladder
from tests.agentworld import ACT, DDTREE, DFLASH, KNOBS, NONE, note_of, server_of, tree


def note(tmp_path: Path, agent: AgentSettings = ACT, *, live: bool = True) -> ServerNote:
    """Return a note with two releases that differ in the tree's budget; `live` false: the engine takes nothing live."""
    server = server_of(1, agent=agent)
    if not live:
        algos = {name: replace(algo, live_knobs=()) for name, algo in server.profile.algos.items()}
        server = replace(server, profile=replace(server.profile, algos=algos))
    found = note_of(server, tmp_path, "1")
    other = ReleaseNote(port=1, bind="127.0.0.1", knobs={**KNOBS, "ddtree": {**KNOBS["ddtree"], "tree_budget": 8}})
    return replace(found, releases={**found.releases, "2": other})


def test_a_live_engine_offers_a_ladder_of_budgets(tmp_path: Path) -> None:
    """What a start would run comes first, then each owned algo, each owned knob in steps between its bounds."""
    found = choices(note(tmp_path), "1", "ddtree")
    assert found[0] == DDTREE
    assert set(found) == {NONE, DFLASH, DDTREE, tree(4), tree(8), tree(32)}


def test_by_restart_only_what_a_release_starts_with(tmp_path: Path) -> None:
    """Without a live way a budget must be another release's."""
    assert set(choices(note(tmp_path, live=False), "1", "ddtree")) == {NONE, DFLASH, DDTREE, tree(8)}


@pytest.mark.parametrize(
    ("agent", "algo", "expected"),
    [
        (replace(ACT, algos=()), "ddtree", {DDTREE, tree(4), tree(8), tree(32)}),
        (replace(ACT, algos=("dflash", "ddtree"), knobs={}), "ddtree", {DDTREE, DFLASH}),
        (replace(ACT, algos=("none", "dflash"), knobs={}), "ddtree", {DDTREE}),
    ],
)
def test_what_the_agent_does_not_own_stays(
    tmp_path: Path, agent: AgentSettings, algo: str, expected: set[object]
) -> None:
    """Without algos knobs alone, without knobs algos alone; from an algo that is not its own it does not go away."""
    assert set(choices(note(tmp_path, agent), "1", algo)) == expected


def test_an_unknown_release_offers_nothing(tmp_path: Path) -> None:
    """The note does not know what the link names: there is nothing to choose among."""
    assert choices(note(tmp_path), "9", "ddtree") == ()
    assert choices(note(tmp_path), "1", "eagle") == ()


def test_a_ladder_doubles_within_its_bounds() -> None:
    """Both bounds are on it, and a step is never empty."""
    assert list(ladder(4, 32)) == [4, 8, 16, 32]
    assert list(ladder(0, 3)) == [0, 1, 2, 3]
    assert list(ladder(5, 5)) == [5]
