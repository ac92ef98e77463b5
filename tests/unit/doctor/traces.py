"""Random verify traces with right walks, found by trying every path: what the replay must agree with; used by its tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

Record = dict[str, Any]
AGREES = 0.7
VOCABULARY = 6
"""So small that siblings, cousins and the target's tokens often coincide."""


def path_to(parents: list[int], node: int) -> list[int]:
    """Return a node's path, the root first."""
    path = [node]
    while path[0] != 0:
        path.insert(0, parents[path[0]])
    return path


def best_path(parents: list[int], tokens: list[int], target: list[int]) -> list[int]:
    """Return the longest of all paths each node of which is the target's token after its parent."""
    every = [path_to(parents, node) for node in range(len(tokens))]
    agreed = [path for path in every if all(tokens[path[at + 1]] == target[path[at]] for at in range(len(path) - 1))]
    return max(agreed, key=len)


def random_tree(chance: Random, *, chain: bool) -> tuple[list[int], list[int]]:
    """Return parents and tokens of a tree, no two children of a node alike."""
    parents, tokens = [-1], [chance.randrange(VOCABULARY)]
    children: dict[int, set[int]] = {}
    for node in range(1, chance.randint(2, 10)):
        parent = node - 1 if chain else chance.randrange(node)
        free = sorted(set(range(VOCABULARY)) - children.get(parent, set()))
        if not free:
            break
        token = chance.choice(free)
        children.setdefault(parent, set()).add(token)
        parents.append(parent)
        tokens.append(token)
    return parents, tokens


@dataclass(slots=True)
class Recorder:
    """Makes the records of one engine's steps."""

    chance: Random
    chain: bool = False
    lines: list[Record] = field(default_factory=list)
    step: int = 0

    def request(self, rid: str, steps: int) -> None:
        """Record one request from its prompt to its end, its last block cut."""
        prompt, newest = self.chance.randint(1, 9), self.chance.randrange(VOCABULARY)
        self._add(kind="prefill", rid=rid, prompt=prompt, committed=[newest], finish=None)
        prefix = prompt
        for left in reversed(range(steps)):
            record = self._verify(rid, prefix, newest)
            if left == 0:
                record["committed"] = record["committed"][: self.chance.randint(1, len(record["committed"]))]
                record["finish"] = "length"
            self._add(**record)
            prefix += len(record["committed"])
            newest = record["committed"][-1]

    def _verify(self, rid: str, prefix: int, newest: int) -> Record:
        parents, tokens = random_tree(self.chance, chain=self.chain)
        tokens[0] = newest
        target = [self._said(parents, tokens, node) for node in range(len(tokens))]
        path = best_path(parents, tokens, target)
        depths = [len(path_to(parents, node)) - 1 for node in range(len(tokens))]
        tree = {} if self.chain else {"parents": parents, "budget": len(tokens) - 1, "topk": VOCABULARY}
        return {
            "kind": "verify",
            "rid": rid,
            "prefix": prefix,
            "block": max(depths) + 1,
            **tree,
            "tokens": tokens,
            "positions": [prefix + depth for depth in depths],
            "target": target,
            "path": path,
            "bonus": target[path[-1]],
            "committed": [target[node] for node in path],
            "finish": None,
            "nodes": len(tokens),
            "drafts": len(path) - 1,
            "depth": len(path) - 1,
        }

    def _said(self, parents: list[int], tokens: list[int], node: int) -> int:
        """Return what the target says after a node: mostly a child's token, so that paths grow long."""
        children = [token for token, parent in zip(tokens, parents, strict=True) if parent == node]
        if children and self.chance.random() < AGREES:
            return self.chance.choice(children)
        return self.chance.randrange(VOCABULARY)

    def _add(self, **record: Any) -> None:
        self.step += 1
        self.lines.append({"v": 1, **record, "step": self.step})


def random_trace(seed: int, *, chain: bool = False, requests: int = 2, steps: int = 4) -> list[Record]:
    """Return the records of some requests, one after another."""
    recorder = Recorder(Random(seed), chain=chain)
    for number in range(requests):
        recorder.request(f"r{number}", steps)
    return recorder.lines


def text(records: list[Record]) -> list[str]:
    """Return records as lines."""
    return [json.dumps(record) for record in records]
