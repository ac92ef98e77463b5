"""What each mode of a replayed server is worth at each level of concurrency, by the policy's own objective."""

from __future__ import annotations

from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.replay.service import Service


class _Rows(dict[float, tuple[float, ...]]):
    """Rows by level, each worked out when it is first asked for: with queueing nobody knows which levels come."""

    def __init__(self, service: Service, objective: Objective) -> None:
        super().__init__()
        self._service = service
        self._objective = objective
        self._capacities = {mode: service.capacity(mode) for mode in service.rates}

    def __missing__(self, level: float) -> tuple[float, ...]:
        service, objective = self._service, self._objective
        row = tuple(
            objective.worth(service.rate(mode, level), level, capacity=capacity)
            for mode, capacity in self._capacities.items()
        )
        self[level] = row
        return row


class Worth:
    """For each level of concurrency, the worth per second of each of `modes`, in their order."""

    def __init__(self, service: Service, objective: Objective) -> None:
        self.modes: tuple[Mode, ...] = tuple(service.rates)
        self.rows = _Rows(service, objective)
        self._places = {mode: place for place, mode in enumerate(self.modes)}
        self._best: dict[float, int | None] = {}

    def of(self, mode: Mode, level: float) -> float:
        """Return the worth per second of a mode at a level."""
        return self.rows[level][self._places[mode]]

    def best(self, level: float) -> int | None:
        """Return the place of the best mode, of equals the first; None where nothing is worth anything."""
        if level not in self._best:
            row = self.rows[level]
            self._best[level] = row.index(max(row)) if max(row) > 0 else None
        return self._best[level]
