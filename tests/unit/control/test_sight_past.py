"""The newest past in rings: as long as promised, in order, with gaps where nobody knew."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from specctl.control.sight_past import Past, Ring, Rings
from tests import sights

VALUES = st.lists(st.none() | st.integers(min_value=0, max_value=10_000).map(float), max_size=40)


@given(VALUES, st.integers(min_value=1, max_value=12), st.integers(min_value=0, max_value=20))
def test_a_ring_keeps_the_newest(values: list[float | None], points: int, gaps: int) -> None:
    """A ring holds the newest points in their order, those that it began without among them as gaps."""
    ring = Ring(points, gaps)
    for value in values:
        ring.push(value)
    assert list(ring.line()) == [*[None] * min(gaps, points), *values][-points:]


def test_lines_are_of_one_length() -> None:
    """A figure that comes later has gaps where it was not, and a stale or unknown one is a gap."""
    rings = Rings(points=5)
    rings.push(None)
    rings.push(replace(sights.READY, gpus=None))
    rings.push(sights.READY)
    rings.push(replace(sights.READY, running=sights.whole(9, 60.0), tokens_per_s=None))
    past = rings.past()
    assert past.running == (None, 3.0, 3.0, None)
    assert past.tokens_per_s[-1] is None
    assert past.gpu_power_w[7] == (None, None, 212.0, 212.0)
    assert len(past.gpu_busy_ratio) == 8


def test_what_was_kept_elsewhere_comes_first() -> None:
    """An agent's history is the past before the first point; one of another period, or one that comes later, is not taken."""
    rings = Rings(points=4)
    rings.begin(Past(period_s=1.0, running=(1.0, 2.0, 3.0), waiting=(0.0,)))
    rings.push(sights.READY)
    rings.begin(Past(period_s=1.0, running=(9.0,)))
    past = rings.past()
    assert (past.running, past.waiting) == ((1.0, 2.0, 3.0, 3.0), (None, None, 0.0, 0.0))
    other = Rings(points=4)
    other.begin(Past(period_s=5.0, running=(1.0,)))
    assert other.past().running == ()


def test_long_lines_are_cut_to_the_newest() -> None:
    """Of more points than a ring holds, the newest stay."""
    rings = Rings(points=2)
    rings.begin(Past(period_s=1.0, running=(1.0, 2.0, 3.0)))
    assert rings.past().running == (2.0, 3.0)
