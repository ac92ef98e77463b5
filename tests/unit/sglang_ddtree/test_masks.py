"""The mask as the engine reads it: request after request, a row a node, all of the past and the tree's ancestors."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: masks are not tested here")

import torch  # after the check for it

from sglang_ddtree import masks  # after the check for torch


def test_rows_are_the_past_and_the_tree() -> None:
    """Requests of different lengths lie one after the other; what lies behind the last one is not read."""
    seen = torch.tensor([[[1, 0], [1, 1]], [[1, 0], [0, 1]]]).bool()
    flat = masks.full(seen, torch.tensor([1, 3], dtype=torch.int32), 16)
    assert flat[:6].view(2, 3).int().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert flat[6:16].view(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 0, 1]]
    assert flat.shape == (2 * (16 + 2 * 2),)


def test_mask_has_room_for_what_it_is_of_and_for_no_more() -> None:
    """With the lengths' own sum as the bound a mask has one place for each that is read: the graphs' has none behind it."""
    seen = torch.ones((2, 3, 3), dtype=torch.bool)
    assert masks.full(seen, torch.tensor([5, 7]), 12).shape == (3 * (5 + 3) + 3 * (7 + 3),)
