"""A made-up fleet for the dashboard's tests and its benchmark: sights, pasts, events, answers; the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from specctl.control.sample.gpu import Throttle
from specctl.control.sight import (
    AgentSight,
    Decided,
    GpuSight,
    LastAct,
    Loading,
    Sight,
    Source,
    State,
    Told,
)
from specctl.control.sight_events import Event, Kind
from specctl.control.sight_past import Past
from specctl.errors import ConnectError, SpecctlError
from specctl.ops.sights import Rows
from tests import sights

NOW_S = 1_764_511_331.0
GB = 1_000_000_000
CHAIN, TREE = sights.CHAIN, sights.TREE
told, count = sights.amount, sights.whole


def gpu(index: int, **fields: object) -> GpuSight:
    whole: dict[str, object] = {
        "model": "RTX PRO 6000",
        "memory_used_bytes": 78 * GB,
        "memory_total_bytes": 96 * GB,
        "power_w": 212.0 + 3 * index,
        "power_limit_w": 600.0,
        "busy_ratio": 0.9 + 0.01 * index,
        "temperature_c": 61.0 + index,
        "sm_clock_hz": 2_400_000_000,
        "sm_clock_max_hz": 2_600_000_000,
        "throttles": (),
        "slowing": (),
        **fields,
    }
    return GpuSight(index=index, age_s=0.6, source=Source.AGENT, uuid=f"GPU-{index}", **whole)  # type: ignore[arg-type]  # as built above


def gpus(count_of: int = 8, **fields: object) -> tuple[GpuSight, ...]:
    return tuple(gpu(index, **fields) for index in range(count_of))


AGENT = AgentSight(
    conduct="act",
    version="0.1.0",
    decision=Decided(
        text="hold",
        rule="not-worth-it",
        reason="gain 1.2 of 9.6 needed",
        at="2025-11-30T13:14:00+00:00",
        for_s=15_480.0,
    ),
)


def ready(host: str, server: str = "k26", **fields: object) -> Sight:
    """Return a server that serves a tree, proven, watched by an agent."""
    whole: dict[str, object] = {
        "groups": ("k26",),
        "desired": TREE,
        "deployed": TREE,
        "live": TREE,
        "release": "7",
        "proven": True,
        "owned": ("algo", "tree_budget"),
        "ready": True,
        "running": count(3),
        "waiting": count(0),
        "tokens_per_s": told(318.2),
        "accept_length": told(2.31),
        "kv_ratio": told(0.12),
        "gpus": gpus(),
        "agent": AGENT,
        "last": LastAct(act="deploy", at="2025-11-30T09:02:11+00:00", age_s=19_680.0, who="ops@desk", result="done"),
        "age_s": 0.4,
        **fields,
    }
    return Sight(host=host, server=server, state=State.READY.value, **whole)  # type: ignore[arg-type]  # as built above


LOADING = ready(
    "ct201",
    desired=CHAIN,
    deployed=CHAIN,
    live=None,
    proven=None,
    ready=False,
    running=None,
    waiting=None,
    tokens_per_s=None,
    accept_length=None,
    kv_ratio=None,
    loading=Loading(phase="weights", elapsed_s=292.0, progress=0.63, detail="412 of 590 GB", eta_s=186.0),
)
LOADING = replace(LOADING, state=State.LOADING.value, gpus=gpus(power_w=140.0, busy_ratio=0.02))
PINNED = ready(
    "b300-1",
    desired=CHAIN,
    deployed=CHAIN,
    live=CHAIN,
    groups=("b300",),
    proven=False,
    running=count(21),
    waiting=count(4),
    tokens_per_s=told(1204.0),
    accept_length=told(3.52),
    kv_ratio=told(0.61),
    gpus=gpus(
        model="B300 SXM6", power_w=701.0, power_limit_w=1100.0, memory_total_bytes=288 * GB, memory_used_bytes=231 * GB
    ),
    agent=replace(AGENT, pinned="dflash by ops@desk (a demo)", pin_left_s=13_800.0),
)
AWAY = Sight(
    host="b300-2",
    server="k26",
    state=State.UNREACHABLE.value,
    groups=("b300",),
    desired=CHAIN,
    deployed=CHAIN,
    reason="connection timed out",
    hint="ssh b300-2 true",
    running=count(11, 128.0),
    waiting=count(0, 128.0),
    tokens_per_s=told(611.0, 128.0),
    age_s=128.0,
)
HOT = ready(
    "ct202",
    running=count(6),
    tokens_per_s=told(402.6),
    gpus=(
        *gpus(7),
        gpu(7, temperature_c=93.0, slowing=(Throttle.HW_THERMAL,), throttles=(Throttle.HW_THERMAL,), busy_ratio=0.99),
    ),
    drift=("the unit file is not that of release 7",),
)
BARE = ready(
    "lab-3",
    "bench",
    groups=(),
    agent=None,
    gpus=None,
    gpu_trouble="no NVIDIA driver",
    running=Told(value=0, age_s=1.1, source=Source.ENGINE),
    waiting=Told(value=0, age_s=1.1, source=Source.ENGINE),
    tokens_per_s=None,
    accept_length=None,
    kv_ratio=None,
    owned=(),
)
FLEET = (ready("ct200"), LOADING, HOT, PINNED, AWAY, BARE)


def wave(points: int, low: float, high: float, phase: float = 0.0) -> tuple[float | None, ...]:
    """Return a series that goes up and down between two figures, with some unrest, and a gap in it."""
    middle, swing = (low + high) / 2, (high - low) / 2
    bends = [
        math.sin(phase + place / 41) + 0.3 * math.sin(place / 3.7) + 0.2 * math.sin(place * 1.7)
        for place in range(points)
    ]
    values = [max(middle + swing * bend / 1.5, 0.0) for bend in bends]
    return tuple(None if 100 <= place < 106 else value for place, value in enumerate(values))


def until_now(series: tuple[float | None, ...], value: float | None, since: int) -> tuple[float | None, ...]:
    """Return a series whose end is that figure, or unknown for the last so many points."""
    return series[:-since] + (None,) * since if value is None else (*series[:-1], value)


def past_of(sight: Sight, points: int = 240) -> Past:
    """Return a past that ends with a sight's figures; of a host that is gone, and of a server that loads, the end is unknown."""
    if sight.age_s is None:
        return Past(period_s=1.0)
    away = sight.age_s > 60 or sight.loading is not None
    since = 128 if away else 1

    def line(told_now: Told[int] | Told[float] | None, usual: float, phase: float = 0.0) -> tuple[float | None, ...]:
        value = None if told_now is None or away else float(told_now.value)
        middle = usual if value is None else value
        return until_now(wave(points, 0.3 * middle, 1.6 * middle, phase), value, since)

    return Past(
        period_s=1.0,
        running=line(sight.running, 4.0),
        waiting=tuple(
            None if run is None else max(run - 1.3 * (sight.running.value if sight.running else 4), 0.0)
            for run in line(sight.running, 4.0)
        ),
        tokens_per_s=line(sight.tokens_per_s, 300.0),
        accept_length=line(sight.accept_length, 2.2, 1.0),
        kv_ratio=line(sight.kv_ratio, 0.2),
        gpu_power_w={
            each.index: wave(points, 0.4 * (each.power_w or 0), 1.3 * (each.power_w or 0), each.index)
            for each in sight.gpus or ()
        },
        gpu_busy_ratio={
            each.index: wave(points, 0.3 * (each.busy_ratio or 0), 1.05 * (each.busy_ratio or 0), each.index)
            for each in sight.gpus or ()
        },
    )


DECISION: Mapping[str, object] = {
    "at": "2025-11-30T13:14:00+00:00",
    "decision": "hold",
    "conduct": "act",
    "rule": "not-worth-it",
    "reason": "gain 1.2 of 9.6 needed",
    "inputs": {"concurrency": 2.6, "accept_length": 2.31, "tokens_s": 318.2, "gathered": 1.2},
    "otherwise": "about 7.7 streams for 40 min, or an idle window over 9 min",
}
RECORD: Mapping[str, object] = {
    "at": "2025-11-30T09:02:11+00:00",
    "act": "deploy",
    "release": "7",
    "algo": "ddtree",
    "result": "done",
    "durations_s": {"total": 494.0},
    "who": "ops@desk",
}
EVENTS = (
    Event(at=NOW_S - 15_480.0, host="ct200", server="k26", kind=Kind.DECISION, text="hold: gain 1.2 of 9.6 needed"),
    Event(at=NOW_S - 292.0, host="ct201", server="k26", kind=Kind.STATE, text="ready → loading"),
    Event(at=NOW_S - 290.0, host="ct201", server="k26", kind=Kind.ACT, text="deploy by ops@desk: started"),
    Event(
        at=NOW_S - 128.0,
        host="b300-2",
        server="k26",
        kind=Kind.STATE,
        text="ready → unreachable (connection timed out)",
    ),
    Event(at=NOW_S - 61.0, host="ct202", server="k26", kind=Kind.GPU, text="GPU 7 is slowed (hw_thermal)"),
)
LINES = tuple(
    {
        "line": f"[2025-11-30 14:0{minute}:{second:02d}] Decode batch, #running-req: 3, gen throughput (token/s): 318.{second:02d}"
    }
    for minute in range(2)
    for second in range(0, 60, 2)
)


@dataclass(slots=True)
class FakeFeed:
    """A feed that says what it is told to say; `asked` keeps what hosts were asked for."""

    shown: tuple[Sight, ...] = FLEET
    told_events: tuple[Event, ...] = EVENTS
    answers: Mapping[str, Rows] = field(
        default_factory=lambda: {"decisions": (DECISION,), "records": (RECORD,), "lines": LINES}
    )
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def sights(self) -> tuple[Sight, ...]:
        return self.shown

    def past(self, host: str, server: str) -> Past:
        found = [sight for sight in self.shown if (sight.host, sight.server) == (host, server)]
        return past_of(found[0]) if found else Past(period_s=1.0)

    def events(self) -> tuple[Event, ...]:
        return self.told_events

    def ask(self, host: str, server: str, what: str, limit: int) -> Rows:
        self.asked.append((host, server, what))
        state = {sight.host: sight.state for sight in self.shown}.get(host)
        if state == State.UNREACHABLE:
            raise self.refusal(host)
        return self.answers.get(what, ())[-limit:]

    @staticmethod
    def refusal(host: str) -> SpecctlError:
        return ConnectError("connection timed out", hint=f"ssh {host} true", host=host)


def many(number: int) -> Sequence[Sight]:
    """Return so many servers of all kinds, each with a host of its own."""
    kinds = (ready("x"), PINNED, ready("x"), HOT, BARE, LOADING, ready("x"), AWAY, ready("x"), ready("x"))
    return tuple(
        replace(
            kinds[place % len(kinds)],
            host=f"gpu{place:03d}",
            groups=(f"rack{place // 16:02d}",),
            tokens_per_s=None if kinds[place % len(kinds)].tokens_per_s is None else told(100.0 + 7.3 * (place % 37)),
        )
        for place in range(number)
    )
