"""A decision is carried out only where it may be, written down first, and taken back where the engine speaks against it."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.fleet.types import AgentMode, Hooks
from specctl.host import clock
from specctl_agent import request as requests
from specctl_agent.acting import Acting, Report, lease_holder
from specctl_agent.actuators import Cost
from specctl_agent.hands import open_hands
from specctl_agent.intent import Intents
from specctl_agent.places import Places
from specctl_agent.request import Request, Result
from tests import agentstub
from tests.agentstub import Performer, Stub
from tests.agentworld import DDTREE, DFLASH, NONE, tree
from tests.labserver import wait_until

BOOT = clock.boot_id()


@pytest.fixture
def engine() -> Iterator[Stub]:
    """A stand-in engine that runs the tree."""
    with agentstub.engine() as stub:
        yield stub


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The agent's own folder."""
    found = tmp_path / "state"
    found.mkdir()
    return found


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    """Where servers' folders lie."""
    return tmp_path / "servers"


def hands(servers: Path, state: Path, stopping: threading.Event | None = None) -> Acting:
    """Return what acts on the server, as the agent opens it."""
    places, wrong = Places(servers).look()
    assert wrong == {}
    intents = Intents(state / "intents.jsonl", boot=BOOT, wall=time.time)
    made = open_hands(places["lab"], state=state, intents=intents, boot=BOOT, stopping=stopping or threading.Event())
    made.live.confirm_s = 0.0
    made.restart.quiet_s = 0.05
    made.restart.poll_s = 0.02
    return made


def act(made: Acting, cost: Cost = Cost.LIVE, *, conduct: AgentMode = AgentMode.ACT, held: str | None = None) -> Report:
    """Carry a switch from the tree to the chain out."""
    return made.carry_out(cost, DDTREE, DFLASH, "the chain pays", conduct=conduct, held=held)


def hooked(tmp_path: Path) -> tuple[Hooks, Path]:
    """Return hooks that write down when they ran."""
    diary = tmp_path / "diary"
    script = tmp_path / "hook"
    script.write_text(f"#!/bin/sh\necho $1 >> {diary}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return Hooks(pre_drain=(str(script), "off"), post_ready=(str(script), "on"), limit_s=5.0), diary


@pytest.mark.parametrize(
    ("conduct", "held", "reason"),
    [
        (AgentMode.OBSERVE, None, "the agent was told: observe"),
        (AgentMode.ADVISE, None, "the agent was told: advise"),
        (AgentMode.ACT, "ann looks at it", "the agent is held: ann looks at it"),
    ],
)
def test_only_mode_act_acts(
    servers: Path, state: Path, engine: Stub, conduct: AgentMode, held: str | None, reason: str
) -> None:
    """In any other mode, and while held, nothing is asked, written or told."""
    agentstub.deployed(servers, engine.port)
    report = act(hands(servers, state), conduct=conduct, held=held)
    assert (report.result, report.reason, report.mode) == ("refused", reason, DDTREE)
    assert (engine.told, agentstub.steps_of(state)) == ([], [])


def test_an_order_cannot_exceed_the_inventory(servers: Path, state: Path, engine: Stub) -> None:
    """`specctl agent mode act` on a server whose inventory says advise is refused at the act."""
    agentstub.deployed(servers, engine.port, mode=AgentMode.ADVISE)
    assert act(hands(servers, state)).reason == "the inventory says agent.mode: advise"


def test_a_held_lease_refuses(servers: Path, state: Path, engine: Stub) -> None:
    """While an operator deploys, the agent changes nothing; a lease that has run out binds nobody, one that is damaged does."""
    folder = agentstub.deployed(servers, engine.port)
    lease = {
        "token": 1, "owner": "ann@desk", "reason": "deploy", "boot": BOOT, "acquired_s": 0.0, "acquired_wall": 0.0,
        "ttl_s": 45.0, "expires_s": clock.boottime_s() + 45.0,
    }  # fmt: skip
    (folder / "lock").write_text(json.dumps(lease))
    assert act(hands(servers, state)).reason == "ann@desk holds the server"
    (folder / "lock").write_text("{")
    assert str(lease_holder(folder)).startswith("somebody")
    (folder / "lock").write_text(json.dumps({**lease, "expires_s": clock.boottime_s() - 1.0}))
    assert act(hands(servers, state)).result == "done"


def test_a_live_switch_is_journalled_done_and_noted(servers: Path, state: Path, engine: Stub) -> None:
    """The steps in their order; the engine has the chain; the performer is asked for a record of it."""
    agentstub.deployed(servers, engine.port)
    report = act(hands(servers, state))
    assert (report.result, report.mode) == ("done", DFLASH)
    assert report.reason.startswith("claimed: ")
    assert agentstub.steps_of(state) == ["begun", "telling", "noting", "ended"]
    assert engine.state["speculative_algorithm"] == "DFLASH"
    (path,) = (state / requests.FOLDER).iterdir()
    noted = requests.read_request(path.read_bytes())
    assert (noted.kind, noted.mode, noted.was, noted.reason) == (
        requests.NOTE_LIVE, str(DFLASH), str(DDTREE), "the chain pays",
    )  # fmt: skip


def test_an_engine_that_says_no_is_left_alone(servers: Path, state: Path, engine: Stub) -> None:
    """[false] to the change itself: refused, ended, the tree as it was."""
    agentstub.deployed(servers, engine.port)
    engine.takes = lambda changes: [changes["speculative_algorithm"] == "DDTREE"]
    report = act(hands(servers, state))
    assert (report.result, report.reason, report.mode) == ("refused", "the engine answers [false]", DDTREE)
    assert agentstub.steps_of(state)[-1] == "ended"


def test_half_a_yes_is_taken_back(servers: Path, state: Path, engine: Stub) -> None:
    """One rank took it and another did not: told back to what ran before."""
    agentstub.deployed(servers, engine.port)
    engine.takes = lambda changes: [True] if changes["speculative_algorithm"] == "DDTREE" else [True, False]
    report = act(hands(servers, state))
    assert (report.result, report.mode) == ("reverted", DDTREE)
    assert "half a yes" in report.reason
    assert agentstub.steps_of(state) == ["begun", "telling", "telling back", "ended"]
    assert engine.state["speculative_algorithm"] == "DDTREE"


def test_a_full_disk_refuses(servers: Path, state: Path, engine: Stub) -> None:
    """Where the intent cannot be written, nothing is told."""
    agentstub.deployed(servers, engine.port)
    made = hands(servers, state)
    (state / "intents.jsonl").mkdir()
    report = act(made)
    assert (report.result, report.mode) == ("refused", None)
    assert "cannot be written" in report.reason
    assert [each for each in engine.told if each["speculative_algorithm"] != "DDTREE"] == []


def test_a_disk_that_fills_up_keeps_nobody_away(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """The step after requests were taken off cannot be written: they come again at once, and again when it can be."""
    hooks, diary = hooked(tmp_path)
    agentstub.deployed(servers, engine.port, hooks=hooks, outage_ok=False)
    made = hands(servers, state)
    journal = state / "intents.jsonl"
    engine.running = 1
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(act, made, Cost.RESTART)
        wait_until(diary.exists, what="requests are taken off")
        kept = journal.read_bytes()
        journal.unlink()
        journal.mkdir()
        engine.running = 0
        report = acting.result(timeout=20)
    assert (report.result, "cannot be written" in report.reason, report.mode) == ("refused", True, None)
    assert (diary.read_text().split(), list((state / requests.FOLDER).glob("*"))) == (["off", "on"], [])
    journal.rmdir()
    journal.write_bytes(kept)
    (mended,) = made.mend(running=DDTREE)
    assert (mended.result, diary.read_text().split()) == ("refused", ["off", "on", "on"])
    assert made.mend(running=DDTREE) == ()


@contextmanager
def refusing(state: Path) -> Iterator[Callable[[], None]]:
    """Give what makes the journal refuse from then on; with the block's end it takes steps again, after those that it had."""
    journal, kept = state / "intents.jsonl", bytearray()

    def refuse() -> None:
        kept.extend(journal.read_bytes())
        journal.unlink()
        journal.mkdir()

    yield refuse
    journal.rmdir()
    journal.write_bytes(kept)


def test_a_disk_that_fills_up_hides_no_live_change(servers: Path, state: Path, engine: Stub) -> None:
    """The engine took the change and no further step can be written: it is reported done, and its end is written later."""
    agentstub.deployed(servers, engine.port)
    made = hands(servers, state)
    with refusing(state) as refuse:

        def takes(changes: Mapping[str, object]) -> list[bool]:
            if changes["speculative_algorithm"] == "DFLASH":
                refuse()
            return [True]

        engine.takes = takes
        report = act(made)
    assert (report.result, report.mode, "cannot be written" in report.reason) == ("done", DFLASH, True)
    (mended,) = made.mend(running=DFLASH)
    assert (mended.result, mended.mode, made.mend(running=DFLASH)) == ("done", DFLASH, ())


def test_a_disk_that_fills_up_keeps_half_a_yes_from_nothing(servers: Path, state: Path, engine: Stub) -> None:
    """Half of the ranks took it and no step can be written: the engine is told back all the same."""
    agentstub.deployed(servers, engine.port)
    with refusing(state) as refuse:

        def takes(changes: Mapping[str, object]) -> list[bool]:
            if changes["speculative_algorithm"] == "DDTREE":
                return [True]
            refuse()
            return [True, False]

        engine.takes = takes
        report = act(hands(servers, state))
    assert (report.result, report.mode, engine.state["speculative_algorithm"]) == ("reverted", DDTREE, "DDTREE")


def test_a_disk_that_fills_up_hides_no_restart(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """The performer is done and no further step can be written: requests come again, and it is reported done."""
    with refusing(state) as refuse:

        def answer(asked: Request) -> Result:
            refuse()
            return agentstub.done(asked)

        report, diary, _ = restarted(servers, state, tmp_path, engine, answer)
    assert (report.result, report.mode, diary) == ("done", DFLASH, ["off", "on"])
    assert "cannot be written" in report.reason
    made = hands(servers, state)
    (mended,) = made.mend(running=DFLASH)
    assert (mended.result, mended.mode, made.mend(running=DFLASH)) == ("done", DFLASH, ())


def test_standby_has_its_place_and_no_actuator(servers: Path, state: Path, engine: Stub) -> None:
    """Nothing acts by standby yet, and that is said."""
    agentstub.deployed(servers, engine.port)
    assert act(hands(servers, state), Cost.STANDBY).reason == "nothing acts by standby yet"


def restarted(
    servers: Path, state: Path, tmp_path: Path, engine: Stub, answer: Callable[[Request], Result | None]
) -> tuple[Report, list[str], Performer]:
    """Switch by restart behind hooks, with a performer that answers so; return the report and the hooks' diary."""
    hooks, diary = hooked(tmp_path)
    folder = agentstub.deployed(servers, engine.port, hooks=hooks, outage_ok=False)
    performer = Performer(folder, state, answer)
    with performer.at_work():
        report = act(hands(servers, state), Cost.RESTART)
    return report, diary.read_text().split() if diary.exists() else [], performer


def test_a_restart_drains_asks_and_opens_again(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """Off, asked for the present release's other algo, on again; the act's own proof is the proof."""
    report, diary, performer = restarted(servers, state, tmp_path, engine, agentstub.done)
    assert (report.result, report.mode, report.reason) == ("done", DFLASH, "proven: a tree line")
    assert diary == ["off", "on"]
    (asked,) = performer.asked
    assert (asked.kind, asked.release, asked.algo, asked.reason) == ("switch", "1", "dflash", "the chain pays")
    assert agentstub.steps_of(state) == ["begun", "taken off", "requested", "back", "ended"]


def test_a_refused_restart_opens_again(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """The performer says no: nothing was changed, and requests come again."""
    report, diary, _ = restarted(
        servers, state, tmp_path, engine, lambda asked: Result(id=asked.id, outcome="refused", reason="held by ann")
    )
    assert (report.result, report.reason, report.mode) == ("refused", "held by ann", DDTREE)
    assert diary == ["off", "on"]


def test_a_restart_that_was_rolled_back_opens_again(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """The chain did not come up and the tree serves again: broken, with what serves, and requests come again."""
    report, diary, _ = restarted(
        servers, state, tmp_path, engine,
        lambda asked: Result(id=asked.id, outcome="rolled back", reason="F07 out of memory", serving=("1", "ddtree")),
    )  # fmt: skip
    assert (report.result, report.reason, report.mode) == ("broken", "F07 out of memory", DDTREE)
    assert diary == ["off", "on"]


def test_nobody_is_sent_to_a_server_that_does_not_serve(
    servers: Path, state: Path, tmp_path: Path, engine: Stub
) -> None:
    """Nothing serves after the act: requests stay away until somebody brings it up, and come again then."""
    report, diary, _ = restarted(
        servers, state, tmp_path, engine,
        lambda asked: Result(id=asked.id, outcome="stopped: no healthy release", reason="both died"),
    )  # fmt: skip
    assert (report.result, report.mode, diary) == ("broken", None, ["off"])
    made = hands(servers, state)
    engine.up = False
    (still,) = made.mend(running=None)
    assert (still.result, (tmp_path / "diary").read_text().split()) == ("broken", ["off"])
    engine.up = True
    (mended,) = made.mend(running=DDTREE)
    assert (mended.result, mended.mode) == ("broken", DDTREE)
    assert (tmp_path / "diary").read_text().split() == ["off", "on"]
    assert made.mend(running=DDTREE) == ()


def test_requests_that_never_end_give_the_switch_up(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """A request that outlasts the drain limit is not cut off for a switch: given up, and requests come again."""
    hooks, diary = hooked(tmp_path)
    agentstub.deployed(servers, engine.port, hooks=hooks, outage_ok=False)
    engine.running = 2
    made = hands(servers, state)
    limits = replace(made.spot.note.server.limits, drain_s=0.2)
    server = replace(made.spot.note.server, limits=limits)
    made.restart.spot = replace(made.spot, note=replace(made.spot.note, server=server))
    report = act(made, Cost.RESTART)
    assert (report.result, report.reason) == ("refused", "2 requests still run after 0 s")
    assert diary.read_text().split() == ["off", "on"]


def test_a_performer_that_does_not_come_costs_nothing(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """The request is taken back after a while; nobody can take it later."""
    hooks, diary = hooked(tmp_path)
    agentstub.deployed(servers, engine.port, hooks=hooks, outage_ok=False)
    made = hands(servers, state)
    made.restart.patience_s = 0.2
    report = act(made, Cost.RESTART)
    assert report.result == "refused"
    assert "the performer did not take the request: systemctl status specctl-agent-actuate.path" in report.reason
    assert (diary.read_text().split(), list((state / requests.FOLDER).iterdir())) == (["off", "on"], [])


def test_a_performer_that_dies_is_noticed(servers: Path, state: Path, tmp_path: Path, engine: Stub) -> None:
    """It took the request up and is gone: not waited for until the end of all limits."""
    report, diary, _ = restarted(servers, state, tmp_path, engine, lambda _: None)
    assert report.result == "broken"
    assert "ended without an answer" in report.reason
    assert diary == ["off"]


def test_without_a_way_to_drain_no_restart(servers: Path, state: Path, engine: Stub) -> None:
    """No gateway, no hooks, no word that an outage is accepted: refused before anything is written down."""
    agentstub.deployed(servers, engine.port, outage_ok=False)
    report = act(hands(servers, state), Cost.RESTART)
    assert report.result == "refused"
    assert "agent.outage_ok" in report.reason
    assert agentstub.steps_of(state) == []


def test_knobs_that_no_release_has_are_refused(servers: Path, state: Path, engine: Stub) -> None:
    """A budget by restart needs a release that starts with it."""
    agentstub.deployed(servers, engine.port)
    made = hands(servers, state)
    assert (
        made.can(Cost.RESTART, DDTREE, tree(8))
        == f"no release on this host starts with {tree(8)}: deploy one that does"
    )
    assert made.can(Cost.RESTART, DDTREE, NONE) is None
