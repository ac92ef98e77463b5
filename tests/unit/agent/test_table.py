"""A table of modes as the agent gives it: told and read back, believed until the engine says more, and shown as the row of now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.control.mode import Mode, mode
from specctl.control.policy_types import Now
from specctl.control.sample.engine import EngineInfo, EngineLoad, Look
from specctl.control.table import Table
from specctl.engines.types import EngineProfile
from specctl.fleet.profiles import Profiles
from specctl_agent.actuators import Broken, Moved, Refused
from specctl_agent.actuators.live import Live
from specctl_agent.actuators.witness import Counted
from specctl_agent.eyes import open_eyes
from specctl_agent.places import Places
from specctl_agent.samplers.runner import Health, Reading
from specctl_agent.watch import Watch
from tests.agentstub import Stub, engine
from tests.agentworld import ACT, engine_of, server_of
from tests.unit.agent.hostworld import lay_out


def plugin() -> EngineProfile:
    """Return the profile of an engine that follows tables."""
    found = Profiles({}, BuiltInProfiles()).get("sglang-0.5.23+ddtree")
    assert found is not None
    return found


TREE = mode("ddtree", {"block_size": 8, "tree_budget": 16, "topk_cap": 4})
CHAIN = mode("dflash", {"block_size": 8})
TABLE = Table(((1, TREE), (4, CHAIN)))
ROWS = [{"from": 1, "ddtree_budget": 16, "ddtree_topk": 4}, {"from": 4, "ddtree_budget": 7, "ddtree_topk": 1}]
BASE: Mapping[str, object] = {"ddtree_budget": 16, "ddtree_topk": 4, "ddtree_block_size": 8, "ddtree_policy": []}


class Blind:
    """A witness that sees nothing: a table is not proven by lines."""

    def begin(self) -> None:
        """Watch nothing."""

    def lines(self) -> None:
        """Return nothing."""

    def counted(self) -> Counted:
        """Return nothing."""
        return Counted()


def live_of(stub: Stub) -> Live:
    """Return what changes the stand-in engine, as one with the plugin."""
    server = replace(server_of(stub.port), profile=plugin())
    return Live(server, engine_of(server), Blind(), threading.Event())


def following(stub: Stub) -> Callable[[Mapping[str, object]], list[bool]]:
    """Return an engine's yes that makes a table of what it is told, or ends one, as the plugin does."""

    def takes(changes: Mapping[str, object]) -> list[bool]:
        rows = any("_from_" in name for name in changes)
        stub.state["ddtree_policy"] = list(ROWS) if rows else []
        return [True]

    return takes


def test_a_table_is_told_read_back_and_ended() -> None:
    """The engine's own word is held against the table; telling it one mode ends it."""
    with engine(TREE) as stub:
        stub.state, stub.takes = dict(BASE), following(stub)
        live = live_of(stub)
        given = live.follow(TABLE, TREE)
        assert isinstance(given, Moved), given
        assert stub.told[-1] == {
            "ddtree_budget_from_1": 16,
            "ddtree_topk_from_1": 4,
            "ddtree_budget_from_4": 7,
            "ddtree_topk_from_4": 1,
        }
        assert isinstance(live.follow(None, TREE), Moved)
        assert stub.told[-1] == {"ddtree_budget": 16, "ddtree_topk": 4}


@pytest.mark.parametrize(
    ("answer", "said"), [([False], "answers [false]"), ([True], "/server_info: ddtree_policy has 0 rows, not 2")]
)
def test_a_table_that_is_not_followed_is_said(answer: list[bool], said: str) -> None:
    """An engine that refuses has changed nothing; one that says yes and follows none is broken."""
    with engine(TREE) as stub:
        stub.state, stub.takes = dict(BASE), lambda _: answer
        found = live_of(stub).follow(TABLE, TREE)
        assert isinstance(found, Broken if answer[0] else Refused)
        assert said in found.reason


def test_a_question_never_falls_behind_a_change() -> None:
    """Who asks what the engine takes tells it what it had: a table that is given meanwhile waits, and is not ended by that."""
    with engine(TREE) as stub:
        live, given = live_of(stub), []
        giving = threading.Thread(target=lambda: given.append(live.follow(TABLE, TREE)))
        takes = following(stub)

        def slowly(changes: Mapping[str, object]) -> list[bool]:
            if not any("_from_" in name for name in changes):
                giving.start()
                giving.join(0.5)  # as long as it would take to come between, if it could
            return takes(changes)

        stub.state, stub.takes = dict(BASE), slowly
        assert live.can(TREE, CHAIN) is None
        giving.join()
        assert [type(outcome) for outcome in given] == [Moved]
        assert stub.state["ddtree_policy"] == ROWS


def test_an_engine_without_tables_is_told_nothing() -> None:
    """The profile says so before anything is sent."""
    with engine(TREE) as stub:
        live = replace(live_of(stub), server=server_of(stub.port))
        assert isinstance(live.follow(TABLE, TREE), Refused)
        assert stub.told == []


def info(policy: list[dict[str, int]]) -> EngineInfo:
    """Return what an engine with the plugin tells."""
    return EngineInfo(
        said={"speculative_algorithm": "DDTREE", "ddtree_budget": 16, "ddtree_topk": 4, "ddtree_block_size": 8},
        rows={"ddtree_policy": tuple(policy)},
    )


class Said:
    """A slot that has seen something, a while ago."""

    def __init__(self, value: object, seen_s: float) -> None:
        self.value, self.seen_s = value, seen_s

    def read(self, now_s: float) -> Reading[object]:
        """Return it with its age."""
        age_s = None if self.value is None else now_s - self.seen_s
        return Reading(value=self.value, age_s=age_s, health=Health())


def watching(tmp_path: Path) -> Watch:
    """Return what watches a server with the plugin."""
    lay_out(tmp_path, 1, ACT)
    place = Places(tmp_path).find("lab")
    assert place is not None
    place = replace(place, note=replace(place.note, server=replace(place.note.server, profile=plugin())))
    return Watch(place=place, eyes=open_eyes(place))


def look(watch: Watch, at_s: float, *, told: EngineInfo, told_s: float, running: int, expected: Mode = TREE) -> None:
    """Let it look at an engine that said this then, and runs so many requests now."""
    seen = Look(at_s=at_s, load=EngineLoad(running=running, waiting=0))
    slots = {"infos": Said(told, told_s), "loads": Said(seen, at_s), "pages": Said(None, 0.0), "lines": Said(None, 0.0)}
    watch.eyes = replace(watch.eyes, **slots)  # type: ignore[arg-type]  # slots in all but their threads
    watch.observe(Now(mono_s=at_s, wall_s=1_795_994_000.0 + at_s), expected)


def test_the_mode_is_the_row_of_now(tmp_path: Path) -> None:
    """With the number of requests that run the mode changes, though nobody switched."""
    watch = watching(tmp_path)
    for at_s, running, expected in ((100.0, 1, TREE), (101.0, 6, CHAIN), (102.0, 2, TREE)):
        look(watch, at_s, told=info(ROWS), told_s=at_s, running=running)
        assert at_s == 100.0 or (watch.mode, watch.table) == (expected, TABLE)


def test_what_was_given_counts_until_the_engine_has_said_more(tmp_path: Path) -> None:
    """An answer from before the table was given, or ended, is not held against it."""
    watch = watching(tmp_path)
    look(watch, 100.0, told=info([]), told_s=99.0, running=6)
    watch.given(TABLE, Now(mono_s=110.0, wall_s=0.0))
    look(watch, 111.0, told=info([]), told_s=105.0, running=6)
    assert (watch.followed, watch.table, watch.mode) == (True, TABLE, CHAIN)
    look(watch, 121.0, told=info([]), told_s=120.0, running=6)
    assert (watch.followed, watch.table, watch.mode) == (False, None, TREE)
    look(watch, 131.0, told=info(ROWS), told_s=130.0, running=6)
    watch.given(None, Now(mono_s=140.0, wall_s=0.0))
    look(watch, 141.0, told=info(ROWS), told_s=135.0, running=6)
    assert (watch.followed, watch.mode) == (False, TREE)


def test_a_table_that_is_not_understood_leaves_the_mode_unknown(tmp_path: Path) -> None:
    """Nothing is decided, learnt or audited by a mode that nobody knows."""
    watch = watching(tmp_path)
    look(watch, 100.0, told=info([]), told_s=99.0, running=1)
    look(watch, 200.0, told=info([{"from": 1, "ddtree_budget": 5000, "ddtree_topk": 4}]), told_s=199.0, running=1)
    assert (watch.followed, watch.table, watch.mode) == (True, None, None)
