"""What a change of mode takes: one price for all, or a host's own ways, live where the engine can and else by restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.control.policy_types import Means, Price

LIVE_S = 0.1
"""What a change over HTTP takes: a request, and the step that is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """Every change has the same price, as in a replay."""

    each: Price

    def price(self, old: Mode, new: Mode) -> Price | None:  # noqa: ARG002  # of Costs
        """Return the one price."""
        return self.each


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCosts:
    """A host's ways.

    `live_knobs`: by algo, the knobs that the engine takes over HTTP. `live_algos`: it takes another algo over HTTP too.
    `drain_s`: what draining takes, from this host's own past. `load_s`: a load of each algo, from its own past; an algo that is not
    there was never loaded here, and `default_load_s` stands in, None: unknown. `weight`: see Price.
    """

    live_knobs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    live_algos: bool = False
    live_s: float = LIVE_S
    drain_s: float = 0.0
    load_s: Mapping[str, float] = field(default_factory=dict)
    default_load_s: float | None = None
    weight: float = 1.0

    def price(self, old: Mode, new: Mode) -> Price | None:
        """Return the cheapest way there; None where no load of that algo is known."""
        if self._is_live(old, new):
            return Price(means=Means.LIVE, seconds=self.live_s)
        load_s = self.load_s.get(new.algo, self.default_load_s)
        if load_s is None:
            return None
        return Price(means=Means.RESTART, seconds=self.drain_s + load_s, weight=self.weight)

    def _is_live(self, old: Mode, new: Mode) -> bool:
        if old.algo != new.algo:
            return self.live_algos
        changed = {name for name, value in new.knobs if dict(old.knobs).get(name) != value}
        return changed <= self.live_knobs.get(new.algo, frozenset()) and {*dict(old.knobs)} == {*dict(new.knobs)}
