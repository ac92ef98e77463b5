"""What of a sight a person should look at, in words, the gravest first; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specctl.control.sight import Sight, State
from specctl.rollout.story import clock
from specctl.tui.words import MOVING, ago, known, one_line

WELL = (State.READY, State.LOADING, State.NOT_DEPLOYED, *MOVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is not as it should be; `grave`: it does not serve, or not as asked."""

    text: str
    grave: bool = False


def problems_of(sight: Sight) -> tuple[Problem, ...]:
    """Return what is wrong with a server, the gravest first."""
    found = [*_state(sight), *_guard(sight), *_gpus(sight), *_figures(sight), *_setting(sight), *_agent(sight)]
    return tuple(sorted(found, key=lambda problem: not problem.grave))


def _state(sight: Sight) -> Iterator[Problem]:
    if sight.loading is not None and sight.loading.fatal:
        yield Problem(text=f"the load fails: {one_line(sight.loading.fatal)}", grave=True)
    if sight.state not in WELL:
        why = f": {one_line(sight.reason)}" if sight.reason else ""
        yield Problem(text=f"{one_line(sight.state)}{why}", grave=True)
    elif sight.reason:
        yield Problem(text=one_line(sight.reason))
    if sight.state == State.READY and sight.proven is False:
        yield Problem(text="the algo is claimed, not proven")


def _guard(sight: Sight) -> Iterator[Problem]:
    if sight.guard is not None:
        yield Problem(text=one_line(sight.guard.words()))
    if sight.lease is not None:
        why = f" ({one_line(sight.lease.reason)})" if sight.lease.reason else ""
        yield Problem(text=f"locked by {one_line(sight.lease.owner)}{why}")


def _gpus(sight: Sight) -> Iterator[Problem]:
    for gpu in sight.slowed:
        yield Problem(text=f"GPU {gpu.index} is slowed: {', '.join(gpu.slowing or ())}", grave=True)
    if sight.gpu_trouble:
        yield Problem(text=f"GPUs: {one_line(sight.gpu_trouble)}")


def _figures(sight: Sight) -> Iterator[Problem]:
    if sight.running is not None and sight.running.stale:
        yield Problem(text=f"the engine's figures are {ago(sight.running.age_s)} old")


def _setting(sight: Sight) -> Iterator[Problem]:
    for text in sight.drift:
        yield Problem(text=f"drift: {one_line(text)}")
    for text in sight.warnings:
        yield Problem(text=one_line(text))


def _agent(sight: Sight) -> Iterator[Problem]:
    agent = sight.agent
    if sight.agent_trouble:
        yield Problem(text=f"agent: {one_line(sight.agent_trouble)}")
    if agent is None:
        return
    for name, text in agent.troubles.items():
        yield Problem(text=f"agent: {one_line(name)}: {one_line(text)}")
    for text in agent.findings:
        yield Problem(text=f"figures contradict: {one_line(text)}")
    if agent.frozen:
        yield Problem(text=f"agent frozen: {one_line(agent.frozen)}")


def load_text(sight: Sight) -> str | None:
    """Return how far a load is, in one line; None where none goes on."""
    load = sight.loading
    if load is None:
        return None
    done, eta = known(load.progress), known(load.eta_s)
    parts = [
        one_line(load.phase),
        "" if done is None else f"{done * 100:.0f} %",
        one_line(load.detail or ""),
        "" if eta is None else f"ready in ~{clock(eta)}",
    ]
    return "  ".join(part for part in parts if part)
