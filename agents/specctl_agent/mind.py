"""What is decided about one server: the policy's view of what is known, its state, and each change of decision."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from specctl.control import policy, policy_state, policy_table, profile
from specctl.control.limits import Limits
from specctl.control.mode import Mode
from specctl.control.objective import Metric, Objective
from specctl.control.policy_costs import HostCosts
from specctl.control.policy_state import State
from specctl.control.policy_types import Act, Decision, Hold, Means, Now, Pin, SetKnobs, SetTable, SwitchAlgo, View
from specctl.control.profile import ConcurrencyProfile
from specctl.control.rates import Rates
from specctl.fleet import types as fleet
from specctl.fleet.types import AgentSettings
from specctl_agent.orders import Standing
from specctl_agent.pictures import Decided
from specctl_agent.watch import Watch
from specctl_agent.ways import Ways

# What turned a change away (a router without another worker, a request that does not end) may be over by then.
AGAIN_S = 600.0


@dataclass(frozen=True, slots=True)
class WeekHours:
    """The policy's question about the past, answered by the profile."""

    profile: ConcurrencyProfile

    def seconds(self, hour_of_week: int) -> Mapping[float, float] | None:
        """Return seconds at each concurrency in that hour of past weeks; None where it was never watched."""
        return profile.hour_seconds(self.profile, hour_of_week)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is known of a server beside its engine's figures: who holds it, what its GPUs do, what can be done."""

    ways: Ways | None
    rates: Rates | None
    gpu_troubles: tuple[str, ...] = ()
    lease_known: bool = True
    lease_holder: str | None = None


@dataclass(slots=True)
class Mind:
    """The policy of one server."""

    settings: AgentSettings
    state: State = field(default_factory=State.fresh)
    decision: Decision | SetTable | None = None
    decided: Decided | None = None
    view: View | None = None
    _wanted: policy_table.Wanted = field(default_factory=policy_table.Wanted)
    _resumed: int | None = None
    _turned_away: dict[Means, tuple[str, float]] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        """Return the policy's bounds, with those that the inventory gives."""
        return Limits(switches_a_day=self.settings.switches_a_day)

    def think(self, watch: Watch, beside: Beside, standing: Standing, now: Now) -> bool:
        """Decide anew; returns whether that is another decision than before."""
        if self._resumed is not None and standing.resumed > self._resumed:
            self.state = policy.resumed(self.state)
        self._resumed = standing.resumed
        view = view_of(watch, beside, standing, self.settings, now)
        self.view = view = replace(view, refused={**view.refused, **self._shut(standing, now)})
        self.state = policy.advance(self.state, view, self.limits, now)
        before, self.decision = self.decision, self._decide(view, watch, now)
        if before is not None and self.decided is not None and _key(before) == _key(self.decision):
            self.decided = replace(self.decided, reason=self.decision.why.reason)
            return False
        self.decided = Decided(
            text=text_of(self.decision),
            rule=self.decision.why.rule,
            reason=self.decision.why.reason,
            since_s=now.mono_s,
            at=dt.datetime.fromtimestamp(now.wall_s, dt.UTC).isoformat(timespec="seconds"),
            target=None if isinstance(self.decision, Hold | SetTable) else self.decision.mode,
        )
        return True

    def _decide(self, view: View, watch: Watch, now: Now) -> Decision | SetTable:
        followed = policy_table.Followed(watch.followed, watch.table)
        if followed.any:
            view = replace(view, mode=watch.expected)  # the row of now is nothing that anybody told the engine
        if watch.info is not None:
            self._wanted.most = watch.info.max_running or policy_table.MOST
        wanted = self._wanted if self.settings.table else None
        return policy_table.decide(view, self.state, self.limits, now, followed=followed, wanted=wanted)

    def entry(self, server: str, conduct: fleet.AgentMode) -> dict[str, object]:
        """Return the decision as its journal keeps it."""
        assert self.decision is not None, "something was decided"
        assert self.decided is not None, "something was decided"
        view, why = self.view, self.decision.why
        seen: dict[str, object] = {}
        if view is not None:
            seen = {
                "running": None if view.mode is None else str(view.mode),
                "concurrency": view.concurrency,
                "tokens_s": view.tokens_s,
                "input_age_s": view.age_s,
            }
        return {
            "at": self.decided.at,
            "server": server,
            "decision": self.decided.text,
            "conduct": conduct.value,
            "rule": why.rule,
            "reason": why.reason,
            "inputs": {**seen, **why.inputs},
            "otherwise": why.otherwise,
        }

    def arrived(self, old: Mode, act: Act, now: Now, away_s: float) -> None:
        """Note that an act is done."""
        self.state = policy.arrived(self.state, old, act, self.limits, now, away_s=away_s)

    def failed(self, act: Act, reason: str, now: Now) -> None:
        """Note that an act was tried and did not end as it was decided."""
        self.state = policy.failed(self.state, act, reason, self.limits, now)

    def refused(self, means: Means, reason: str, now: Now) -> None:
        """Note that an act was turned away before anything was changed: its means are not tried again for a while."""
        self._turned_away[means] = (reason, now.mono_s + AGAIN_S)

    @property
    def gain_ratio(self) -> float | None:
        """Return by how much the best other mode is thought to be above the running one now; None where that is not known."""
        inputs = {} if self.decision is None else self.decision.why.inputs
        own, other = inputs.get("worth_now"), inputs.get("worth_now_other")
        if not isinstance(own, float) or not isinstance(other, float) or own <= 0:
            return None
        return other / own - 1.0

    def _shut(self, standing: Standing, now: Now) -> dict[Means, str]:
        """Return the means that are shut for a while, and why: turned away lately, or sooner than the inventory's least dwell."""
        self._turned_away = {means: one for means, one in self._turned_away.items() if one[1] > now.mono_s}
        shut = {means: reason for means, (reason, _) in self._turned_away.items()}
        least_s = self.settings.min_dwell_s
        if standing.pin is None and not self.settings.table and self.state.dwell_s < least_s:
            early = f"{self.state.dwell_s:.0f} s of min_dwell ({least_s:.0f} s) are over"
            shut = {**dict.fromkeys(Means, early), **shut}
        return shut

    def plain(self) -> dict[str, object]:
        """Return the policy's state as JSON's kinds."""
        return policy_state.to_plain(self.state)

    def take_up(self, plain: object) -> str | None:
        """Take up a state of before; returns why it cannot be, or None."""
        try:
            self.state = policy_state.from_plain(plain)
        except ValueError as error:
            return str(error)
        return None


def text_of(decision: Decision | SetTable) -> str:
    """Say a decision in two words."""
    match decision:
        case Hold():
            return "hold"
        case SetTable(table=table):
            return "end the table" if table is None else f"set table {table}"
        case SetKnobs(mode=mode):
            return f"set {mode}"
        case SwitchAlgo(mode=mode):
            return f"switch {mode}"
        case _:
            assert_never(decision)


def _key(decision: Decision | SetTable) -> tuple[str, str]:
    return text_of(decision), decision.why.rule


def objective_of(settings: AgentSettings) -> Objective:
    """Return the policy's objective as the inventory names it."""
    metric = Metric.LATENCY if settings.objective is fleet.Objective.LATENCY else Metric.THROUGHPUT
    return Objective(metric=metric, floor=settings.floor_tokens_per_s)


def view_of(watch: Watch, beside: Beside, standing: Standing, settings: AgentSettings, now: Now) -> View:
    """Put together what the policy looks at."""
    ways, mode, sample = beside.ways, watch.mode, watch.sample
    modes = () if ways is None else ways.modes
    if mode is not None and mode not in modes:
        modes = (mode, *modes)
    pin = standing.pin
    info = watch.info
    return View(
        mode=mode,
        concurrency=None if sample is None or sample.concurrency is None else float(sample.concurrency),
        rates=beside.rates,
        costs=HostCosts() if ways is None else ways.costs,
        modes=modes,
        objective=objective_of(settings),
        history=WeekHours(watch.profile),
        age_s=watch.look_age_s,
        tokens_s=watch.tokens_s,
        findings=watch.blocking,
        gpu_troubles=beside.gpu_troubles,
        lease_known=beside.lease_known,
        lease_holder=beside.lease_holder,
        # An engine that does not tell of it does not do it; one that tells nothing at all may do anything.
        adapts_itself=None if info is None else info.adaptive is True,
        refused={} if ways is None else ways.refused,
        pin=None if pin is None else Pin(mode=pin.mode, left_s=pin.until.left_s(now), reason=pin.reason, who=pin.who),
        hold=standing.held,
    )


def means_of(act: Act) -> Means:
    """Return how an act is carried out."""
    return act.price.means
