"""`python -m specctl.lab.train`: train the lab's models in stages, each resumed from its last checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from specctl.lab.train import corpus, target_stage, vocabulary
from specctl.lab.train.plan import Plan

STAGES = ("target", "generate", "draft", "export")


def main() -> None:
    """Parse the command line and run the stages asked for."""
    parser = argparse.ArgumentParser(prog="python -m specctl.lab.train", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints and generated sequences")
    parser.add_argument("--stage", choices=STAGES, help="run this stage alone (default: all)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    plan = Plan()
    texts = corpus.read()
    tokenizer = options.work / "tokenizer.json"
    if not tokenizer.exists():
        vocabulary.train(texts.train, tokenizer)
    train, held_out = (vocabulary.encode_all(part, tokenizer) for part in (texts.train, texts.held_out))
    print(f"corpus files={len(texts.train)}+{len(texts.held_out)} tokens={len(train)}+{len(held_out)}", flush=True)
    if options.stage in (None, "target"):
        target_stage.run(plan, train, held_out, options.work)


if __name__ == "__main__":
    main()
