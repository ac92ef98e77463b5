"""Estimate how far a phase has come: a bar of the log where there is one, else the growth of memory against the weights' size.

Pure; called by rollout/gate.py. An estimate is never over 1 and never claims more than it knows: None is "not known".
"""

from __future__ import annotations

from dataclasses import dataclass

from specctl.rollout.gate_types import Figures, GateSpec, Phase
from specctl.rollout.loadlog import LogScan
from specctl.rollout.observation import Observation

_SEEN_BYTES = 64 << 20  # growth under this says nothing: interpreters and allocators move as much
_TOLD_BYTES = 4 * _SEEN_BYTES  # weights smaller than this cannot be told from other growth
_WEIGHTS = (Phase.TARGET_WEIGHTS, Phase.DRAFT_WEIGHTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How far a phase has come: 0 to 1, and in words; None: not known."""

    ratio: float | None = None
    detail: str | None = None


def figures(seen: Observation, last: Figures) -> Figures:
    """Return the newest value of each figure that the estimate rests on."""
    return Figures(
        rss_bytes=last.rss_bytes if seen.rss_bytes is None else seen.rss_bytes,
        read_bytes=last.read_bytes if seen.read_bytes is None else seen.read_bytes,
        gpu_bytes=last.gpu_bytes if seen.gpu_bytes is None else seen.gpu_bytes,
    )


def filled(base: Figures, now: Figures) -> Figures:
    """Return the baseline, with a figure that it lacks taken from what is known now."""
    return Figures(
        rss_bytes=now.rss_bytes if base.rss_bytes is None else base.rss_bytes,
        read_bytes=now.read_bytes if base.read_bytes is None else base.read_bytes,
        gpu_bytes=now.gpu_bytes if base.gpu_bytes is None else base.gpu_bytes,
    )


def phase_of(spec: GateSpec, scan: LogScan, seen: Observation, *, base: Figures, now: Figures, own: bool) -> Phase:
    """Return the phase: the log's word, pushed on by what needs no log.

    Our own port answers only after the last graph was captured; memory that grows by a share of the weights while the log says
    nothing at all (a lost journal) is weights being loaded.
    """
    phase = Phase.WARMUP if own and scan.phase.place < Phase.WARMUP.place else scan.phase
    blind = phase is Phase.START and (seen.journal_lost or not scan.signs)
    if not blind or spec.target_bytes is None or spec.target_bytes < _TOLD_BYTES:
        return phase
    grown = _grown(base, now)
    return Phase.TARGET_WEIGHTS if grown is not None and grown >= max(spec.target_bytes // 50, _SEEN_BYTES) else phase


def estimate(spec: GateSpec, phase: Phase, scan: LogScan, *, base: Figures, now: Figures) -> Estimate:
    """Return how far this phase has come."""
    bar = scan.bar if phase in (*_WEIGHTS, Phase.GRAPHS) else None
    grown = _by_growth(spec, phase, base, now)
    if bar is not None and bar.total > 0 and (bar.done > 0 or grown.ratio is None):
        name = f"{scan.capture}, " if phase is Phase.GRAPHS and scan.capture else ""
        return Estimate(ratio=bar.ratio, detail=f"{name}{bar}")
    if grown.detail is not None:
        return grown
    return Estimate(detail=_ranks(scan) if phase in _WEIGHTS else scan.capture)


def _by_growth(spec: GateSpec, phase: Phase, base: Figures, now: Figures) -> Estimate:
    expected = {Phase.TARGET_WEIGHTS: spec.target_bytes, Phase.DRAFT_WEIGHTS: spec.draft_bytes}.get(phase)
    grown = _grown(base, now)
    if expected is None or expected < _TOLD_BYTES or grown is None or grown < _SEEN_BYTES:
        return Estimate()
    shown = min(grown, expected)
    unit, size = ("GB", 1e9) if expected >= 1e9 else ("MB", 1e6)
    return Estimate(ratio=shown / expected, detail=f"{shown / size:.0f} of {expected / size:.0f} {unit}")


def _grown(base: Figures, now: Figures) -> int | None:
    """Return how many bytes of weights seem to have arrived since `base`.

    GPU memory is the best witness. Without GPUs: what came from disk, or resident memory where a warm cache made reads
    unnecessary (mapped files count as resident, so the two overlap and are never added).
    """
    gpu, read, rss = (
        _difference(base.gpu_bytes, now.gpu_bytes),
        _difference(base.read_bytes, now.read_bytes),
        _difference(base.rss_bytes, now.rss_bytes),
    )
    known = [value for value in ((gpu,) if gpu else (read, rss)) if value is not None]
    return max(known) if known else gpu


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)


def _ranks(scan: LogScan) -> str | None:
    """Say how many ranks have loaded, where there are several."""
    begun = {rank: count for rank, count in scan.begun.items() if count == max(scan.begun.values(), default=0)}
    if len(scan.begun) < 2:
        return None
    done = sum(1 for rank, count in begun.items() if scan.ended.get(rank, 0) >= count)
    return f"{done} of {len(scan.begun)} ranks"
