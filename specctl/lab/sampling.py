"""How one request turns the target's logits into tokens: greedy, or sampled with random numbers keyed by position.

The random number of a position depends on the request's seed and the position alone. A speculative walk that accepts a draft
exactly when it is the token sampled there therefore returns, token for token, what no speculation would have returned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specctl.lab.cache import Ints
from specctl.lab.types import Sampling
from specctl.lab.weights import Floats

_MASK64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """One request's way to pick: its parameters, its seed and the tokens that may not come before `min_new_tokens`."""

    sampling: Sampling
    seed: int
    ending_tokens: tuple[int, ...]

    def is_plain(self, generated: int) -> bool:
        """Tell whether the next picks are the bare argmax."""
        return self.sampling.temperature <= 0 and generated >= self.sampling.min_new_tokens

    def pick(self, logits: Floats, indices: Ints) -> Ints:
        """Return a token for each row of logits; `indices` counts the request's generated tokens before each."""
        scores = logits.astype(np.float64)
        early = np.flatnonzero(indices < self.sampling.min_new_tokens)
        if len(early) and self.ending_tokens:
            scores[np.ix_(early, np.array(self.ending_tokens))] = -np.inf
        if self.sampling.temperature <= 0:
            greedy: Ints = scores.argmax(axis=-1)
            return greedy
        draws = np.array([uniform(self.seed, int(index)) for index in indices])
        return sample(distribution(scores, self.sampling), draws)


def uniform(seed: int, index: int) -> float:
    """Return the random number in [0, 1) of a position: SplitMix64 of seed and index."""
    state = (seed * _GOLDEN + (index + 1) * 0xD1342543DE82EF95) & _MASK64
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK64
    return ((state ^ (state >> 31)) >> 11) * 2.0**-53


def distribution(scores: NDArray[np.float64], sampling: Sampling) -> NDArray[np.float64]:
    """Return each row's probabilities after temperature, then top-k, then top-p, renormalised."""
    scaled = scores / sampling.temperature
    scaled -= scaled.max(axis=-1, keepdims=True)
    weights = np.exp(scaled)
    weights /= weights.sum(axis=-1, keepdims=True)
    if 0 < sampling.top_k < weights.shape[-1] or sampling.top_p < 1.0:
        weights = _truncate(weights, sampling)
    return weights


def _truncate(weights: NDArray[np.float64], sampling: Sampling) -> NDArray[np.float64]:
    """Keep the top-k tokens, and of them the fewest whose probability reaches top-p; ties keep the lower token."""
    order = np.argsort(-weights, axis=-1, kind="stable")
    ranked = np.take_along_axis(weights, order, axis=-1)
    if 0 < sampling.top_k < ranked.shape[-1]:
        ranked[:, sampling.top_k :] = 0.0
        ranked /= ranked.sum(axis=-1, keepdims=True)
    before = np.cumsum(ranked, axis=-1) - ranked
    ranked[(before >= sampling.top_p) & (np.arange(ranked.shape[-1]) > 0)] = 0.0
    kept = np.zeros_like(weights)
    np.put_along_axis(kept, order, ranked, axis=-1)
    kept /= kept.sum(axis=-1, keepdims=True)
    return kept


def sample(weights: NDArray[np.float64], draws: NDArray[np.float64]) -> Ints:
    """Return the token at which each row's cumulated probability passes its draw; never a token of probability zero."""
    totals = np.cumsum(weights, axis=-1)
    passed: Ints = (totals <= (draws * totals[:, -1])[:, None]).sum(axis=-1)
    return passed
