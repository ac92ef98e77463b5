"""Each bend is wrong where it says, and nowhere else; without one the decoders call the right functions themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from specctl.lab import bends, masks
from specctl.lab.cache import KvCache
from specctl.lab.engine import Engine
from specctl.lab.models import Models
from specctl.lab.seam import RIGHT, Seam
from specctl.lab.types import Generation, Mode, StepReport, Verify
from tests.unit.lab.runs import CONTEXT, NONE, linear, requests, run, tree

pytestmark = pytest.mark.slow

TOKENS_WRONG = ("mask-wrong", "position-off-by-one", "position-is-index", "kv-not-moved")
TOKENS_RIGHT = ("features-wrong", "drafts-discarded", "walk-short", "budget-ignored")


def bent_run(models: Models, mode: Mode, generations: Sequence[Generation], seam: Seam) -> list[StepReport]:
    """Run requests to their ends on a bent engine that traces."""
    engine = Engine(models, mode=mode, max_running=8, context_length=CONTEXT, seam=seam, traces=True)
    for generation in generations:
        engine.add(generation)
    reports = []
    while engine.running or engine.waiting:
        reports.append(engine.step())
    return reports


def tokens_of(reports: Sequence[StepReport]) -> Mapping[str, list[int]]:
    """Return what each request got."""
    found: dict[str, list[int]] = {}
    for report in reports:
        for emission in report.emissions:
            found.setdefault(emission.rid, []).extend(emission.tokens)
    return found


def verifies_of(reports: Sequence[StepReport]) -> list[Verify]:
    """Return all verifies."""
    return [verify for report in reports for verify in report.verifies]


def test_the_right_seam_is_the_right_functions() -> None:
    """An unbent decoder calls what it called before there was a seam."""
    assert (RIGHT.tree_mask, RIGHT.positions) == (masks.tree_mask, masks.tree_positions)
    assert RIGHT.compact is KvCache.compact
    accepted = np.array([3, 0, 7])
    assert RIGHT.walked(accepted) is accepted
    assert RIGHT.kept(accepted) is accepted
    assert (RIGHT.budget(16), RIGHT.limit(40)) == (16, 40)


def test_chain_positions_are_tree_positions_of_a_chain() -> None:
    """The one function for positions gives a chain's those it had of its own, bit for bit."""
    lengths = np.array([3, 17])
    ours = RIGHT.positions(lengths, np.arange(8)[None, :])
    theirs = masks.chain_positions(lengths, 8)
    assert ours.dtype == theirs.dtype
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", bends.BENDS)
def test_a_bend_changes_one_thing(name: str) -> None:
    """Of a seam a bend replaces one function."""
    bent = bends.bent([bends.BENDS[name]])
    fields = [field.name for field in dataclasses.fields(Seam)]
    assert [getattr(bent, field) is not getattr(RIGHT, field) for field in fields].count(True) == 1


def test_bends_add_up() -> None:
    """Two bends are both in force."""
    both = bends.bent([bends.BENDS["mask-wrong"], bends.ends_after(5)])
    assert both.tree_mask is not RIGHT.tree_mask
    assert (both.limit(40), both.limit(3), both.kept) == (5, 3, RIGHT.kept)


@pytest.mark.parametrize("name", TOKENS_WRONG)
def test_these_change_tokens(name: str, shipped: Models, prompts: list[list[int]]) -> None:
    """A wrong mask, position or cache gives other tokens than plain decoding."""
    generations = requests(prompts[:8])
    plain = run(shipped, NONE, generations).tokens
    bent = tokens_of(bent_run(shipped, tree(16, 8), generations, bends.bent([bends.BENDS[name]])))
    assert {rid: len(tokens) for rid, tokens in bent.items()} == {rid: len(tokens) for rid, tokens in plain.items()}
    assert bent != plain


@pytest.mark.parametrize("name", TOKENS_RIGHT)
def test_these_change_no_token(name: str, shipped: Models, prompts: list[list[int]]) -> None:
    """What only loses acceptance, or nodes, leaves greedy text as it is."""
    generations = requests(prompts[:8])
    plain = run(shipped, NONE, generations).tokens
    assert tokens_of(bent_run(shipped, tree(16, 8), generations, bends.bent([bends.BENDS[name]]))) == plain


def test_a_chain_knows_neither_mask_nor_move(shipped: Models, prompts: list[list[int]]) -> None:
    """What is wrong with trees only does nothing to a chain; wrong positions do."""
    generations = requests(prompts[:8])
    plain = run(shipped, NONE, generations).tokens
    trees = [bends.BENDS[name] for name in ("mask-wrong", "position-is-index", "kv-not-moved", "features-wrong")]
    assert tokens_of(bent_run(shipped, linear(), generations, bends.bent(trees))) == plain
    shifted = bends.bent([bends.BENDS["position-off-by-one"]])
    assert tokens_of(bent_run(shipped, linear(), generations, shifted)) != plain


@pytest.mark.parametrize("mode", [linear(), tree(16, 8)], ids=["dflash", "ddtree"])
def test_discarded_drafts_are_counted_and_lost(mode: Mode, shipped: Models, prompts: list[list[int]]) -> None:
    """Accepted drafts are counted in whole, at most one of them and the token after it are committed."""
    found = verifies_of(bent_run(shipped, mode, requests(prompts[:8]), bends.bent([bends.BENDS["drafts-discarded"]])))
    assert max(verify.accepted_drafts for verify in found) > 2
    assert max(verify.committed for verify in found) == 2
    assert all(verify.walk is not None and len(verify.walk.path) - 1 == verify.accepted_drafts for verify in found)


def test_a_short_walk_agrees_with_itself(shipped: Models, prompts: list[list[int]]) -> None:
    """Drafts beyond the first are neither counted nor committed."""
    found = verifies_of(bent_run(shipped, tree(16, 8), requests(prompts[:8]), bends.bent([bends.BENDS["walk-short"]])))
    assert {verify.accepted_drafts for verify in found} == {0, 1}
    assert all(verify.committed <= verify.accepted_drafts + 1 for verify in found)


def test_an_ignored_budget_is_doubled(shipped: Models, prompts: list[list[int]]) -> None:
    """Trees have twice the nodes, and never more than a pass has room for."""
    ignored = bends.bent([bends.BENDS["budget-ignored"]])
    found = verifies_of(bent_run(shipped, tree(16, 8), requests(prompts[:2]), ignored))
    assert {verify.nodes for verify in found} == {33}
    assert ignored.budget(64) == 64


def test_requests_end_early(shipped: Models, prompts: list[list[int]]) -> None:
    """A lowered limit ends requests in the words of the one that was asked for."""
    reports = bent_run(shipped, tree(16, 8), requests(prompts[:2]), bends.bent([bends.ends_after(9)]))
    assert {len(tokens) for tokens in tokens_of(reports).values()} == {9}


def test_walks_are_told_only_by_an_engine_that_traces(shipped: Models, prompts: list[list[int]]) -> None:
    """Without a trace no step is turned into numbers."""
    outcome = run(shipped, tree(16, 8), requests(prompts[:2]))
    assert all(verify.walk is None for verifies in outcome.verifies.values() for verify in verifies)


def test_a_walk_tells_real_nodes_alone(shipped: Models, prompts: list[list[int]]) -> None:
    """Padding is left out, positions are length plus depth, and the path's tokens are what was emitted."""
    reports = bent_run(shipped, tree(16, 8), requests(prompts[:4]), RIGHT)
    emitted = {(id(report), emission.rid): emission for report in reports for emission in report.emissions}
    for report in reports:
        for verify in report.verifies:
            walk, emission = verify.walk, emitted[id(report), verify.rid]
            assert walk is not None
            assert walk.parents is not None
            assert len(walk.tokens) == len(walk.positions) == len(walk.target) == len(walk.parents) == verify.nodes
            assert emission.before is not None
            assert walk.positions[0] == emission.before - 1
            assert emission.tokens == tuple(walk.target[node] for node in walk.path)[: len(emission.tokens)]
