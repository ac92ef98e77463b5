"""TEMPORARY accumulated regret, until policy.py."""

from __future__ import annotations

from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.replay.compare import Setting
from specctl.control.replay.service import Service
from specctl.control.replay.worth import Worth


class _Regret:
    def __init__(self, setting: Setting) -> None:
        self.worth = Worth(setting.service, setting.objective)
        self.price = setting.outage.seconds
        self.gain = [0.0] * len(self.worth.modes)

    def choose(self, now_s: float, level: float, mode: Mode) -> Mode | None:
        row = self.worth.rows[level]
        own = self.worth.of(mode, level)
        top = 0.0
        for i, each in enumerate(row):
            self.gain[i] = max(0.0, self.gain[i] + each - own)
            top = max(top, self.gain[i])
        if top > self.price * max(own, 1e-9) and top > 0:
            best = self.worth.modes[self.gain.index(top)]
            self.gain = [0.0] * len(self.gain)
            return best
        return None


def maker(setting: Setting) -> _Regret:
    """Temporary."""
    return _Regret(setting)


def prior_choice(service: Service, objective: Objective) -> Mode:
    """Temporary."""
    best = {c: max(service.rate(m, c) for m in service.rates) for c in range(1, service.max_running + 1)}
    return max(service.rates, key=lambda m: min(service.rate(m, c) / best[c] for c in best))
