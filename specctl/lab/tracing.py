"""One row of a verification as plain numbers, for a trace; called by an engine that traces, and by nobody else."""

from __future__ import annotations

from specctl.lab.decoding import Verified
from specctl.lab.types import Walk


def walk_of(verified: Verified, row: int) -> Walk:
    """Return what one row was given and how far its walk went; padding nodes are left out, the root is its own parent."""
    nodes = verified.tokens.shape[1] if verified.counts is None else int(verified.counts[row])
    accepted = int(verified.walked[row])
    path = range(accepted + 1) if verified.paths is None else verified.paths[row, : accepted + 1].tolist()
    return Walk(
        tokens=tuple(verified.tokens[row, :nodes].tolist()),
        positions=tuple(verified.positions[row, :nodes].tolist()),
        target=tuple(verified.target[row, :nodes].tolist()),
        path=tuple(path),
        parents=None if verified.parents is None else tuple(verified.parents[row, :nodes].tolist()),
    )
