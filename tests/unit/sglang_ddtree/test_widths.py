"""Widths: which are captured, which one a tree gets, and that the engine's own attention and graphs come back."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sglang_ddtree.knobs import Knobs, Limits, Row, Setting
from sglang_ddtree.widths import Captured, Widths, wanted

LIMITS = Limits(block_size=8, max_budget=31, max_topk=8)


def runner(graphs: str | None = "engine's graphs") -> SimpleNamespace:
    """Return a model runner."""
    return SimpleNamespace(attn_backend="engine's attention", decode_cuda_graph_runner=graphs)


def captured(width: int) -> Captured:
    """Return attention and graphs of a width."""
    return Captured(attention=f"attention {width}", graphs=f"graphs {width}")


def test_named_settings_get_graphs() -> None:
    """No draft, the chain, the setting and a policy's rows are captured, the engine's own width not twice; widest first."""
    rows = ((1, 31, 8), (4, 8, 2), (6, 24, 1), (8, 0, 4))
    policy = tuple(Row(start=start, setting=Setting(budget=budget, topk=topk)) for start, budget, topk in rows)
    assert wanted(LIMITS, Knobs(setting=Setting(budget=16, topk=4), policy=policy)) == (17, 9, 8, 1)
    assert wanted(LIMITS, Knobs(setting=Setting(budget=31, topk=8))) == (8, 1)
    limits = replace(LIMITS, graph_budgets=(8, 16, 31))
    assert wanted(limits, Knobs(setting=Setting(budget=31, topk=8))) == (17, 9, 8, 1)


def test_tree_gets_the_next_width() -> None:
    """A tree is padded to the next width that was captured, and no further."""
    widths = Widths(runner(), LIMITS.width)
    widths.capture((17, 8, 1), captured)
    assert [widths.fitting(nodes) for nodes in (1, 2, 8, 9, 17, 18, 32)] == [1, 8, 8, 17, 17, 32, 32]


def test_without_graphs_a_tree_is_as_wide_as_it_is() -> None:
    """Where the engine captured nothing, nothing is captured and nothing is padded."""
    widths = Widths(runner(graphs=None), LIMITS.width)

    def build(width: int) -> Captured:
        raise AssertionError(width)

    widths.capture((8, 1), build)
    assert widths.fitting(5) == 5


def test_engines_own_come_back() -> None:
    """Within a pass a width's own attention and graphs work; afterwards, and after a failure, the engine's."""
    target = runner()
    widths = Widths(target, LIMITS.width)
    widths.capture((8,), captured)
    with widths.active(8):
        assert (target.attn_backend, target.decode_cuda_graph_runner) == ("attention 8", "graphs 8")
    with pytest.raises(RuntimeError), widths.active(8):
        raise RuntimeError
    assert (target.attn_backend, target.decode_cuda_graph_runner) == ("engine's attention", "engine's graphs")
    with widths.active(LIMITS.width):
        assert target.attn_backend == "engine's attention"
