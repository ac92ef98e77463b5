"""What forbids an act whatever it would bring: each check gives the grounds of a hold, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from specctl.control.limits import Limits
from specctl.control.policy_state import State
from specctl.control.policy_time import spent
from specctl.control.policy_types import Grounds, Means, Price, View

Check = Callable[[View, Limits], Grounds | None]


def forbidden(view: View, limits: Limits) -> Grounds | None:
    """Return the first reason for which nothing may be done now, a pin included; None: an act is allowed."""
    return next((found for check in CHECKS if (found := check(view, limits)) is not None), None)


def _held(view: View, _limits: Limits) -> Grounds | None:
    if view.hold is None:
        return None
    return Grounds(rule="held", reason=f"held: {view.hold}", otherwise="specctl agent resume")


def _unknown_mode(view: View, _limits: Limits) -> Grounds | None:
    if view.mode is None:
        return _missing("what runs is not proven", "a live proof of the algo")
    if view.mode not in view.modes:
        return _missing(f"{view.mode} is not among the modes that this server could be in", "a release that has it")
    return None


def _missing_load(view: View, limits: Limits) -> Grounds | None:
    if view.concurrency is None:
        return _missing("the number of requests is not known", "a live answer of the engine")
    if view.age_s is None:
        return _missing("the age of the engine's answer is not known", "a live answer of the engine")
    if view.age_s > limits.stale_s:
        return Grounds(
            rule="input-stale",
            reason=f"the newest look at the engine is {view.age_s:.0f} s old",
            inputs={"age_s": view.age_s, "stale_s": limits.stale_s},
            otherwise=f"an answer within {limits.stale_s:g} s",
        )
    return None


def _contradicted(view: View, _limits: Limits) -> Grounds | None:
    if not view.findings:
        return None
    return Grounds(
        rule="input-contradicts",
        reason=f"the metric audit fails: {'; '.join(view.findings)}",
        inputs={"findings": len(view.findings)},
        otherwise="metrics that agree with each other",
    )


def _leased(view: View, _limits: Limits) -> Grounds | None:
    if not view.lease_known:
        return _missing("whether somebody deploys is not known", "a lease that can be read")
    if view.lease_holder is None:
        return None
    return Grounds(
        rule="lease-held",
        reason=f"{view.lease_holder} holds the lease on this server",
        inputs={"holder": view.lease_holder},
        otherwise="the end of that deploy",
    )


def _gpu_trouble(view: View, _limits: Limits) -> Grounds | None:
    if not view.gpu_troubles:
        return None
    return Grounds(
        rule="gpu-trouble",
        reason=f"a slow GPU is not a slow algo: {'; '.join(view.gpu_troubles)}",
        inputs={"troubles": len(view.gpu_troubles)},
        otherwise="GPUs without throttling or XIDs",
    )


def _adapting(view: View, _limits: Limits) -> Grounds | None:
    if view.adapts_itself is None:
        return _missing("whether the engine adapts its speculation itself is not known", "an answer of /server_info")
    if not view.adapts_itself:
        return None
    return Grounds(
        rule="engine-adapts",
        reason="the engine adapts its speculation itself",
        otherwise="a release without --speculative-adaptive",
    )


def _missing(reason: str, otherwise: str) -> Grounds:
    return Grounds(rule="input-missing", reason=reason, otherwise=otherwise)


CHECKS: tuple[Check, ...] = (_held, _unknown_mode, _missing_load, _contradicted, _leased, _gpu_trouble, _adapting)


def unaffordable(view: View, state: State, limits: Limits, price: Price) -> tuple[Grounds, float | None] | None:
    """Return why a change of that price may not be made now, and seconds until it may (None: not by waiting alone)."""
    return next(iter(_bounds(view, state, limits, price)), None)


def _bounds(view: View, state: State, limits: Limits, price: Price) -> Iterator[tuple[Grounds, float | None]]:
    refusal = view.refused.get(price.means)
    if refusal is not None:
        yield Grounds(rule="means-refused", reason=f"{_words(price.means)}: {refusal}", otherwise="another way"), None
    dwell_s = limits.dwell_prices * price.seconds
    if state.dwell_s < dwell_s:
        left_s = dwell_s - state.dwell_s
        yield (
            Grounds(
                rule="dwell",
                reason=f"{state.mode} runs for {state.dwell_s:.0f} s; a change of {price.seconds:g} s waits {dwell_s:.0f} s",
                inputs={"dwell_s": state.dwell_s, "least_s": dwell_s},
                otherwise=f"{left_s:.0f} s more in this mode",
            ),
            left_s,
        )
    count, away_s = spent(state)
    if count >= limits.switches_a_day or away_s + price.seconds > limits.away_a_day_s:
        yield (
            Grounds(
                rule="switches-a-day",
                reason=f"{count} changes took {away_s:.0f} s of the last 24 h",
                inputs={"switches": count, "away_s": away_s, "limit_s": limits.away_a_day_s},
                otherwise="older changes, or a larger limit",
            ),
            None,
        )


def _words(means: Means) -> str:
    match means:
        case Means.LIVE:
            return "a live change is refused"
        case Means.RESTART:
            return "a restart is refused"
    assert_never(means)
