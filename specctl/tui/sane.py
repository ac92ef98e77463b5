"""Figures that are no numbers become unknown: a host's answer may hold NaN or infinity, and nothing here shall draw one; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from specctl.control.sight import Sight
from specctl.tui.words import known


def sane(sight: Sight) -> Sight:
    """Return the sight without figures that are none, but for those that are asked for it when they are drawn (Told, GPUs)."""
    if all(value is None or math.isfinite(value) for value in _figures(sight)):
        return sight
    load, last, guard, agent = sight.loading, sight.last, sight.guard, sight.agent
    if agent is not None:
        decision = agent.decision and replace(agent.decision, for_s=known(agent.decision.for_s))
        agent = replace(agent, pin_left_s=known(agent.pin_left_s), decision=decision)
    return replace(
        sight,
        age_s=known(sight.age_s),
        loading=load
        and replace(load, elapsed_s=known(load.elapsed_s), progress=known(load.progress), eta_s=known(load.eta_s)),
        last=last and replace(last, age_s=known(last.age_s)),
        guard=guard
        and replace(guard, hard_left_s=known(guard.hard_left_s), confirm_left_s=known(guard.confirm_left_s)),
        agent=agent,
    )


def _figures(sight: Sight) -> Iterator[float | None]:
    yield sight.age_s
    if sight.loading is not None:
        yield from (sight.loading.elapsed_s, sight.loading.progress, sight.loading.eta_s)
    if sight.last is not None:
        yield sight.last.age_s
    if sight.guard is not None:
        yield from (sight.guard.hard_left_s, sight.guard.confirm_left_s)
    if sight.agent is not None:
        yield sight.agent.pin_left_s
        if sight.agent.decision is not None:
            yield sight.agent.decision.for_s
