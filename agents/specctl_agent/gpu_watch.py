"""What of the GPUs forbids a decision: a slow GPU is not a slow algo. Remembers what one look alone cannot show."""

from __future__ import annotations

from dataclasses import dataclass, field

from specctl.control.sample.gpu import NvmlSample, Throttle
from specctl_agent.here import Graphics

# An XID says that something broke, and what it broke may show only later in the figures; ten minutes are a profile's slice.
XID_FOR_S = 600.0
# `hw_slowdown` may show for one look while a GPU changes its performance state (nvml.h).
LOOKS = 2


@dataclass(slots=True)
class GpuWatch:
    """Folds NVML's samples, one a tick."""

    _at_s: float | None = None
    _slow: dict[tuple[str, Throttle], int] = field(default_factory=dict)
    _index: dict[str, int] = field(default_factory=dict)
    _models: dict[int, str | None] = field(default_factory=dict)
    _driver: str | None = None
    _xids: dict[tuple[str | None, int], float] = field(default_factory=dict)
    _serial: int = 0
    _lost: dict[int, str] = field(default_factory=dict)

    def observe(self, sample: NvmlSample | None, now_s: float) -> None:
        """Take in the newest sample; the same one may come again."""
        if sample is None or sample.at_s == self._at_s:
            return
        self._at_s = sample.at_s
        for event in sample.xids_after(self._serial):
            self._serial = event.serial
            self._xids[event.uuid, event.xid] = event.at_s
        self._xids = {key: at_s for key, at_s in self._xids.items() if now_s - at_s <= XID_FOR_S}
        self._index |= {fact.uuid: fact.index for fact in sample.facts}
        self._models |= {fact.index: fact.name for fact in sample.facts}
        self._driver = self._driver if sample.driver is None else sample.driver.driver
        self._lost = {lost.index: lost.trouble.problem.value for lost in sample.lost}
        seen = {(gpu.uuid, reason) for gpu in sample.gpus for reason in gpu.slowing or ()}
        self._slow = {key: self._slow.get(key, 0) + 1 for key in seen}

    def graphics(self, indices: tuple[int, ...]) -> Graphics:
        """Return what these GPUs are, all of the host's where none is named; nothing is known of one that never answered."""
        wanted = indices or tuple(self._models)
        models = [self._models.get(index) for index in wanted]
        known = sorted({model for model in models if model is not None})
        whole = bool(models) and None not in models
        return Graphics(
            model=", ".join(known) if whole else None, count=len(wanted) if whole else None, driver=self._driver
        )

    def troubles(self, indices: tuple[int, ...]) -> tuple[str, ...]:
        """Return what is wrong with these GPUs, in words; no indices: with any of the host."""

        def ours(index: int | None) -> bool:
            return not indices or index is None or index in indices

        slow = [
            f"GPU {self._index.get(uuid, '?')} is slowed ({reason.value})"
            for (uuid, reason), looks in sorted(self._slow.items())
            if looks >= LOOKS and ours(self._index.get(uuid))
        ]
        xids = [
            f"GPU {self._index.get(uuid or '', '?')} reported XID {xid}"
            for (uuid, xid) in sorted(self._xids, key=str)
            if ours(self._index.get(uuid or ""))
        ]
        lost = [f"GPU {index} gives no sample ({why})" for index, why in sorted(self._lost.items()) if ours(index)]
        return (*slow, *xids, *lost)
