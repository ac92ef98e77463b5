"""What the agent of each server may do, merged: what it owns exists and stays in bounds, and a restart of its own can drain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specctl.algos import ALGOS
from specctl.engines.types import EngineProfile
from specctl.errors import Problem
from specctl.fleet.layers import Leaf
from specctl.fleet.merge import MergedHost, Placement
from specctl.fleet.rules.servers import why_useless
from specctl.fleet.suggest import listed, nearest
from specctl.fleet.types import AgentMode, ServiceManager

GATEWAY = ("kind", "url", "worker")
NO_LEASE = "the fleet lease that would let them take turns does not exist yet"


def check(hosts: Sequence[MergedHost]) -> Iterator[Problem]:
    """Yield what is wrong with the agents of all servers, and of groups whose agents could restart at the same time."""
    for host in hosts:
        for placement in host.placements:
            yield from _algos(placement)
            yield from _draining(placement)
            yield from _table(placement)
            if may_restart(placement):
                yield from _needs(host, placement)
    yield from _knobs([placement for host in hosts for placement in host.placements])
    yield from _turns(hosts)


def may_restart(placement: Placement) -> bool:
    """Claim that the agent may change the algo or a knob of this server by restarting it: the engine takes it in no other way."""
    if placement.value("agent", "mode") != AgentMode.ACT.value or placement.profile is None:
        return False
    owned = {path[2:] for path in placement.leaves if path[:2] == ("agent", "knobs") and len(path) == 4}
    algos = _listed(placement.value("agent", "algos"))
    return any(not _live(placement.profile, algo, "algo") for algo in algos if len(algos) > 1) or any(
        not _live(placement.profile, algo, knob) for algo, knob in owned
    )


def _live(profile: EngineProfile, algo: str, what: str) -> bool:
    found = profile.algos.get(algo)
    return found is not None and what in found.live_knobs


def _listed(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _algos(placement: Placement) -> Iterator[Problem]:
    leaf = placement.leaves.get(("agent", "algos"))
    if leaf is None or placement.profile is None:
        return
    names = _listed(leaf.value)
    for name in names:
        if name not in ALGOS:
            yield leaf.problem(f"there is no algo {name} (there is {listed(ALGOS)})", suggestion=nearest(name, ALGOS))
        elif name not in placement.profile.algos:
            has = listed(placement.profile.algos)
            yield leaf.problem(f"{placement.profile.name} has no {name} (it has {has})")
        elif ALGOS[name].drafts and placement.section.draft is None:
            yield leaf.problem(f"{name} drafts, and {placement.server.name} names no draft")
    if len(set(names)) != len(names):
        yield leaf.problem("names an algo twice")
    if placement.algo not in names:
        yield leaf.problem(f"{placement.algo}, which a deploy starts on {placement.host.name}, is not among them")


def _knobs(placements: Sequence[Placement]) -> Iterator[Problem]:
    """Yield what is wrong with owned knobs; one server of several that has a knob is enough to excuse a shared layer."""
    useless: dict[object, Problem] = {}
    used: set[object] = set()
    for placement in placements:
        for path, leaf in placement.leaves.items():
            if path[:2] != ("agent", "knobs") or len(path) != 4 or placement.profile is None:
                continue
            words = _unknown(path[2]) or why_useless(placement.profile, path[2], path[3])
            if words is not None:
                near = nearest(path[2], ALGOS) if path[2] not in ALGOS else None
                useless.setdefault((leaf.origin, leaf.at), leaf.problem(words, suggestion=near, at_key=True))
                continue
            used.add((leaf.origin, leaf.at))
            yield from _knob(placement, path[2], path[3], leaf)
    yield from (problem for place, problem in useless.items() if place not in used)


def _unknown(algo: str) -> str | None:
    return None if algo in ALGOS else f"there is no algo {algo} (there is {listed(ALGOS)})"


def _knob(placement: Placement, algo: str, knob: str, leaf: Leaf) -> Iterator[Problem]:
    low, high = leaf.value if isinstance(leaf.value, list) else (0, 0)
    for fault in dict.fromkeys([*ALGOS[algo].faults({knob: low}), *ALGOS[algo].faults({knob: high})]):
        yield leaf.problem(fault)
    begins = placement.whole("knobs", algo, knob)
    if begins is None:
        words = f"the agent owns {knob}, and nothing says what it begins with: give knobs.{algo}.{knob}"
        yield leaf.problem(words, at_key=True)
    elif not low <= begins <= high:
        yield placement.leaves["knobs", algo, knob].problem(
            f"{knob} is {begins}, outside {low} to {high}, within which the agent may move it"
        )


def _draining(placement: Placement) -> Iterator[Problem]:
    """Yield the halves: a gateway without its address, a hook without its counterpart."""
    said = {key: leaf for key in GATEWAY if (leaf := placement.leaves.get(("agent", "gateway", key))) is not None}
    if said and len(said) < len(GATEWAY):
        lacking = [key for key in GATEWAY if key not in said]
        yield next(iter(said.values())).problem(f"agent.gateway lacks {listed(lacking)}", at_key=True)
    hooks = [placement.leaves.get(("agent", "hooks", key)) for key in ("pre_drain", "post_ready")]
    given = [hook for hook in hooks if hook is not None]
    if len(given) == 1:
        yield given[0].problem("needs its counterpart: what is taken off must come back (pre_drain and post_ready)")
    if said and given:
        yield given[0].problem("the gateway is drained already: keep agent.gateway or agent.hooks", at_key=True)


def _table(placement: Placement) -> Iterator[Problem]:
    """Yield it where a table is wished for that this build follows not."""
    leaf = placement.leaves.get(("agent", "table"))
    if (
        leaf is not None
        and leaf.value is True
        and placement.profile is not None
        and placement.profile.live_table is None
    ):
        yield leaf.problem(f"{placement.profile.name} follows no table (a profile with live_table does)")


def _can_drain(placement: Placement) -> bool:
    keys = [("agent", "gateway", "url"), ("agent", "hooks", "pre_drain")]
    return placement.value("agent", "outage_ok") is True or any(key in placement.leaves for key in keys)


def _needs(host: MergedHost, placement: Placement) -> Iterator[Problem]:
    """Yield what a server lacks whose agent would restart it."""
    leaf = placement.leaves["agent", "mode"]
    would = f"the agent would restart {placement.server.name} on {placement.host.name}"
    if host.leaves["service_manager",].value != ServiceManager.SYSTEMD.value:
        yield leaf.problem(
            f"{would}, which it can only under systemd: take agent.algos and agent.knobs away, or mode: act"
        )
    elif not _can_drain(placement):
        yield leaf.problem(
            f"{would}: give agent.gateway or agent.hooks, so that requests go elsewhere meanwhile, "
            "or say agent.outage_ok: true"
        )


def _turns(hosts: Sequence[MergedHost]) -> Iterator[Problem]:
    """Yield a problem for each group in which more than one host's agent could restart its server."""
    acting: dict[str, list[Placement]] = {}
    for host in hosts:
        # One server a host is enough: it is hosts that would be away at the same time.
        for placement in [one for one in host.placements if may_restart(one)][:1]:
            for group in host.groups:
                acting.setdefault(group, []).append(placement)
    for group, placements in acting.items():
        names = listed(one.host.name for one in placements)
        for placement in placements[1:]:
            yield placement.leaves["agent", "mode"].problem(
                f"the agents of {names}, all of group {group}, could restart at the same time: {NO_LEASE}, "
                "so one of them may act"
            )
