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


class _Best(dict[float, int | None]):
    """The place of the best mode by level, likewise."""

    def __init__(self, rows: _Rows) -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, level: float) -> int | None:
        row = self._rows[level]
        self[level] = row.index(max(row)) if max(row) > 0 else None
        return self[level]


class Worth:
    """For each level of concurrency, `rows` has the worth per second of each of `modes`, in their order.

    `best` has the place of the best one, of equals the first; None where nothing is worth anything.
    """

    def __init__(self, service: Service, objective: Objective) -> None:
        self.modes: tuple[Mode, ...] = tuple(service.rates)
        self.rows = _Rows(service, objective)
        self._places = {mode: place for place, mode in enumerate(self.modes)}
        self.best = _Best(self.rows)

    def of(self, mode: Mode, level: float) -> float:
        """Return the worth per second of a mode at a level."""
        return self.rows[level][self._places[mode]]
