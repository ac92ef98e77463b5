"""Mutants of the plugin, a plugin of their own: each breaks one part of a step while a file names it.

They show that the tests of equality would catch such a mistake; the engine's own hooks put them in place.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch


def chosen(name: str) -> bool:
    """Return whether that mutant is to work."""
    return Path(os.environ["DDTREE_MUTANT"]).read_text() == name


def causal_mask(make: Callable[..., torch.Tensor], seen: torch.Tensor, *rest: object) -> torch.Tensor:
    """Let every node see all nodes before it, as a chain's do."""
    return make(torch.ones_like(seen).tril() if chosen("causal mask") else seen, *rest)


def position_by_index(place: Callable[..., torch.Tensor], trees: object, lengths: torch.Tensor) -> torch.Tensor:
    """Give nodes the positions of a chain."""
    right = place(trees, lengths)
    indices = torch.arange(right.shape[1]).expand_as(right)
    return lengths.unsqueeze(1) + indices if chosen("position by index") else right


def keys_not_moved(move: Callable[..., None], *values: object) -> None:
    """Leave keys and values where the tree was."""
    if not chosen("keys not moved"):
        move(*values)


def states_not_gathered(
    along: Callable[..., torch.Tensor], hidden: torch.Tensor, path: torch.Tensor, width: int
) -> torch.Tensor:
    """Show the draft the hidden states of the first nodes instead of the path's."""
    straight = torch.arange(path.shape[1]).expand_as(path)
    return along(hidden, straight if chosen("states not gathered") else path, width)


def sibling_accepted(
    walk: Callable[..., object], trees: object, seen: torch.Tensor, picks: torch.Tensor, longest: int
) -> object:
    """Take the root's first child for right, whatever the target says."""
    if chosen("draft not verified") and picks.shape[1] > 1:
        picks = picks.clone()
        picks[:, 0] = trees.tokens[:, 1]  # type: ignore[attr-defined]  # the plugin's trees
    return walk(trees, seen, picks, longest)


def first_path_accepted(
    walk: Callable[..., object], trees: object, seen: torch.Tensor, picks: torch.Tensor, longest: int
) -> object:
    """Have the target agree with each node's first child: every draft is right, down to the tree's end."""
    if chosen("first path accepted"):
        picks = picks.clone()
        for node in range(picks.shape[1] - 1, 0, -1):
            parent = trees.parents[:, node : node + 1]  # type: ignore[attr-defined]  # the plugin's trees
            token = trees.tokens[:, node : node + 1]  # type: ignore[attr-defined]  # the plugin's trees
            drafted = trees.depths[:, node : node + 1] > 0  # type: ignore[attr-defined]  # the plugin's trees
            picks.scatter_(1, parent, torch.where(drafted, token, picks.gather(1, parent)))
    return walk(trees, seen, picks, longest)


def load() -> None:
    """Put the mutants in place."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # type: ignore[import-not-found]  # the engine's

    for target, mutant in (
        ("masks.full", causal_mask),
        ("tree_torch.positions", position_by_index),
        ("keeping.move", keys_not_moved),
        ("keeping.along", states_not_gathered),
        ("tree_torch.walk", sibling_accepted),
        ("tree_torch.walk", first_path_accepted),
    ):
        HookRegistry.register(f"sglang_ddtree.{target}", mutant, HookType.AROUND)
