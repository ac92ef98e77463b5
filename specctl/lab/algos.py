"""The algos by name, and a Mode made complete: defaults filled in, bounds and needs checked."""

from __future__ import annotations

from specctl.lab.autoregressive import Autoregressive
from specctl.lab.decoding import Algo
from specctl.lab.linear import Linear
from specctl.lab.models import Models
from specctl.lab.tree import Tree
from specctl.lab.types import Mode

ALGOS: dict[str, Algo] = {algo.name: algo for algo in (Autoregressive(), Linear(), Tree())}


def complete(mode: Mode, models: Models) -> Mode:
    """Return the mode with every knob set; raise ValueError for one that these models cannot run."""
    algo = ALGOS.get(mode.algo)
    if algo is None:
        raise ValueError(f"unknown algo {mode.algo!r}, expected one of {', '.join(ALGOS)}")
    unknown = sorted(set(mode.knobs) - set(algo.knobs))
    if unknown:
        raise ValueError(f"algo {algo.name} has no knob {unknown[0]!r}")
    if algo.drafts and models.draft is None:
        raise ValueError(f"algo {algo.name} needs a draft model, none is loaded")
    knobs = {name: mode.knobs.get(name, limits.default) for name, limits in algo.knobs.items()}
    for name, limits in algo.knobs.items():
        if not limits.low <= knobs[name] <= limits.high:
            raise ValueError(f"{name} is {knobs[name]}, expected {limits.low} to {limits.high}")
    trained = None if models.draft is None else models.draft.config.block_size
    if trained is not None and knobs.get("block_size", 0) > trained:
        raise ValueError(f"block_size is {knobs['block_size']}, the draft model was trained for up to {trained}")
    return Mode(algo=mode.algo, knobs=knobs)
