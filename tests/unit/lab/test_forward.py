"""The numpy forwards compute what the torch models compute, in any batch shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.lab import masks
from specctl.lab.cache import KvCache
from specctl.lab.forward import Pass
from specctl.lab.models import Models
from specctl.lab.weights import Floats
from tests.examples import examples
from tests.unit.lab.runs import SHIPPED, logits_after

# Written by `python -m specctl.lab.train` from the shipped weights (Apache-2.0): tests/data/lab/README.md.
REFERENCE = Path(__file__).parents[2] / "data" / "lab" / "reference.safetensors"
TOLERANCE = 5e-4


def drafted_after(models: Models, tokens: list[int]) -> Floats:
    """Return the drafter's logits after the last of these tokens, from fresh caches."""
    assert models.draft is not None
    config, draft, count = models.target.config, models.draft, len(tokens) - 1
    cache = KvCache(layers=config.num_hidden_layers, rows=1, slots=count, head_dim=config.head_dim)
    slots = count + draft.config.block_size
    draft_cache = KvCache(layers=draft.config.num_hidden_layers, rows=1, slots=slots, head_dim=draft.config.head_dim)
    none = np.zeros(1, dtype=np.int64)
    mask, positions = masks.chain_mask(none, count), masks.chain_positions(none, count)
    batch = Pass(first_row=0, lengths=none, tokens=np.array([tokens[:-1]]), positions=positions, mask=mask)
    _, features = models.target.forward(batch, cache, draft.config.target_layer_ids)
    draft.absorb(features, 0, none, draft_cache)
    drafted: Floats = draft.propose(np.array(tokens[-1:]), none + count, draft_cache, draft.config.block_size)[0]
    return drafted


@pytest.mark.parametrize("index", [0, 1])
def test_logits_agree_with_torchs_stored_ones(shipped: Models, index: int) -> None:
    """Target and drafter give the logits that the torch models gave when the weights were exported."""
    stored = safetensors.numpy.load_file(REFERENCE)
    tokens, wanted = stored[f"tokens.{index}"].tolist(), stored[f"target.{index}"]
    np.testing.assert_allclose(logits_after(shipped, tokens)[-len(wanted) :], wanted, atol=TOLERANCE)
    np.testing.assert_allclose(drafted_after(shipped, tokens), stored[f"draft.{index}"], atol=TOLERANCE)


def test_logits_agree_with_live_torch(shipped: Models) -> None:
    """Where torch is installed, both agree on tokens drawn at random too."""
    torch = pytest.importorskip("torch")
    from specctl.lab.train import reference

    target, draft = reference.load(SHIPPED)
    for length in (2, 17, 150):
        tokens = np.random.default_rng(length).integers(2, 1024, size=length)
        verified, drafted = reference.logits(target, draft, torch.from_numpy(tokens))
        np.testing.assert_allclose(logits_after(shipped, tokens.tolist()), verified.numpy(), atol=TOLERANCE)
        np.testing.assert_allclose(drafted_after(shipped, tokens.tolist()), drafted.numpy(), atol=TOLERANCE)


@settings(max_examples=examples(20), deadline=None)
@given(cuts=st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_pieces_through_the_cache_equal_one_pass(untrained: Models, cuts: list[int]) -> None:
    """However a sequence is cut into passes over a cache, its last logits are those of one pass."""
    tokens = np.random.default_rng(0).integers(2, 258, size=sum(cuts)).tolist()
    config = untrained.target.config
    cache = KvCache(layers=config.num_hidden_layers, rows=2, slots=len(tokens), head_dim=config.head_dim)
    length, hidden = np.zeros(1, dtype=np.int64), np.zeros((1, 1, config.hidden_size), dtype=np.float32)
    for cut in cuts:
        at = int(length[0])
        mask, positions = masks.chain_mask(length, cut), masks.chain_positions(length, cut)
        piece = np.array([tokens[at : at + cut]])
        batch = Pass(first_row=1, lengths=length, tokens=piece, positions=positions, mask=mask)
        hidden, _ = untrained.target.forward(batch, cache)
        length = length + cut
    wanted = logits_after(untrained, tokens)[-1]
    np.testing.assert_allclose(untrained.target.logits(hidden)[0, -1], wanted, atol=TOLERANCE)


def test_what_a_mask_hides_does_not_matter(untrained: Models) -> None:
    """A sibling's token never reaches a node: changing one branch of a tree leaves the other's logits as they were."""
    lengths, parents, depths = np.array([0]), np.array([[0, 0, 0, 2]]), np.array([[0, 1, 1, 2]])
    config = untrained.target.config
    results = []
    for sibling in (40, 41):
        cache = KvCache(layers=config.num_hidden_layers, rows=1, slots=4, head_dim=config.head_dim)
        batch = Pass(
            first_row=0,
            lengths=lengths,
            tokens=np.array([[9, sibling, 30, 31]]),
            positions=masks.tree_positions(lengths, depths),
            mask=masks.tree_mask(lengths, parents),
        )
        results.append(untrained.target.logits(untrained.target.forward(batch, cache)[0])[0])
    np.testing.assert_array_equal(results[0][[0, 2, 3]], results[1][[0, 2, 3]])
    assert not np.allclose(results[0][1], results[1][1])
    np.testing.assert_allclose(results[0][3], logits_after(untrained, [9, 30, 31])[-1], atol=TOLERANCE)
