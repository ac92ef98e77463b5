"""Do what a person wishes by the ops that the commands use: the same plan, lease, guard and gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from rich.text import Text

from specctl.control import mode as modes
from specctl.control import wire
from specctl.errors import UsageError
from specctl.fleet import units
from specctl.fleet.types import Host, Server
from specctl.ops import agent, deploy
from specctl.ops.prepare import Prepared
from specctl.ops.stored import RollBackTo, prepare_switch
from specctl.rollout.outcome import Outcome
from specctl.rollout.record import Act
from specctl.tui.wishes import Deed, Talk, Wish
from specctl.ui import plan as plans

Pair = tuple[Host, Server]
PLAN_WIDTH = 96


class Roll(Protocol):
    """Plans a rollout and keeps its hosts reached: ops.deploy.rollout, its templates given."""

    def __call__(
        self, selected: Sequence[Pair], request: deploy.Request, *, make_ready: Callable[..., Prepared]
    ) -> AbstractContextManager[deploy.Rollout]:
        """Yield the rollout."""


class OpsPerformer:
    """Performs on the servers of the inventory that the dashboard was started for."""

    def __init__(self, pairs: Sequence[Pair], roll: Roll) -> None:
        self._pairs: Mapping[tuple[str, str], Pair] = {
            (host.name, server.name): (host, server) for host, server in pairs
        }
        self._roll_out = roll

    def algos(self, host: str, server: str) -> Sequence[str]:
        """Return the algos of the server's engine profile that its models allow."""
        found = self._pairs.get((host, server))
        if found is None:
            return ()
        profile = found[1].profile
        return tuple(name for name, algo in profile.algos.items() if algo.draft is None or found[1].draft is not None)

    def perform(self, wish: Wish, talk: Talk) -> str:
        """Plan, ask, act."""
        pair = self._pairs.get((wish.host, wish.server))
        if pair is None:
            raise UsageError(f"server {wish.server} on {wish.host} is not in the selection")
        match wish.deed:
            case Deed.SWITCH:
                deploy.refuse_algo([pair], wish.algo)
                request = deploy.Request(act=Act.SWITCH, algo=wish.algo, reason=wish.reason)
                return self._roll(pair, request, prepare_switch, talk)
            case Deed.ROLLBACK:
                request = deploy.Request(act=Act.ROLLBACK, reason=wish.reason)
                return self._roll(pair, request, RollBackTo(None), talk)
            case _:
                return _order(pair, wish, talk)

    def _roll(self, pair: Pair, request: deploy.Request, ready: Callable[..., Prepared], talk: Talk) -> str:
        with self._roll_out([pair], request, make_ready=ready) as rollout:
            _raise_first(rollout.planned())
            shown = [line for one in rollout.prepared for line in plan_lines(one)]
            if not (rollout.plans or rollout.letters):
                return "nothing to do: " + "; ".join(one.plan.nothing or "" for one in rollout.prepared)
            talk.undo_by(rollout.interrupted.set)
            if not talk.confirm(shown):
                return "nothing was changed"
            outcomes = rollout.carry_out(talk)
        _raise_first(outcomes)
        hint = deploy.undo_hint(outcomes)
        return f"{request.act.value} done" + (f"; {hint}" if hint else "")


def _raise_first(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error


def plan_lines(item: Prepared) -> list[Text]:
    """Return a plan as `specctl switch --dry-run` shows it, line by line."""
    view = plans.view(item.plan, item.facts, item.host_facts, item.server.profile.name, width=PLAN_WIDTH)
    lines: list[Text] = []
    for part in view.renderables:
        lines.extend(part.split() if isinstance(part, Text) else [Text(str(part))])
    return lines


def _order(pair: Pair, wish: Wish, talk: Talk) -> str:
    """Tell the host's agent, once a person has seen what."""
    make = _request(wish)
    shown = [
        Text(f"{wish}", style="id"),
        Text(f"  {wish.deed.means}"),
        *([Text(f"  reason   {wish.reason}")] if wish.reason else []),
        Text("  cost     none: the server goes on as it is; its agent follows the order from its next tick on"),
    ]
    if not talk.confirm(shown):
        return "nothing was changed"
    (answer,) = agent.tell([pair], make)
    if answer.error is not None:
        raise answer.error
    return str(answer.result.get("said", "done"))


def _request(wish: Wish) -> Callable[[str, str], wire.Request]:
    reason = wish.reason or ""
    match wish.deed:
        case Deed.PIN:
            try:
                mode, for_s = modes.parse(wish.mode or ""), units.seconds(wish.duration or "")
            except ValueError as error:
                raise UsageError(
                    str(error), hint="mode as dflash or ddtree:tree_budget=16, time as 90s, 8m, 6h, 2d"
                ) from error
            return lambda who, server: wire.Pin(who=who, server=server, mode=mode, for_s=for_s, reason=reason)
        case Deed.HOLD:
            return lambda who, server: wire.Hold(who=who, server=server, reason=reason)
        case Deed.UNPIN:
            return lambda who, server: wire.Unpin(who=who, server=server)
        case Deed.RESUME:
            return lambda who, server: wire.Resume(who=who, server=server)
        case _:
            raise UsageError(f"{wish.deed.value} is no order to an agent")
