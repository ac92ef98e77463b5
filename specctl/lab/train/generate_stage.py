"""Stage two: greedy continuations of training text by the exported target, and its features over them.

The lab's own engine generates, so that the drafter learns from the model that is served, fp16 rounding included.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from specctl.lab.engine import Engine
from specctl.lab.models import load_models
from specctl.lab.train.plan import Plan
from specctl.lab.train.target_model import Target
from specctl.lab.types import Generation, Mode, Sampling

FEATURE_BATCH = 16
SEQUENCES_FILE = "sequences.npz"
FEATURES_FILE = "features.npy"


def run(plan: Plan, tokens: NDArray[np.int64], target_folder: Path, model: Target, folder: Path) -> None:
    """Write the sequences and their features, unless both are there."""
    sequences = folder / SEQUENCES_FILE
    if not sequences.exists():
        made, prompt_lengths = _continuations(plan, tokens, target_folder)
        np.savez(sequences, tokens=made, prompt_lengths=prompt_lengths)
    if not (folder / FEATURES_FILE).exists():
        _write_features(plan, model, np.load(sequences)["tokens"], folder / FEATURES_FILE)


def _continuations(
    plan: Plan, tokens: NDArray[np.int64], target_folder: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sequences of one length and how much of each is prompt."""
    began = time.monotonic()
    rng = np.random.default_rng((plan.seed, 3))
    lengths = rng.choice(plan.prompt_lengths, size=plan.generated_sequences)
    starts = rng.integers(0, len(tokens) - max(plan.prompt_lengths), size=plan.generated_sequences)
    engine = Engine(
        load_models(target_folder, None),
        mode=Mode(algo="none"),
        max_running=plan.generation_batch,
        context_length=plan.generated_length + 1,
    )
    rows = [tokens[start : start + length].tolist() for start, length in zip(starts, lengths, strict=True)]
    for index, row in enumerate(rows):
        sampling = Sampling(max_new_tokens=plan.generated_length - len(row), ignore_eos=True)
        engine.add(Generation(rid=str(index), prompt=tuple(row), sampling=sampling))
    while engine.running or engine.waiting:
        for emission in engine.step().emissions:
            rows[int(emission.rid)].extend(emission.tokens)
    print(f"generated sequences={len(rows)} spent_s={time.monotonic() - began:.0f}", flush=True)
    return np.array(rows, dtype=np.int64), lengths.astype(np.int64)


def _write_features(plan: Plan, model: Target, sequences: NDArray[np.int64], path: Path) -> None:
    """Write [sequences, positions, layers, hidden] in fp16, whole or not at all."""
    began = time.monotonic()
    partial = path.with_suffix(".partial")
    shape = (*sequences.shape, len(plan.draft.target_layer_ids), plan.target.hidden_size)
    features = np.lib.format.open_memmap(partial, mode="w+", dtype=np.float16, shape=shape)
    for start in range(0, len(sequences), FEATURE_BATCH):
        with torch.no_grad():
            outputs = model.trace(torch.from_numpy(sequences[start : start + FEATURE_BATCH]))
        kept = torch.stack([outputs[index] for index in plan.draft.target_layer_ids], dim=2)
        features[start : start + FEATURE_BATCH] = kept.numpy().astype(np.float16)
    features.flush()
    partial.rename(path)
    print(f"features spent_s={time.monotonic() - began:.0f}", flush=True)
