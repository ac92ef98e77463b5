"""The running requests as dense rows, and the passes that decoders make over them.

Row r's cache holds `lengths[r]` tokens; its anchor is its newest token, which no model has seen. The drafter's cache may lag
(prefill and algo none do not feed it); `propose` catches up first, so an algo may change between any two steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from specctl.lab import masks
from specctl.lab.cache import Ints, KvCache
from specctl.lab.forward import Pass
from specctl.lab.layers import PASS_SLACK
from specctl.lab.models import Models
from specctl.lab.sampling import Chooser
from specctl.lab.seam import RIGHT, Seam
from specctl.lab.stopping import StopWatch
from specctl.lab.types import Generation
from specctl.lab.weights import Floats

PREFILL_CHUNK = 256


@dataclass(slots=True, kw_only=True)
class Request:
    """One running request; `tokens` is its prompt and all that was committed since."""

    generation: Generation
    chooser: Chooser
    watch: StopWatch
    tokens: list[int] = field(default_factory=list)

    @property
    def generated(self) -> int:
        """Return how many tokens were committed after the prompt."""
        return len(self.tokens) - len(self.generation.prompt)


class Batch:
    """Rows 0 to running - 1 of both caches, and the two models that work on them."""

    def __init__(self, models: Models, *, max_running: int, context_length: int, seam: Seam = RIGHT) -> None:
        """Reserve both caches."""
        self.models = models
        self._seam = seam
        self.requests: list[Request] = []
        slots = context_length + PASS_SLACK
        self._lengths: Ints = np.zeros(max_running, dtype=np.int64)
        self._drafted: Ints = np.zeros(max_running, dtype=np.int64)
        self._cache = _reserve(
            models.target.config.num_hidden_layers, models.target.config.head_dim, max_running, slots
        )
        self._draft_cache: KvCache | None = None
        if models.draft is not None:
            config = models.draft.config
            self._draft_cache = _reserve(config.num_hidden_layers, config.head_dim, max_running, slots)

    @property
    def lengths(self) -> Ints:
        """Return how many tokens of each running row the target's cache holds."""
        return self._lengths[: len(self.requests)]

    def anchors(self) -> Ints:
        """Return each row's newest token."""
        return np.array([request.tokens[-1] for request in self.requests], dtype=np.int64)

    def prefill(self, request: Request) -> int:
        """Append a row, compute its prompt and return the first token picked; the caller adds it to the request."""
        row, prompt = len(self.requests), request.generation.prompt
        self.requests.append(request)
        self._lengths[row] = self._drafted[row] = 0
        request.tokens.extend(prompt)
        hidden = self._read(row, 0, len(prompt))
        self._lengths[row] = len(prompt)
        logits = self.models.target.logits(hidden[-1:])
        return int(request.chooser.pick(logits, np.array([0]))[0])

    def remove(self, row: int) -> None:
        """Drop a row; the last one moves into its place."""
        last = len(self.requests) - 1
        moved = self.requests.pop()
        if row == last:
            return
        self.requests[row] = moved
        self._cache.move_row(last, row, int(self._lengths[last]))
        if self._draft_cache is not None:
            self._draft_cache.move_row(last, row, int(self._drafted[last]))
        self._lengths[row], self._drafted[row] = self._lengths[last], self._drafted[last]

    def propose(self, block_size: int) -> Floats:
        """Return the drafter's logits [rows, block_size - 1, vocabulary] for the tokens after each anchor."""
        if self.models.draft is None or self._draft_cache is None:
            raise AssertionError("an algo that drafts was configured without a drafter")
        for row in np.flatnonzero(self._drafted[: len(self.requests)] < self.lengths):
            self._catch_up(int(row))
        return self.models.draft.propose(self.anchors(), self.lengths, self._draft_cache, block_size)

    def verify(self, tokens: Ints, positions: Ints, mask: Floats, *, features: bool) -> tuple[Floats, Floats]:
        """Run the target over candidates of every row; return logits and the features that `commit` takes."""
        batch = Pass(first_row=0, lengths=self.lengths, tokens=tokens, positions=positions, mask=mask)
        hidden, kept = self.models.target.forward(batch, self._cache, self._feature_layers() if features else ())
        return self.models.target.logits(hidden), kept

    def pick(self, logits: Floats, depths: Ints) -> Ints:
        """Return the target's token after each candidate [rows, candidates], by each request's own sampling."""
        picked: Ints = logits.argmax(axis=-1)
        for row, request in enumerate(self.requests):
            if not request.chooser.is_plain(request.generated):
                picked[row] = request.chooser.pick(logits[row], request.generated + depths[row])
        return picked

    def advance(self) -> None:
        """Count each row's anchor as cached, after a pass without drafts."""
        self._lengths[: len(self.requests)] += 1

    def commit(self, accepted: Ints, features: Floats, paths: Ints | None) -> None:
        """Keep each row's anchor and accepted drafts.

        `features` are the last pass's. `paths` [rows, depth] holds the node indices of the accepted path, padded with any
        node; None says that the candidates were a chain, already in place.
        """
        before = self.lengths.copy()
        longest = int(accepted.max()) + 1
        if paths is None:
            kept = features[:, :longest]
        else:
            self._seam.compact(self._cache, before, paths[:, :longest])
            kept = self._seam.gather(features, paths[:, :longest])
        if self.models.draft is not None and self._draft_cache is not None:
            self.models.draft.absorb(kept, 0, before, self._draft_cache)
        self._lengths[: len(self.requests)] += accepted + 1
        self._drafted[: len(self.requests)] = self.lengths

    def _feature_layers(self) -> tuple[int, ...]:
        return () if self.models.draft is None else self.models.draft.config.target_layer_ids

    def _read(self, row: int, first: int, end: int) -> Floats:
        """Run tokens first..end of a row through the target in chunks, feeding the drafter; return the last chunk's states."""
        hidden: Floats = np.zeros((0, 0), dtype=np.float32)
        for start in range(first, end, PREFILL_CHUNK):
            length = np.array([start], dtype=np.int64)
            tokens = np.array([self.requests[row].tokens[start : min(end, start + PREFILL_CHUNK)]], dtype=np.int64)
            count = tokens.shape[1]
            mask, positions = masks.chain_mask(length, count), masks.chain_positions(length, count)
            batch = Pass(first_row=row, lengths=length, tokens=tokens, positions=positions, mask=mask)
            states, features = self.models.target.forward(batch, self._cache, self._feature_layers())
            if self.models.draft is not None and self._draft_cache is not None:
                self.models.draft.absorb(features, row, length, self._draft_cache)
            hidden = states[0]
        self._drafted[row] = end
        return hidden

    def _catch_up(self, row: int) -> None:
        """Recompute the features of a row's tokens that the drafter has not seen."""
        self._read(row, int(self._drafted[row]), int(self._lengths[row]))


def _reserve(layers: int, head_dim: int, rows: int, slots: int) -> KvCache:
    return KvCache(layers=layers, rows=rows, slots=slots, head_dim=head_dim)
