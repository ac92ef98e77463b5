"""Answers what is asked on the control socket, from the picture that the loop last published, and takes orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specctl.control import wire
from specctl.errors import UsageError
from specctl.fleet.types import AgentMode
from specctl_agent.decisions import DecisionJournal
from specctl_agent.log import INFO, Log
from specctl_agent.orders import Orders
from specctl_agent.pictures import RANKS, Picture, ServerPicture
from specctl_agent.told import told_agent, told_sources


class Desk:
    """Speaks for the agent; called by the serving thread, and waits for nothing but a small write of an order."""

    def __init__(self, picture: Callable[[], Picture], orders: Orders, journal: DecisionJournal, log: Log) -> None:
        self._picture = picture
        self._orders = orders
        self._journal = journal
        self._log = log

    def answer(self, request: wire.Request) -> Mapping[str, object]:
        """Answer a request; raises UsageError for one that cannot be done."""
        picture = self._picture()
        match request:
            case wire.Status():
                return told_agent(picture, self._wanted(picture, request.server))
            case wire.Snapshot():
                return told_sources(picture)
            case wire.Why():
                shown = self._wanted(picture, request.server)
                now = {server.server: server.grounds for server in shown}
                return {"decisions": self._journal.newest(request.limit, request.server), "now": now}
            case wire.History():
                server = self._one(picture, request.server)
                rows = server.history[-request.points :]
                return {"server": server.server, "period_s": 1.0, "points": [list(row) for row in rows]}
            case wire.Order():
                return self._ordered(picture, request)
            case _:
                raise UsageError(f"nothing is known of {request.op}")

    def _ordered(self, picture: Picture, order: wire.Order) -> Mapping[str, object]:
        server = self._one(picture, order.server)
        if isinstance(order, wire.Pin) and server.modes and order.mode.algo not in {mode.algo for mode in server.modes}:
            offered = ", ".join(sorted({mode.algo for mode in server.modes}))
            raise UsageError(
                f"the agent may not bring {server.server} to {order.mode.algo}: it chooses among {offered}",
                hint="agent.algos in the inventory, then specctl deploy",
            )
        saved = self._orders.take(server.server, order)
        words = _words(order)
        self._log(INFO, "order", server=server.server, order=words, who=order.who)
        said = [words]
        if not saved:
            said.append("it is in force, and not on the disk: a restart of the agent forgets it")
        wanted = order.conduct if isinstance(order, wire.SetConduct) else None
        if wanted is not None and RANKS.index(wanted) > RANKS.index(server.allowed):
            said.append(f"and the inventory allows {server.allowed.value} at most")
        if isinstance(order, wire.Pin) and server.conduct is not AgentMode.ACT:
            said.append(f"the agent is in mode {server.conduct.value}, and changes nothing")
        elif isinstance(order, wire.Pin) and server.held is not None:
            said.append(f"the agent is held ({server.held}), and changes nothing until it is resumed")
        if server.acting is not None and isinstance(order, wire.Hold | wire.SetConduct):
            said.append(f"what is under way may still come to its end: {server.acting}")
        return {"server": server.server, "said": "; ".join(said), "saved": saved}

    def _wanted(self, picture: Picture, name: str | None) -> tuple[ServerPicture, ...]:
        return picture.servers if name is None else (self._one(picture, name),)

    def _one(self, picture: Picture, name: str | None) -> ServerPicture:
        found = [server for server in picture.servers if name in (None, server.server)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(server.server for server in picture.servers) or "none yet"
        if name is not None:
            raise UsageError(f"the agent watches no server {name[:60]!r}", hint=f"it watches {there}")
        raise UsageError("which server is meant", hint=f"the agent watches {there}")


def _words(order: wire.Order) -> str:
    match order:
        case wire.Pin():
            return f"pinned to {order.mode} for {order.for_s:.0f} s ({order.reason})"
        case wire.Unpin():
            return "no pin"
        case wire.Hold():
            return f"held ({order.reason})"
        case wire.Resume():
            return "resumed"
        case wire.SetConduct():
            return f"mode {order.conduct.value}" if order.conduct else "mode as the inventory says"
        case _:
            return order.op
