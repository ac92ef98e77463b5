"""The agent's own policy in a replay: the same decide() as the agent's, by its follower, and the mode that it would begin with.

Its throughput model is the model file, taken at its word: this is about what the rule does, not about what a bad calibration does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specctl.control import policy
from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.policy_costs import Flat
from specctl.control.policy_follow import Follower
from specctl.control.policy_types import Means, Price
from specctl.control.rates import Estimate, Source
from specctl.control.replay.compare import STEP_S, Setting
from specctl.control.replay.service import Service


class Believed:
    """A throughput model that knows a server's rates exactly."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.modes: Sequence[Mode] = tuple(service.rates)

    def tokens_s(self, mode: Mode, concurrency: float) -> Estimate | None:
        """Return the server's own rate, without doubt; None for a mode that it does not have."""
        if mode not in self._service.rates:
            return None
        rate = self._service.rate(mode, concurrency)
        return Estimate(value=rate, low=rate, high=rate, source=Source.CALIBRATED)


def maker(setting: Setting) -> Follower:
    """Make the chooser of ours: the policy with its default limits."""
    means = Means.RESTART if setting.outage.drains else Means.LIVE
    return Follower(
        rates=Believed(setting.service),
        costs=Flat(each=Price(means=means, seconds=setting.outage.seconds)),
        modes=tuple(setting.service.rates),
        objective=setting.objective,
        start=setting.start,
        step_s=STEP_S,
    )


def prior_choice(service: Service, objective: Objective, load: Mapping[float, float] | None = None) -> Mode:
    """Return the mode that the agent would begin with, `load` being seconds at each concurrency.

    Without a load, each octave of concurrency from one request to as many as can run is thought as likely as any other.
    """
    modes = tuple(service.rates)
    octaves = {float(2**power): 1.0 for power in range(service.max_running.bit_length())}
    return policy.choose(Believed(service), modes, objective, load or octaves) or modes[0]
