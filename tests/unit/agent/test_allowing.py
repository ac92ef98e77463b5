"""The performer gives the agent nothing beyond the note, the releases and people's orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from specctl.control.mode import Mode
from specctl.fleet.types import AgentMode
from specctl.rollout.facts import CurrentRelease
from specctl.rollout.server_note import ServerNote
from specctl_agent import allowing
from specctl_agent import request as requests
from specctl_agent.request import Request
from tests.agentworld import ACT, DDTREE, DFLASH, KNOBS, NONE, note_of, server_of, tree

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
ASKED = Request(
    id="0" * 32, server="lab", kind=requests.SWITCH, reason="why", boot="b", at_s=100.0, release="2", algo="ddtree"
)


def manifest(budget: int = 16, **changes: object) -> dict[str, object]:
    """Return the manifest of a release whose tree has a budget."""
    argv = ["python", "--speculative-ddtree-budget", str(budget), "--port", "1"]
    return {
        "units": {algo: f"{algo}.service" for algo in KNOBS},
        "knobs": {**{k: dict(v) for k, v in KNOBS.items()}, "ddtree": {**KNOBS["ddtree"], "tree_budget": budget}},
        "launches": {algo: {"argv": list(argv), "env": {"A": "1"}} for algo in KNOBS},
        "port": 1,
        "bind": "127.0.0.1",
        **changes,
    }


CURRENT = CurrentRelease(id="1", algo="ddtree", manifest=manifest())


@pytest.fixture
def note(tmp_path: Path) -> ServerNote:
    """The note of a server whose agent may act."""
    return note_of(server_of(1), tmp_path)


def test_a_request_is_of_this_boot_and_of_now() -> None:
    """Asked before a reboot, too long ago or in the future: not carried out."""
    assert allowing.stale(ASKED, boot="b", now_s=101.0) is None
    assert allowing.stale(ASKED, boot="c", now_s=101.0) == "it was asked before the host was restarted"
    assert allowing.stale(ASKED, boot="b", now_s=221.0) == "it was asked 121 s ago"
    assert allowing.stale(ASKED, boot="b", now_s=99.0) == "it was asked -1 s ago"


@pytest.mark.parametrize(
    ("mode", "standing", "why"),
    [
        (AgentMode.ACT, {}, None),
        (AgentMode.ACT, {"conduct": "act"}, None),
        (AgentMode.OBSERVE, {}, "the inventory says agent.mode: observe"),
        (AgentMode.ADVISE, {"conduct": "act"}, "the inventory says agent.mode: advise"),
        (AgentMode.ACT, {"conduct": "observe"}, "the agent was told: observe"),
        (AgentMode.ACT, {"held": "maintenance"}, "the agent is held: maintenance"),
    ],
)
def test_orders_can_only_take_away(
    note: ServerNote, mode: AgentMode, standing: Mapping[str, object], why: str | None
) -> None:
    """The inventory's mode is the most that the agent may; what people told it takes from that, and never adds."""
    server = replace(note.server, agent=replace(ACT, mode=mode))
    assert allowing.forbidden(replace(note, server=server), {"servers": {"lab": standing}}) == why


def test_restarts_a_day_are_counted_by_the_hosts_records(note: ServerNote) -> None:
    """The agent's own restarts of the last 24 hours count; live changes, others' acts and old ones do not."""
    mine: dict[str, object] = {"who": "specctl-agent", "at": (NOW - timedelta(hours=1)).isoformat()}
    others: list[dict[str, object]] = [
        {**mine, "live": True},
        {**mine, "who": "ann@desk"},
        {**mine, "at": (NOW - timedelta(hours=25)).isoformat()},
        {**mine, "at": "yesterday"},
    ]
    agent = replace(ACT, switches_a_day=2)
    assert allowing.too_many(agent, [mine, *others], NOW) is None
    assert (
        allowing.too_many(agent, [mine, mine, *others], NOW) == "2 restarts within 24 hours, and the inventory allows 2"
    )


def unfit(note: ServerNote, release: str, algo: str, found: Mapping[str, object]) -> str | None:
    """Return why a release is unfit."""
    return allowing.unfit(note, CURRENT, replace(ASKED, release=release, algo=algo), found)


def test_the_present_release_may_start_with_each_owned_algo(note: ServerNote) -> None:
    """Of the release that runs, every algo that the agent owns; none that it does not."""
    assert unfit(note, "1", "dflash", manifest()) is None
    narrow = replace(note, server=replace(note.server, agent=replace(ACT, algos=("ddtree", "none"))))
    assert unfit(narrow, "1", "dflash", manifest()) == "dflash is not among agent.algos"
    assert unfit(narrow, "1", "ddtree", manifest()) is None
    assert unfit(note, "1", "eagle", manifest()) == "release 1 cannot run eagle"
    sealed = replace(note, server=replace(note.server, agent=replace(ACT, outage_ok=False)))
    assert "accepts no outage" in str(unfit(sealed, "1", "dflash", manifest()))


def test_another_release_may_differ_in_owned_knobs_alone(note: ServerNote) -> None:
    """Another budget within the bounds is the agent's to choose; any other flag, variable or address is not."""
    assert unfit(note, "2", "ddtree", manifest(8)) is None
    assert unfit(note, "2", "ddtree", manifest(64)) == "tree_budget 64 is outside 4 to 32"
    other = manifest(8)
    launches = other["launches"]
    assert isinstance(launches, dict)
    launches["ddtree"]["argv"] += ["--model-path", "/elsewhere"]
    launches["ddtree"]["env"]["LD_PRELOAD"] = "x"
    assert (
        unfit(note, "2", "ddtree", other)
        == "it differs from what runs in --model-path, LD_PRELOAD, which the agent does not own"
    )
    assert unfit(note, "2", "ddtree", manifest(8, port=2)) == "it answers at another address"
    owning = replace(note, server=replace(note.server, agent=replace(ACT, knobs={})))
    assert "--speculative-ddtree-budget" in str(unfit(owning, "2", "ddtree", manifest(8)))


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        (DFLASH, None),
        (NONE, None),
        (tree(4), None),
        (DDTREE, None),
        (tree(64), "tree_budget 64 is outside 4 to 32"),
        (
            Mode("ddtree", (("block_size", 4), ("topk_cap", 8), ("tree_budget", 8))),
            "the agent does not own block_size of ddtree",
        ),
    ],
)
def test_a_live_mode_moves_owned_things_alone(note: ServerNote, mode: Mode, why: str | None) -> None:
    """What is recorded as the agent's is what the agent owns."""
    assert allowing.foreign_mode(note, CURRENT, mode) == why


def test_a_live_algo_must_be_owned(note: ServerNote) -> None:
    """Without algos the agent moves knobs alone."""
    knobs_only = replace(note, server=replace(note.server, agent=replace(ACT, algos=())))
    assert allowing.foreign_mode(knobs_only, CURRENT, DFLASH) == "dflash is not among agent.algos"
    assert allowing.foreign_mode(knobs_only, CURRENT, tree(8)) is None
