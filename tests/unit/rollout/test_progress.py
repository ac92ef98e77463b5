"""How far a phase has come: which witness of growing weights is believed, and what is said without one."""

from __future__ import annotations

import pytest

from specctl.rollout import progress
from specctl.rollout.gate_types import Figures, Phase
from specctl.rollout.loadlog import Bar, LogScan
from specctl.rollout.observation import Observation, UnitState
from tests.unit.rollout.replay import spec_for

GB = 10**9
SPEC = spec_for(target_bytes=100 * GB, draft_bytes=10 * GB)


@pytest.mark.parametrize(
    ("base", "now", "detail"),
    [
        (Figures(gpu_bytes=GB, rss_bytes=GB), Figures(gpu_bytes=41 * GB, rss_bytes=91 * GB), "40 of 100 GB"),
        (Figures(rss_bytes=GB, read_bytes=0), Figures(rss_bytes=21 * GB, read_bytes=30 * GB), "30 of 100 GB"),
        (Figures(rss_bytes=GB, read_bytes=0), Figures(rss_bytes=21 * GB, read_bytes=0), "20 of 100 GB"),
        (Figures(gpu_bytes=GB, rss_bytes=GB), Figures(gpu_bytes=GB, rss_bytes=21 * GB), "20 of 100 GB"),
        (Figures(rss_bytes=GB), Figures(), None),
        (Figures(rss_bytes=2 * GB), Figures(rss_bytes=GB), None),
    ],
    ids=["GPU memory first", "reads over memory", "warm cache", "not yet on the GPU", "nothing known", "shrunk"],
)
def test_growth_of_the_best_witness(base: Figures, now: Figures, detail: str | None) -> None:
    """GPU memory is believed where it grows; else the larger of reads and resident memory, never their sum."""
    assert progress.estimate(SPEC, Phase.TARGET_WEIGHTS, LogScan(), base=base, now=now).detail == detail


def test_the_draft_is_measured_against_its_own_size() -> None:
    """The draft's phase counts against the draft's bytes."""
    found = progress.estimate(
        SPEC, Phase.DRAFT_WEIGHTS, LogScan(), base=Figures(gpu_bytes=0), now=Figures(gpu_bytes=5 * GB)
    )
    assert (found.ratio, found.detail) == (0.5, "5 of 10 GB")


def test_other_phases_have_no_bytes() -> None:
    """Growth while the KV pool is made says nothing about weights."""
    found = progress.estimate(SPEC, Phase.KV_POOL, LogScan(), base=Figures(gpu_bytes=0), now=Figures(gpu_bytes=50 * GB))
    assert found == progress.Estimate()


def test_ranks_are_counted_where_nothing_better_is_known() -> None:
    """Without sizes, the ranks that have loaded are told."""
    scan = LogScan(begun={"TP0": 1, "TP1": 1}, ended={"TP1": 1})
    found = progress.estimate(spec_for(), Phase.TARGET_WEIGHTS, scan, base=Figures(), now=Figures())
    assert found == progress.Estimate(detail="1 of 2 ranks")


def test_a_bar_without_a_total_is_not_believed() -> None:
    """A bar of nothing is no progress."""
    scan = LogScan(bar=Bar(done=3, total=0, wording="{done} of {total} shards"))
    assert progress.estimate(spec_for(), Phase.TARGET_WEIGHTS, scan, base=Figures(), now=Figures()).ratio is None


def test_a_missing_figure_keeps_its_last_value() -> None:
    """A look that lacks a figure does not forget it, and a baseline is filled by the first value seen."""
    seen = Observation(at_s=1.0, unit=UnitState(), rss_bytes=5)
    now = progress.figures(seen, Figures(rss_bytes=4, gpu_bytes=3))
    assert now == Figures(rss_bytes=5, gpu_bytes=3)
    assert progress.filled(Figures(rss_bytes=1), now) == Figures(rss_bytes=1, gpu_bytes=3)
