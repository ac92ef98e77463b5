"""What an engine's file says of its routes and metrics, as data; control/sample/engine_metrics.py reads pages by it."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Over(enum.Enum):
    """How series of one family make one number, after ranks that repeat each other were taken as one."""

    SUM = "sum"
    MAX = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One figure: a field of EngineCounters, the family that has it, and a label (name, value) that its series must bear.

    `zero_is_none`: a zero of it says nothing (an accept length of 0 is an engine without speculation, not a length).
    """

    field: str
    family: str
    where: tuple[str, str] | None = None
    over: Over = Over.SUM
    zero_is_none: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Routes that cost little, and the wanted families.

    `loads`: asked each second, must not wait for the scheduler. `rank_labels`: labels of ranks that repeat one number. Of a family
    with the label `priority` the total is the series where it is empty.
    """

    loads: str
    ready: str
    page: str
    info: str
    rank_labels: tuple[str, ...]
    wanted: tuple[Wanted, ...]
