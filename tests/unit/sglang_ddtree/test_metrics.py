"""Figures of the trees: sums of one setting of the knobs at a time, and a line that says what they mean."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_ddtree.metrics import Meter, Pass, Sums, line

CHAIN = Pass(requests=2, budget=7, topk=1, nodes=8, build_s=0.002)
TREE = Pass(requests=1, budget=16, topk=4, nodes=17, build_s=0.004)


def metered(every: int) -> tuple[Meter, list[tuple[Pass, Sums]]]:
    """Return a meter and where it publishes."""
    published: list[tuple[Pass, Sums]] = []
    return Meter(every, lambda begun, sums: published.append((begun, sums))), published


def test_line_is_that_of_the_lab_with_more_behind() -> None:
    """The line has the fields that specctl's profiles read, then top-k, passes and the time to build."""
    window = Sums(steps=3, verifies=6, nodes=48, accepted=9, committed=14, build_s=0.006)
    assert line(CHAIN, window) == (
        "DDTREE metrics: bs=2 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=1.50 avg_commit_len=2.33 "
        "avg_accepted_depth=1.50 topk=1 verify_steps=3 build_ms=2.000"
    )


def test_line_comes_every_so_many_passes_of_one_setting(caplog: pytest.LogCaptureFixture) -> None:
    """A change of the knobs begins a window of its own, and what was begun before goes on when the knobs come back."""
    meter, published = metered(2)
    with caplog.at_level(logging.INFO):
        meter.settle(CHAIN, [1, 0], [2, 1])
        meter.settle(TREE, [3], [4])
        assert caplog.messages == []
        meter.settle(CHAIN, [0, 2], [1, 2])
        meter.settle(TREE, [1], [2])
    chain, tree = (message.removeprefix("DDTREE metrics: ").split(" topk=")[0] for message in caplog.messages)
    assert chain == (
        "bs=2 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=0.75 avg_commit_len=1.50 avg_accepted_depth=0.75"
    )
    assert tree == (
        "bs=1 budget=16 avg_actual_nodes=17.00 avg_accepted_drafts=2.00 avg_commit_len=3.00 avg_accepted_depth=2.00"
    )
    assert published[1] == (TREE, Sums(steps=1, verifies=1, nodes=17, accepted=3, committed=4, build_s=0.004))


def test_window_without_a_verify_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Passes whose requests had all ended are counted and give no line of their own: there is nothing to average."""
    meter, published = metered(1)
    with caplog.at_level(logging.INFO):
        meter.settle(TREE, [], [])
        assert caplog.messages == []
        meter.settle(TREE, [2], [3])
    assert "avg_accepted_drafts=2.00" in caplog.messages[0]
    assert "verify_steps=2" in caplog.messages[0]
    assert len(published) == 2


passes = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 7), max_size=4)), max_size=40)


@given(settled=passes, every=st.integers(1, 6))
def test_nothing_is_counted_twice_or_lost(settled: list[tuple[bool, list[int]]], every: int) -> None:
    """What is published adds up to what was settled, whatever was printed in between."""
    meter, published = metered(every)
    for tree, accepted in settled:
        meter.settle(TREE if tree else CHAIN, accepted, [count + 1 for count in accepted])
    total = Sums()
    for _, sums in published:
        total.add(sums)
    assert total.verifies == sum(len(accepted) for _, accepted in settled)
    assert total.accepted == sum(sum(accepted) for _, accepted in settled)
    assert total.committed == total.accepted + total.verifies
    assert total.nodes == sum((17 if tree else 8) * len(accepted) for tree, accepted in settled)
