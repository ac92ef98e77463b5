"""Two real experiments of `specctl ab` on the lab engine: one that must find nothing, one that must find something.

`python benchmarks/ab.py [--plots docs] [--cycles 2] [--quick]`.
A chain of block 8 against a tree of budget 7 and top-k 1 is the same chain spelled twice: equal answers, equal accept length, and
throughput apart by no more than the steps are that the engine takes a second (its tree code costs more a step). Against a tree of
budget 16 and top-k 8 the accept length must differ. The lab server runs on this machine under
supervisor, from `specctl init --lab`, and is gone afterwards. Prints what the command prints; `--plots` keeps the plots as
ab-chain-*.svg and ab-tree-*.svg in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

CHAIN = "dflash"
ARMS = {"chain": "ddtree:tree_budget=7,topk_cap=1", "tree": "ddtree:tree_budget=16,topk_cap=8"}
SIZES = ("--tokens", "128", "--rounds", "8", "--runs", "3")
# How far throughput may be from what steps a second explain: both are measured.
APART = 0.05
QUICK = ("--tokens", "32", "--rounds", "2", "--runs", "1")


class Bed:
    """A folder with an inventory of one lab server, and specctl run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "LAB_API_KEY": "sk-benchmark-0123456789",
            "NO_COLOR": "1",
        }

    def run(self, *words: str, loud: bool = False) -> str:
        """Run a command that must go well, and return what it printed; `loud`: print it too."""
        done = subprocess.run(
            [sys.executable, "-m", "specctl", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"specctl {' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
        if loud:
            print(done.stdout)
        return done.stdout


def experiment(bed: Bed, name: str, sizes: Sequence[str], plots: Path | None) -> dict[str, object]:
    """Run one experiment, print it as a person sees it, keep its plots, and return its JSON."""
    words = ("ab", "--host", "local", "--a", CHAIN, "--b", ARMS[name], "--concurrency", "1,4", *sizes)
    print(f"$ specctl {' '.join(words)}\n")
    bed.run(*words, "--yes", "--report", f"{name}.md", loud=True)
    for kind in ("segments", "differences"):
        if plots is not None:
            shutil.copyfile(bed.folder / f"{name}-{kind}.svg", plots / f"ab-{name}-{kind}.svg")
    told = json.loads(bed.run("ab", "--resume", "last", "--report", f"{name}.md", "--json"))["ab"]
    assert isinstance(told, dict)
    return told


def judge(name: str, told: dict[str, object]) -> list[str]:
    """Say what an experiment should have found and did not; what a machine's noise may hide is no fault."""
    faults = []
    if told["lossless"] is not True:
        faults.append(f"{name}: the answers are not equal: {told['answers']}")
    compared = told["compared"]
    assert isinstance(compared, list)
    ratios = [row["ratio"] for row in compared if row["quantity"] == "accept_length"]
    same = all(abs(ratio) < 1e-9 for ratio in ratios)
    if not ratios or same is not (name == "chain"):
        faults.append(f"{name}: accept length differs by {ratios}")
    verdicts = told["verdicts"]
    assert isinstance(verdicts, list)
    if name == "chain" and any(row["call"] == "different" for row in verdicts):
        faults += _unexplained(compared)
    return faults


def _unexplained(compared: Sequence[Mapping[str, object]]) -> list[str]:
    """Say where throughput of the same chain differs by more than its steps do: a step may cost more, no token may be lost."""
    told = {(row["concurrency"], row["quantity"]): row["ratio"] for row in compared}
    faults = []
    for (level, quantity), ratio in told.items():
        steps = told.get((level, "verify_steps_s"))
        if (
            quantity == "tokens_s"
            and isinstance(ratio, float)
            and isinstance(steps, float)
            and abs(ratio - steps) > APART
        ):
            faults.append(f"chain: at {level} throughput differs by {ratio:+.1%}, and steps a second by {steps:+.1%}")
    return faults


def main() -> None:
    """Run both experiments; end with 1 where one of them found what is not, or missed what is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plots", type=Path)
    parser.add_argument("--cycles", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a few requests, to see that it works")
    given = parser.parse_args()
    sizes = (*(QUICK if given.quick else SIZES), "--cycles", str(given.cycles))
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(Path(folder))
        bed.run("init", "--lab")
        bed.run("deploy", "--host", "local", "--algo", CHAIN, "--yes")
        try:
            faults = [fault for name in ARMS for fault in judge(name, experiment(bed, name, sizes, given.plots))]
        finally:
            bed.run("undeploy", "--host", "local", "--purge", "--yes")
    print("\n".join(faults) or "both as they must be: nothing where nothing is, and something where something is")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
