"""What is kept of a tree: the accepted path's keys at the front, and the hidden states along it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: what is kept of a tree is not tested here")

import torch

from sglang_ddtree import keeping


class Pool:
    """A cache of one number a place."""

    def __init__(self, size: int) -> None:
        self.held = torch.arange(size)

    def move_kv_cache(self, tgt_loc: torch.Tensor, src_loc: torch.Tensor) -> None:
        """Copy."""
        self.held[tgt_loc] = self.held[src_loc]


def test_path_comes_to_the_front() -> None:
    """Of two requests with different paths each finds its own at its first places; what lies behind stays as it was."""
    pool = Pool(20)
    places = torch.tensor([[3, 5, 7, 9], [10, 11, 12, 13]])
    path, accepted = torch.tensor([[0, 2, 3], [0, 3, 3]]), torch.tensor([2, 1])
    keeping.move(pool, places, keeping.sources(path, accepted))
    assert pool.held[places[0]].tolist() == [3, 7, 9, 9]
    assert pool.held[places[1]].tolist() == [10, 13, 12, 13]


def test_root_alone_moves_nothing() -> None:
    """Where nothing could be drafted, nothing is copied."""
    pool = Pool(3)
    keeping.move(pool, torch.tensor([[1]]), torch.tensor([[0]]))
    assert pool.held.tolist() == [0, 1, 2]


def test_hidden_states_are_those_of_the_path() -> None:
    """Hidden states are gathered request by request; rows of padding behind them are not read."""
    hidden = torch.arange(14).view(7, 2)
    found = keeping.along(hidden, torch.tensor([[0, 2], [0, 1]]), 3)
    assert found.tolist() == [[[0, 1], [4, 5]], [[6, 7], [8, 9]]]
