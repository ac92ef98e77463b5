"""`python -m specctl.lab.train`: train the lab's models in stages, each resumed from its last checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from specctl.lab.train import corpus, draft_stage, export, generate_stage, reference, target_stage, vocabulary
from specctl.lab.train.plan import Plan

REFERENCE_FILE = "reference.safetensors"


def main() -> None:
    """Parse the command line, train and write both model folders."""
    parser = argparse.ArgumentParser(prog="python -m specctl.lab.train", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints and generated sequences")
    parser.add_argument("--out", type=Path, help="folder that gets target/ and dflash/ (default: models/ in --work)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    train(Plan(), options.work, options.out or options.work / "models")


def train(plan: Plan, work: Path, out: Path, stdlib: Path | None = None) -> None:
    """Run all stages; what a killed run finished is not done again."""
    torch.set_num_threads(1)
    texts = corpus.read(stdlib)
    tokenizer = work / "tokenizer.json"
    if not tokenizer.exists():
        vocabulary.train(texts.train, tokenizer)
    tokens, held_out = (vocabulary.encode_all(part, tokenizer) for part in (texts.train, texts.held_out))
    print(f"corpus files={len(texts.train)}+{len(texts.held_out)} tokens={len(tokens)}+{len(held_out)}", flush=True)
    target = target_stage.run(plan, tokens, held_out, work)
    export.write(target, plan.target, out / "target", tokenizer)
    export.round_to_shipped(target)
    generate_stage.run(plan, tokens, out / "target", target, work)
    draft = draft_stage.run(plan, target, work)
    export.write(draft, plan.draft, out / "dflash", None)
    reference.write(out, work / REFERENCE_FILE)


if __name__ == "__main__":
    main()
