"""A sight in words: what was decided last, and what a person should know beside its row; pure, for every view and for JSON."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.control.mode import Mode
from specctl.control.sight import AgentSight, Loading, Sight, State, knobs_of
from specctl.rollout.record import Result
from specctl.rollout.story import clock

UNREADY = "the engine answers, and says that it is not ready"
SILENT = "the engine holds its port and tells nothing: it hangs, or has just begun (specctl logs)"
_UNSEEN = (State.UNREACHABLE.value, State.UNKNOWN.value)


def age(seconds: float | None) -> str | None:
    """Return an age with one or two figures and its unit: 0.4 s, 12 s, 5 min, 3 h, 2 d; None where it is not known."""
    if seconds is None:
        return None
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def mode_text(mode: Mode) -> str:
    """Return an algo with its knobs as a table shows them: ddtree 7/1."""
    return f"{mode.algo} {'/'.join(str(value) for value in knobs_of(mode).values())}".rstrip()


def last_decision(sight: Sight) -> str | None:
    """Say in one clause what was decided about the server last, or why nothing is known; None where there is nothing to say."""
    if sight.state in _UNSEEN:
        return sight.reason
    if sight.loading is not None:
        return _progress(sight.loading)
    if sight.agent is not None:
        for words in _standing(sight.agent):
            return words
        decided = sight.agent.decision
        if decided is not None:
            reason = decided.reason or decided.rule
            return decided.text + (f": {reason}" if reason else "")
    if sight.last is None:
        return None
    ago = age(sight.last.age_s)
    who = f" by {sight.last.who.partition('@')[0]}" if sight.last.who else ""
    return f"{sight.last.act}{who}" + (f", {ago} ago" if ago else "")


def stands_out(sight: Sight) -> bool:
    """Claim that what `last_decision` says is no everyday matter: where its column is lost, it must be said elsewhere."""
    agent = sight.agent
    ordered = agent is not None and any(_standing(agent))
    return bool(sight.state in _UNSEEN or sight.loading is not None or ordered)


def _standing(agent: AgentSight) -> Iterator[str]:
    """Yield what stands above the agent's own decision, the strongest first."""
    if agent.acting:
        yield f"switching: {agent.acting}"
    if agent.frozen:
        yield f"frozen: {agent.frozen}"
    if agent.held:
        yield f"held: {agent.held}"
    if agent.pinned:
        left = age(agent.pin_left_s)
        yield f"pinned to {agent.pinned}" + (f", {left} left" if left else "")


def _progress(load: Loading) -> str:
    parts = [load.phase]
    if load.fatal:
        return f"{load.phase}: {load.fatal}"
    if load.detail:
        parts.append(load.detail)
    elif load.progress is not None:
        parts.append(f"{load.progress:.0%}".replace("%", " %"))
    if load.eta_s is not None:
        parts.append(f"ready in about {clock(load.eta_s)}")
    return ", ".join(parts)


def notes(sight: Sight) -> Iterator[str]:
    """Yield what a person should know beside the row, the gravest first; what `last_decision` says is not said again."""
    if sight.state in _UNSEEN and sight.age_s is not None:
        yield f"its figures are of {age(sight.age_s)} ago"
    if sight.guard is not None:
        yield sight.guard.words()
    if sight.lease is not None:
        yield f"locked by {sight.lease.owner}" + (f" ({sight.lease.reason})" if sight.lease.reason else "")
    if sight.state == State.FROZEN.value:
        yield "the engine answers, and its scheduler has published nothing for a while: its figures are old"
    if sight.state == State.NOT_READY.value:
        yield UNREADY if sight.running is not None else SILENT
    yield from sight.drift
    yield from _of_gpus(sight)
    yield from _of_agent(sight)
    if sight.live_by is not None and sight.deployed is not None:
        yield f"set live by {sight.live_by}; a start would run {sight.deployed.algo}"
    if sight.last is not None and sight.last.result in (Result.STOPPED.value, Result.FAILED.value):
        yield f"last {sight.last.act}: {sight.last.result}"
    yield from sight.warnings


def wish(sight: Sight) -> str | None:
    """Say what the inventory wants otherwise than is deployed: what the next deploy would change; None where it changes nothing."""
    if sight.desired is None or sight.deployed is None or not _differs(sight.desired, sight.deployed):
        return None
    return f"the inventory says {mode_text(sight.desired)}, and {mode_text(sight.deployed)} is deployed"


def _differs(desired: Mode, deployed: Mode) -> bool:
    """Claim that what is deployed is not what is wanted; a knob that the inventory does not name is the engine's own."""
    told = dict(deployed.knobs)
    return desired.algo != deployed.algo or any(told.get(name) != value for name, value in desired.knobs)


def _of_gpus(sight: Sight) -> Iterator[str]:
    slowed: dict[str, list[str]] = {}
    for gpu in sight.slowed:
        words = ", ".join(reason.value.replace("_", " ") for reason in gpu.slowing or ())
        slowed.setdefault(words, []).append(str(gpu.index))
    for words, indexes in slowed.items():
        yield f"GPU {', '.join(indexes)} slowed: {words}"
    if sight.gpu_trouble:
        yield f"no figures of GPUs: {sight.gpu_trouble}"


def _of_agent(sight: Sight) -> Iterator[str]:
    agent = sight.agent
    if sight.agent_trouble:
        yield f"agent: {sight.agent_trouble}"
    if agent is None:
        return
    if sight.state not in _UNSEEN and sight.loading is None:
        yield from list(_standing(agent))[1:]
    else:
        yield from _standing(agent)
    if agent.findings:
        yield f"metrics contradict each other: {', '.join(agent.findings)} (specctl doctor)"
    for subject, words in agent.troubles.items():
        yield f"agent's trouble with {subject}: {words}"
