"""The alternatives of a depth: the same for one rank with the whole vocabulary and for two with half of it each."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="torch is not installed: the draft's head is not tested here")

import torch  # after the check for it

from sglang_ddtree import draft_head  # after the check for torch
from sglang_ddtree.refusals import RefusedError  # after the check for torch

HIDDEN, VOCABULARY = 8, 30


@dataclass(slots=True, kw_only=True)
class Rank:
    """A rank of a group whose gathers are answered from what all ranks put in, in turn."""

    world_size: int
    pieces: list[torch.Tensor] = field(default_factory=list)
    answers: list[torch.Tensor] = field(default_factory=list)

    def all_gather_into_tensor(self, output: torch.Tensor, piece: torch.Tensor) -> None:
        """Note the piece; answer with the next answer when there is one."""
        self.pieces.append(piece.clone())
        if self.answers:
            output.copy_(self.answers.pop(0))
        else:
            output.zero_()


def whole() -> tuple[torch.Tensor, torch.Tensor]:
    """Return a weight in which some rows are equal, and hidden states."""
    torch.manual_seed(3)
    weight = torch.randn(VOCABULARY, HIDDEN)
    weight[20:25] = weight[3]
    return weight, torch.randn(4, 2, HIDDEN)


def split(weight: torch.Tensor, hidden: torch.Tensor, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return what each of two ranks finds: a first round collects the pieces, a second hands them round."""
    parts = ((0, weight[:17]), (17, weight[17:]))
    first = [Rank(world_size=2) for _ in parts]
    for rank, (start, part) in zip(first, parts, strict=True):
        draft_head.alternatives(hidden, draft_head.Head(weight=part, first=start, group=rank), count)
    gathered = [torch.cat(pair) for pair in zip(first[0].pieces, first[1].pieces, strict=True)]
    return [
        draft_head.alternatives(
            hidden, draft_head.Head(weight=part, first=start, group=Rank(world_size=2, answers=list(gathered))), count
        )
        for start, part in parts
    ]


@pytest.mark.parametrize("count", [1, 4, 8])
def test_two_ranks_find_what_one_does(count: int) -> None:
    """Both ranks have the same alternatives, ties included, and they are those of the whole vocabulary."""
    weight, hidden = whole()
    alone = draft_head.alternatives(hidden, draft_head.Head(weight=weight, first=0, group=Rank(world_size=1)), count)
    for ids, scores in split(weight, hidden, count):
        assert torch.equal(ids, alone[0])
        torch.testing.assert_close(scores, alone[1])


def test_scores_are_log_probabilities() -> None:
    """The scores are those of a softmax over the whole vocabulary, and none is asked for that there is not."""
    weight, hidden = whole()
    head = draft_head.Head(weight=weight, first=0, group=Rank(world_size=1))
    ids, scores = draft_head.alternatives(hidden, head, VOCABULARY + 5)
    wanted = torch.log_softmax(hidden @ weight.T, dim=-1)
    assert ids.shape[-1] == VOCABULARY
    torch.testing.assert_close(scores, wanted.gather(-1, ids))


def test_heads_that_are_no_plain_matrix_are_refused() -> None:
    """A quantised head, one that was added to, and one whose part is unknown are refused by name."""
    alone, two = Rank(world_size=1), Rank(world_size=2)
    shard = SimpleNamespace(num_added_elements=2, num_org_elements=10, org_vocab_start_index=0)
    weight = torch.zeros(12, 4)
    for layer, group, why in (
        (SimpleNamespace(weight=weight.to(torch.int8)), alone, "quantised"),
        (SimpleNamespace(), alone, "absent"),
        (SimpleNamespace(weight=weight), two, "which part"),
        (SimpleNamespace(weight=weight, shard_indices=shard), alone, "added to"),
    ):
        with pytest.raises(RefusedError, match=why):
            draft_head.of_target(SimpleNamespace(lm_head=layer), group)


def test_rows_of_padding_are_left_out() -> None:
    """Of a padded part only the rows that are tokens count."""
    shard = SimpleNamespace(num_added_elements=0, num_org_elements=10, org_vocab_start_index=7)
    layer = SimpleNamespace(weight=torch.zeros(12, 4), shard_indices=shard)
    head = draft_head.of_target(SimpleNamespace(lm_head=layer), Rank(world_size=1))
    assert (head.weight.shape[0], head.first) == (10, 7)
