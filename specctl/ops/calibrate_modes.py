"""Which modes a calibration measures, and by which way a server gets from one to another: values from inventory and release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.errors import UnsupportedError, UsageError
from specctl.fleet.types import Server
from specctl.ops.engine_live import CannotError, Change, Engine, change

MOST_MODES = 16
HINT = "--mode dflash --mode ddtree:tree_budget=16"

Knobs = Mapping[str, Mapping[str, int]]


def wanted(given: Sequence[str], server: Server, deployed: Knobs, was: Mode) -> tuple[Mode, ...]:
    """Return the modes: those named, else what the inventory lets the agent choose among, else the algos of the release.

    Knobs that are not said are those of the release, or the inventory's. Raises UsageError for what cannot be meant.
    """
    found = [_completed(text, server, deployed) for text in given] if given else _default(server, deployed, was)
    unique = tuple(dict.fromkeys(found))
    if len(unique) < 2:
        raise UsageError("a calibration compares two or more modes", hint=HINT)
    if len(unique) > MOST_MODES:
        raise UsageError(f"{len(unique)} modes are more than {MOST_MODES}", hint=f"name some: {HINT}")
    return unique


def _completed(text: str, server: Server, deployed: Knobs) -> Mode:
    try:
        named = modes.parse(text)
    except ValueError as error:
        raise UsageError(f"--mode {text}: {error}", hint=HINT) from error
    _refuse_unknown(named.algo, server)
    return _whole(named.algo, dict(named.knobs), server, deployed)


def _whole(algo: str, knobs: Mapping[str, int], server: Server, deployed: Knobs) -> Mode:
    base = {**server.knobs.get(algo, {}), **deployed.get(algo, {})}
    try:
        return modes.mode(algo, {**base, **knobs})
    except ValueError as error:
        raise UsageError(f"mode {algo}: {error}", hint=HINT) from error


def _refuse_unknown(algo: str, server: Server) -> None:
    from specctl.algos import ALGOS

    if algo not in server.profile.algos:
        raise UsageError(
            f"{server.profile.name} has no {algo} (it has {', '.join(server.profile.algos)})",
            hint="name another --mode",
        )
    if ALGOS[algo].drafts and server.draft is None:
        raise UsageError(f"{algo} drafts, and {server.name} names no draft", hint="name another --mode")


def _default(server: Server, deployed: Knobs, was: Mode) -> list[Mode]:
    """Return the algos that the agent may choose among, each as it would start, and each owned knob at its bounds and between."""
    agent = server.agent
    found = [was]
    for algo in agent.algos or tuple(deployed):
        if algo in server.profile.algos:
            found.append(was if algo == was.algo else _whole(algo, {}, server, deployed))
            for name in sorted(agent.knobs.get(algo, {})):
                found += [_whole(algo, {name: value}, server, deployed) for value in agent.steps(algo, name)]
    return found


def live_refusal(engine: Engine, server: Server, was: Mode, others: Sequence[Mode]) -> str | None:
    """Say why a running engine cannot be brought from one mode to all others and back; None where it can."""
    tell: dict[str, object] = {}
    needs: dict[str, object] = {}
    for mode in others:
        if mode == was:
            continue
        try:
            change(server.profile, mode, was)
            there = change(server.profile, was, mode)
        except CannotError as cannot:
            return str(cannot)
        if any(needs.get(name, value) != value for name, value in there.needs.items()):
            return f"{mode} needs another start than the modes before it"
        tell |= there.tell
        needs |= there.needs
    return engine.takes(Change(tell=tell, needs=needs)).reason


def way_of(wish: str | None, refusal: str | None) -> str:
    """Return `live` or `restart`; raises UnsupportedError where live was asked for and cannot be."""
    if wish == "restart" or (wish is None and refusal is not None):
        return "restart"
    if refusal is not None:
        raise UnsupportedError(
            f"the engine cannot change its mode while it runs: {refusal}", hint="--restart changes it by starting anew"
        )
    return "live"
