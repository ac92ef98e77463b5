"""What the control socket answers: everything that the agent shows, as JSON can hold it, and no order that makes no sense."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control import wire
from specctl.control.mode import mode
from specctl.errors import UsageError
from specctl.fleet.types import AgentMode
from specctl_agent.decisions import DecisionJournal
from specctl_agent.desk import Desk
from specctl_agent.orders import FORMAT, NAME, Orders
from specctl_agent.pictures import Picture
from specctl_agent.storing import Complaints, StateFile
from tests.unit.agent.pictured import BLIND, FULL, SERVER
from tests.unit.agent.recorded import HandClock, Said

TWO = replace(FULL, servers=(SERVER, replace(SERVER, server="chat")))


def desk(folder: Path, picture: Picture = FULL) -> Desk:
    """Open a desk that shows a picture."""
    said = Said()
    orders = Orders(file=StateFile(folder / NAME, FORMAT, Complaints(said), said), clock=HandClock())
    journal = DecisionJournal(folder, Complaints(said))
    journal.append({"server": "k26", "rule": "gain"})
    return Desk(lambda: picture, orders, journal, said)


def through(result: Mapping[str, object]) -> Mapping[str, object]:
    """Return an answer as it arrives at the other end."""
    return wire.result_of(wire.answer(result))


@pytest.mark.parametrize("picture", [FULL, BLIND, TWO], ids=["full", "blind", "two servers"])
@pytest.mark.parametrize(
    "request_", [wire.Status(), wire.Snapshot(), wire.Why(limit=5)], ids=lambda request: request.op
)
def test_every_answer_goes_through_the_wire(tmp_path: Path, picture: Picture, request_: wire.Request) -> None:
    """Whatever is known or not known, what is told is JSON, the same on both sides."""
    told = desk(tmp_path, picture).answer(request_)
    assert through(told) == json.loads(json.dumps(told))


def test_a_snapshot_has_every_source(tmp_path: Path) -> None:
    """GPUs, host and each server's engine are in it, with their ages."""
    told = through(desk(tmp_path).answer(wire.Snapshot()))
    assert told["nvml_age_s"] == 1.0
    nvml, servers = told["nvml"], told["servers"]
    assert isinstance(nvml, dict)
    assert isinstance(servers, dict)
    assert [gpu["uuid"] for gpu in nvml["gpus"]] == ["GPU-1", "GPU-2"]
    assert servers["k26"]["engine"]["mode"] == "ddtree:tree_budget=16"
    assert servers["k26"]["engine"]["activity"] == "active"


def test_why_has_what_stands_now(tmp_path: Path) -> None:
    """Beside the journal, each server's present decision; null where nothing was decided yet."""
    assert through(desk(tmp_path).answer(wire.Why()))["now"] == {"k26": dict(SERVER.grounds or {})}
    assert through(desk(tmp_path, BLIND).answer(wire.Why()))["now"] == {"k26": None}


def test_history_is_bounded_and_of_one_server(tmp_path: Path) -> None:
    """The newest points of the one server, oldest first; of two servers one has to be named."""
    told = through(desk(tmp_path).answer(wire.History(points=1)))
    assert (told["server"], told["points"]) == ("k26", [[None, None, None, None]])
    with pytest.raises(UsageError, match="which server is meant") as unclear:
        desk(tmp_path, TWO).answer(wire.History(points=1))
    assert unclear.value.hint == "the agent watches k26, chat"
    assert desk(tmp_path, TWO).answer(wire.History(points=2, server="chat"))["server"] == "chat"


def test_orders_are_taken_for_servers_that_there_are(tmp_path: Path) -> None:
    """An order for a server that nobody watches, or to an algo that the agent may not bring it to, is refused with a hint."""
    open_desk = desk(tmp_path)
    with pytest.raises(UsageError, match="watches no server 'k27'"):
        open_desk.answer(wire.Hold(who="me", reason="x", server="k27"))
    with pytest.raises(UsageError, match="may not bring k26 to none: it chooses among ddtree, dflash"):
        open_desk.answer(wire.Pin(who="me", mode=mode("none"), for_s=60.0, reason="x"))
    assert open_desk.answer(wire.Pin(who="me", mode=mode("dflash"), for_s=60.0, reason="x"))["saved"] is True


def test_a_pin_that_will_change_nothing_says_so(tmp_path: Path) -> None:
    """Where the agent only watches, or is held, whoever pins is told that nothing comes of it."""
    watching = replace(FULL, servers=(replace(SERVER, conduct=AgentMode.OBSERVE),))
    told = desk(tmp_path, watching).answer(wire.Pin(who="me", mode=mode("dflash"), for_s=60.0, reason="x"))
    assert told["said"] == "pinned to dflash for 60 s (x); the agent is in mode observe, and changes nothing"
    held = replace(FULL, servers=(replace(SERVER, conduct=AgentMode.ACT, held="firmware"),))
    told = desk(tmp_path, held).answer(wire.Pin(who="me", mode=mode("dflash"), for_s=60.0, reason="x"))
    assert str(told["said"]).endswith("; the agent is held (firmware), and changes nothing until it is resumed")


def test_more_than_the_inventory_allows_is_said_to_be_so(tmp_path: Path) -> None:
    """An order may take from what the inventory allows; one that would add is noted, and told to add nothing."""
    watching = replace(FULL, servers=(replace(SERVER, allowed=AgentMode.ADVISE, acting=None),))
    open_desk = desk(tmp_path, watching)
    more = open_desk.answer(wire.SetConduct(who="me", conduct=AgentMode.ACT))
    assert more["said"] == "mode act; and the inventory allows advise at most"
    assert open_desk.answer(wire.SetConduct(who="me", conduct=AgentMode.OBSERVE))["said"] == "mode observe"


@pytest.mark.parametrize(
    ("order", "warned"),
    [
        (wire.Hold(who="a", reason="firmware"), True),
        (wire.SetConduct(who="a", conduct=AgentMode.OBSERVE), True),
        (wire.Unpin(who="a"), False),
    ],
)
def test_a_hold_tells_of_the_switch_that_is_under_way(tmp_path: Path, order: wire.Order, warned: bool) -> None:
    """Who holds the agent to touch the host next must know that something goes on there yet."""
    busy = replace(FULL, servers=(replace(SERVER, acting="dflash → none by restart, for 40 s"),))
    idle = replace(FULL, servers=(replace(SERVER, acting=None),))
    words = "what is under way may still come to its end: dflash → none by restart, for 40 s"
    assert (words in str(desk(tmp_path, busy).answer(order)["said"])) is warned
    assert "under way" not in str(desk(tmp_path, idle).answer(order)["said"])
