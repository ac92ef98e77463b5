"""Live knobs: a change holds whole or not at all, the engine's own are left to it, and what holds is told."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sglang_ddtree import live
from sglang_ddtree.knobs import KnobError, Knobs, Limits, Row, Setting

TREE = Setting(budget=16, topk=4)
START = Knobs(setting=TREE, policy=(Row(start=1, setting=Setting(budget=31, topk=8)),))


def dial() -> live.Dial:
    """Return a server's dial."""
    return live.Dial(Limits(block_size=8, max_budget=31, max_topk=8), START)


def controller(**worker: object) -> SimpleNamespace:
    """Return a scheduler's controller with that worker."""
    return SimpleNamespace(scheduler=SimpleNamespace(draft_worker=SimpleNamespace(**worker)))


def test_refused_change_leaves_the_knobs() -> None:
    """Of a request with one good and one bad value nothing is taken."""
    held = dial()
    with pytest.raises(KnobError):
        held.turn({"ddtree_topk": 2, "ddtree_budget": 99})
    assert held.knobs == START
    held.turn({"ddtree_topk": 2})
    assert held.knobs == Knobs(setting=Setting(budget=16, topk=2))


@pytest.mark.parametrize("worker", [{}, {"dial": "another's"}, {"dial": dial()}])
def test_engines_own_knobs_are_left_to_it(worker: dict[str, object]) -> None:
    """A request without a name of ours goes to the engine as it came, whatever worker runs."""
    request = SimpleNamespace(server_args={"pp_max_micro_batch_size": 8})
    answer = live._set(lambda *values: values, controller(**worker), request)
    assert isinstance(answer, tuple)
    assert answer[1] is request


def test_what_holds_is_told() -> None:
    """The state that /server_info shows has the knobs and how far they go; another worker's state is left as it is."""
    told = SimpleNamespace(internal_state={"other": 1})
    live._tell(told, controller(dial=dial()))
    assert told.internal_state == {
        "other": 1,
        "ddtree_budget": 16,
        "ddtree_topk": 4,
        "ddtree_policy": [{"from": 1, "ddtree_budget": 31, "ddtree_topk": 8}],
        "ddtree_block_size": 8,
        "ddtree_max_budget": 31,
        "ddtree_max_topk": 8,
    }
    alone = SimpleNamespace(internal_state={})
    live._tell(alone, controller())
    assert alone.internal_state == {}
