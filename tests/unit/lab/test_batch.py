"""After any walk both caches hold what reading the same tokens from scratch would have put there."""

from __future__ import annotations

import numpy as np
import pytest

from specctl.lab.algos import ALGOS
from specctl.lab.batch import PREFILL_CHUNK, Batch, Request
from specctl.lab.models import Models
from specctl.lab.sampling import Chooser
from specctl.lab.stopping import StopWatch
from specctl.lab.types import Mode, Sampling
from tests.unit.lab.runs import linear, logits_after, request, tree

ROOM = 400
TOLERANCE = 2e-3


def start(models: Models, prompts: list[list[int]]) -> Batch:
    """Return a batch whose rows hold these prompts and their first tokens."""
    batch = Batch(models, max_running=len(prompts), context_length=ROOM)
    for index, prompt in enumerate(prompts):
        sampling = Sampling()
        watch = StopWatch(sampling, limit=ROOM, eos_token_id=0, tokenizer=models.tokenizer)
        chooser = Chooser(sampling=sampling, seed=0, ending_tokens=())
        row = Request(generation=request(str(index), prompt), chooser=chooser, watch=watch)
        row.tokens.append(batch.prefill(row))
    return batch


def advance(batch: Batch, mode: Mode, steps: int) -> None:
    """Decode this many steps and keep all tokens."""
    decoder = ALGOS[mode.algo].decoder(mode.knobs)
    for _ in range(steps):
        for row, block in zip(batch.requests, decoder.decode(batch).blocks, strict=True):
            row.tokens.extend(block.tokens)


@pytest.mark.parametrize("mode", [linear(8), tree(16, 8), tree(64, 4)])
def test_caches_after_walks_equal_caches_read_from_scratch(
    shipped: Models, prompts: list[list[int]], mode: Mode
) -> None:
    """Keys, values and the drafter's view of what was accepted are those of a plain reading, slot by slot."""
    batch = start(shipped, prompts[:4])
    advance(batch, mode, 6)
    fresh = start(shipped, [row.tokens[:-1] for row in batch.requests])
    assert fresh.lengths.tolist() == batch.lengths.tolist() == [len(row.tokens) - 1 for row in batch.requests]
    for ours, theirs in ((batch._cache, fresh._cache), (batch._draft_cache, fresh._draft_cache)):
        assert ours is not None
        assert theirs is not None
        for row, length in enumerate(batch.lengths.tolist()):
            np.testing.assert_allclose(ours.keys[:, row, :, :length], theirs.keys[:, row, :, :length], atol=TOLERANCE)
            np.testing.assert_allclose(ours.values[:, row, :length], theirs.values[:, row, :length], atol=TOLERANCE)


def test_rows_stay_dense_when_one_leaves(shipped: Models, prompts: list[list[int]]) -> None:
    """When a row leaves, the last one takes its place with its cache, and decodes as before."""
    batch, untouched = start(shipped, prompts[:4]), start(shipped, prompts[:4])
    batch.remove(1)
    assert [row.generation.rid for row in batch.requests] == ["0", "3", "2"]
    advance(batch, tree(16, 8), 4)
    advance(untouched, tree(16, 8), 4)
    wanted = {row.generation.rid: row.tokens for row in untouched.requests if row.generation.rid != "1"}
    assert {row.generation.rid: row.tokens for row in batch.requests} == wanted


def test_a_prompt_longer_than_a_chunk_is_read_whole(shipped: Models, prompts: list[list[int]]) -> None:
    """Reading a prompt in chunks gives the token that one pass over it gives."""
    long = (prompts[31] * 4)[: PREFILL_CHUNK + 70]
    batch = start(shipped, [long])
    assert batch.requests[0].tokens[-1] == int(logits_after(shipped, long)[-1].argmax())
