"""How SGLang's names of speculative algorithms and knobs map to the lab's decoding modes; values only.

A mode is always built here, both at start (from the command line) and live (from /set_internal_state), so that both obey one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from specctl.lab.types import Mode

VERSION = "0.5.23"
"""The release whose dialect is spoken; it is what /server_info answers."""
NONE = "NONE"
DEFAULT_TREE_BUDGET = 16
DEFAULT_TOPK_CAP = 8
ALGORITHM_KEY = "speculative_algorithm"
KNOB_KEYS: Mapping[str, str] = {
    "speculative_dflash_block_size": "block_size",
    "speculative_ddtree_budget": "tree_budget",
    "speculative_ddtree_topk_cap": "topk_cap",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One algorithm: its name on the command line, the lab's algo, the knobs it reads, the draft tokens that are reported."""

    name: str | None
    algo: str
    knobs: tuple[str, ...]
    draft_tokens: Callable[[Mapping[str, int]], int] | None
    prints_tree_line: bool = False

    def mode(self, knobs: Mapping[str, int]) -> Mode:
        """Return the decoding mode with the knobs that this algorithm reads."""
        return Mode(algo=self.algo, knobs={name: knobs[name] for name in self.knobs})


ALGORITHMS: Mapping[str, Algorithm] = {
    NONE: Algorithm(name=None, algo="none", knobs=(), draft_tokens=None),
    "DFLASH": Algorithm(
        name="DFLASH", algo="dflash", knobs=("block_size",), draft_tokens=lambda knobs: knobs["block_size"]
    ),
    "DDTREE": Algorithm(
        name="DDTREE",
        algo="ddtree",
        knobs=("block_size", "tree_budget", "topk_cap"),
        draft_tokens=lambda knobs: knobs["tree_budget"] + 1,
        prints_tree_line=True,
    ),
}


def algorithm(name: str | None) -> Algorithm:
    """Return the algorithm of that name; None means no speculation. Raise ValueError in SGLang's words for an unknown one."""
    wanted = (name or NONE).upper()
    if wanted not in ALGORITHMS:
        raise ValueError(f"Unknown speculative algorithm name: {wanted}")
    return ALGORITHMS[wanted]


def running_algorithm(mode: Mode) -> Algorithm:
    """Return the algorithm that a decoding mode belongs to."""
    return next(entry for entry in ALGORITHMS.values() if entry.algo == mode.algo)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """What is claimed to run: an algorithm, and the last value of every knob (of other algorithms too)."""

    algorithm: Algorithm
    knobs: Mapping[str, int]

    @property
    def mode(self) -> Mode:
        """Return the decoding mode that this stands for."""
        return self.algorithm.mode(self.knobs)

    @property
    def draft_tokens(self) -> int | None:
        """Return the draft tokens as the engine counts them, anchor or root included; None without speculation."""
        count = self.algorithm.draft_tokens
        return None if count is None else count(self.knobs)

    def changed(self, name: str | None, knobs: Mapping[str, int]) -> Speculation:
        """Return this with another algorithm and some knobs replaced."""
        return Speculation(algorithm=algorithm(name), knobs={**self.knobs, **knobs})

    def server_args(self) -> dict[str, object]:
        """Return the speculative part of the server's arguments, in SGLang's words."""
        speculates = self.algorithm.name is not None
        return {
            ALGORITHM_KEY: self.algorithm.name,
            "speculative_num_draft_tokens": self.draft_tokens,
            "speculative_num_steps": 1 if speculates else None,
            "speculative_eagle_topk": 1 if speculates else None,
            **{key: self.knobs.get(knob) if knob in self.algorithm.knobs else None for key, knob in KNOB_KEYS.items()},
        }
