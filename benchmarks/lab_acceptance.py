"""How far the lab's drafter is believed: tokens committed per verify step on held-out prompts.

`python benchmarks/lab_acceptance.py [--json] [--prompts N]`. Prompts are cut from the standard library modules that training
held out (of the Python that runs this). The first 32 tokens are told apart, because a small target's greedy text falls into
repetition later on, which is easy to draft; the share of repeated 8-grams says how much of it does.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import specctl.lab
from specctl.lab.blas import pin_one_thread

if TYPE_CHECKING:
    from specctl.lab.models import Models

PROMPT_TOKENS = 64
NEW_TOKENS = 128
EARLY_TOKENS = 32
ROWS = 32
NGRAM = 8
SEED = 20
MODES: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("linear, block 8", "dflash", {"block_size": 8}),
    ("tree, budget 7, top-k 1", "ddtree", {"tree_budget": 7, "topk_cap": 1}),
    ("tree, budget 7, top-k 8", "ddtree", {"tree_budget": 7, "topk_cap": 8}),
    ("tree, budget 8, top-k 8", "ddtree", {"tree_budget": 8, "topk_cap": 8}),
    ("tree, budget 16, top-k 4", "ddtree", {"tree_budget": 16, "topk_cap": 4}),
    ("tree, budget 16, top-k 8", "ddtree", {"tree_budget": 16, "topk_cap": 8}),
    ("tree, budget 32, top-k 8", "ddtree", {"tree_budget": 32, "topk_cap": 8}),
    ("tree, budget 64, top-k 8", "ddtree", {"tree_budget": 64, "topk_cap": 8}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Tokens committed per verify step, bonus included: over all steps, and over those that began among the first tokens."""

    mode: str
    steps: int
    all_tokens: float
    first_tokens: float
    lossless: bool


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--prompts", type=int, default=96)
    parser.add_argument("--models", type=Path, default=Path(specctl.lab.__file__).parent / "models")
    options = parser.parse_args()
    pin_one_thread()
    measured, repeated = measure(options.models, options.prompts)
    if options.json:
        print(json.dumps({"repeated_8grams_ratio": repeated, "modes": [asdict(row) for row in measured]}, indent=2))
        return
    print(f"{options.prompts} held-out prompts of {PROMPT_TOKENS} tokens, {NEW_TOKENS} greedy tokens each")
    print(f"8-grams of the generated text seen before in it: {repeated:.0%}\n")
    print(f"{'mode':<26}{'128 tokens':>11}{'first 32':>10}{'to linear':>11}  lossless")
    for row in measured:
        gain = row.all_tokens / measured[0].all_tokens - 1
        print(f"{row.mode:<26}{row.all_tokens:>11.2f}{row.first_tokens:>10.2f}{gain:>+11.0%}  {row.lossless}")


def measure(models_folder: Path, prompts: int) -> tuple[list[Acceptance], float]:
    """Run every mode over the same prompts; return the figures and the share of repeated 8-grams."""
    from specctl.lab.engine import load_models
    from specctl.lab.train.corpus import held_out_prompts

    models = load_models(models_folder / "target", models_folder / "dflash")
    rows = held_out_prompts(models.tokenizer, prompts, PROMPT_TOKENS, SEED)
    plain, _ = generate(models, "none", {}, rows)
    measured = []
    for name, algo, knobs in MODES:
        texts, steps = generate(models, algo, knobs, rows)
        early = [committed for began, committed in steps if began < EARLY_TOKENS]
        measured.append(
            Acceptance(
                mode=name,
                steps=len(steps),
                all_tokens=sum(committed for _, committed in steps) / len(steps),
                first_tokens=sum(early) / len(early),
                lossless=texts == plain,
            )
        )
    return measured, sum(map(repetition, plain)) / len(plain)


def generate(
    models: Models, algo: str, knobs: dict[str, int], prompts: Sequence[tuple[int, ...]]
) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Return each prompt's tokens, and of each verify step how many tokens its request had and how many it committed.

    A step that the token limit cut is left out: its committed tokens say nothing about the drafter.
    """
    from specctl.lab.engine import Engine
    from specctl.lab.types import Generation, Mode, Sampling

    engine = Engine(models, mode=Mode(algo=algo, knobs=knobs), max_running=ROWS, context_length=512)
    sampling = Sampling(max_new_tokens=NEW_TOKENS, ignore_eos=True)
    for index, prompt in enumerate(prompts):
        engine.add(Generation(rid=str(index), prompt=prompt, sampling=sampling))
    texts: list[list[int]] = [[] for _ in prompts]
    steps: list[tuple[int, int]] = []
    while engine.running or engine.waiting:
        report = engine.step()
        whole = (verify for verify in report.verifies if verify.committed == verify.accepted_drafts + 1)
        steps.extend((len(texts[int(verify.rid)]), verify.committed) for verify in whole)
        for emission in report.emissions:
            texts[int(emission.rid)].extend(emission.tokens)
    return texts, steps


def repetition(tokens: list[int]) -> float:
    """Return the share of a text's 8-grams that occurred in it before."""
    grams = [tuple(tokens[at : at + NGRAM]) for at in range(len(tokens) - NGRAM + 1)]
    return 1 - len(set(grams)) / len(grams)


if __name__ == "__main__":
    main()
