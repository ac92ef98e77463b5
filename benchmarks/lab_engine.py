"""Tokens per CPU second of the lab engine by concurrency and algo, and where the algos cross.

`python benchmarks/lab_engine.py [--json] [--repetitions N]`. One thread; CPU time of this process, so neighbours on a shared
machine cost little but noise. A closed loop keeps exactly C requests running; only steps that decode all C of them count, and
prefill does not. Algos are interleaved within each repetition, on the same prompts; each cell shows the lowest, the median and
the highest repetition.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import specctl.lab
from specctl.lab.blas import pin_one_thread

if TYPE_CHECKING:
    from specctl.lab.engine import Engine
    from specctl.lab.models import Models

PROMPT_TOKENS = 64
NEW_TOKENS = 128
CONTEXT = 512
SEED = 21
CONCURRENCIES = (1, 2, 4, 8, 16, 32)
MODES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "none": ("none", {}),
    "linear": ("dflash", {"block_size": 8}),
    "tree 8": ("ddtree", {"tree_budget": 8, "topk_cap": 8}),
    "tree 16": ("ddtree", {"tree_budget": 16, "topk_cap": 8}),
    "tree 32": ("ddtree", {"tree_budget": 32, "topk_cap": 8}),
}
Rates = dict[int, dict[str, list[float]]]


@dataclass(slots=True)
class Loop:
    """A closed loop of requests, and the full-batch decode steps counted so far."""

    engine: Engine
    prompts: Sequence[tuple[int, ...]]
    draw: random.Random
    added: int = 0
    tokens: int = 0
    cpu_s: float = 0.0

    def refill(self, concurrency: int) -> None:
        """Queue requests until C are running or waiting; the first ones get random lengths, so that they end apart."""
        from specctl.lab.types import Generation, Sampling

        while self.engine.running + self.engine.waiting < concurrency:
            length = NEW_TOKENS if self.added >= concurrency else self.draw.randrange(NEW_TOKENS // 4, NEW_TOKENS)
            prompt = self.prompts[self.added % len(self.prompts)]
            sampling = Sampling(max_new_tokens=length, ignore_eos=True)
            self.engine.add(Generation(rid=str(self.added), prompt=prompt, sampling=sampling))
            self.added += 1

    def step(self) -> None:
        """Run one step and count it if it decoded the whole batch."""
        prefills = self.engine.waiting > 0
        began = time.process_time()
        report = self.engine.step()
        spent = time.process_time() - began
        if not prefills:
            self.cpu_s += spent
            self.tokens += sum(len(emission.tokens) for emission in report.emissions)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="CPU seconds a cell and repetition")
    parser.add_argument("--models", type=Path, default=Path(specctl.lab.__file__).parent / "models")
    options = parser.parse_args()
    pin_one_thread()
    rates = measure(options.models, options.repetitions, options.seconds)
    if options.json:
        print(json.dumps({"tokens_per_cpu_second": rates, "crossovers": crossovers(rates)}, indent=2))
        return
    show(rates)


def measure(models_folder: Path, repetitions: int, seconds: float) -> Rates:
    """Return tokens per CPU second by concurrency and mode, one figure a repetition."""
    from specctl.lab.engine import load_models
    from specctl.lab.train.corpus import held_out_prompts

    models = load_models(models_folder / "target", models_folder / "dflash")
    prompts = held_out_prompts(models.tokenizer, 96, PROMPT_TOKENS, SEED)
    rates: Rates = {concurrency: {name: [] for name in MODES} for concurrency in CONCURRENCIES}
    for repetition in range(repetitions):
        order = list(MODES)
        random.Random(repetition).shuffle(order)
        for concurrency in CONCURRENCIES:
            for name in order:
                rates[concurrency][name].append(rate(models, name, concurrency, prompts, repetition, seconds))
    return rates


def rate(
    models: Models, name: str, concurrency: int, prompts: Sequence[tuple[int, ...]], repetition: int, seconds: float
) -> float:
    """Return one cell's tokens per CPU second; the prompts and lengths depend on the repetition alone."""
    from specctl.lab.engine import Engine
    from specctl.lab.types import Mode

    algo, knobs = MODES[name]
    engine = Engine(models, mode=Mode(algo=algo, knobs=knobs), max_running=concurrency, context_length=CONTEXT)
    first = repetition * 17 % len(prompts)
    turned = [*prompts[first:], *prompts[:first]]
    loop = Loop(engine=engine, prompts=turned, draw=random.Random(repetition))
    while loop.cpu_s < seconds:
        loop.refill(concurrency)
        loop.step()
    return loop.tokens / loop.cpu_s


def crossovers(rates: Rates) -> dict[str, object]:
    """Return the fastest mode at each concurrency and, for each speculative one, where it beats none, by medians."""
    medians = {at: {name: statistics.median(runs) for name, runs in row.items()} for at, row in rates.items()}
    fastest = {at: max(row, key=lambda name: row[name]) for at, row in medians.items()}
    pays = {name: [at for at, row in medians.items() if row[name] > row["none"]] for name in MODES if name != "none"}
    return {"fastest": fastest, "pays_at": pays}


def show(rates: Rates) -> None:
    """Print the table and the crossovers."""
    print("tokens per CPU second, one thread: lowest / median / highest repetition")
    print(f"{'C':>3}" + "".join(f"{name:>22}" for name in MODES))
    for concurrency, row in rates.items():
        cells = (f"{min(runs):.0f} / {statistics.median(runs):.0f} / {max(runs):.0f}" for runs in row.values())
        print(f"{concurrency:>3}" + "".join(f"{cell:>22}" for cell in cells))
    found = crossovers(rates)
    print(f"\nfastest by concurrency: {found['fastest']}")
    print(f"faster than none at:    {found['pays_at']}")


if __name__ == "__main__":
    main()
