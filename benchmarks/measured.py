"""Run bench, ab, doctor and calibrate against the lab engine on a test host, as an operator does, and write docs/measured.md.

One host with systemd and sshd, the agent installed there, everything over SSH. The page holds what the commands printed, and their
plots; nothing in it is written by hand but the words between. Needs root and systemd-nspawn, and a machine that does nothing else.
Usage: python benchmarks/measured.py [--quick] [--output FOLDER]. `--quick` measures little, to see that the page comes out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fleet import fleet as fleets  # noqa: E402  # after the path is set
from tests.fleet import wheelhouse as wheelhouses  # noqa: E402
from tests.fleet.site import Site  # noqa: E402

HOST = "gpu1"
WIDTH = "112"
LONGEST_S = 3600.0
HEAD = """# A real run

What `bench`, `ab`, `doctor` and `calibrate` say of a real, small engine: the [lab engine](lab-engine.md) on a test host
([test-fleet.md](test-fleet.md)), over SSH, by `python benchmarks/measured.py`.
The machine has {cores} cores, which engine and sender share; its numbers are those of a small model on a processor, not of a GPU.
Each block is what the command printed.
"""


@dataclass(slots=True)
class Page:
    """The page as it grows."""

    site: Site
    images: Path
    parts: list[str] = field(default_factory=list)
    took: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Add words."""
        self.parts.append(text.strip() + "\n")

    def run(self, *words: str, codes: Sequence[int] = (0,), shown: bool = True) -> str:
        """Run a command and, where `shown`, show what it printed; raises SystemExit where it ended with another code."""
        began_s = time.monotonic()
        done = self.site.run(*words, timeout_s=LONGEST_S)
        self.took.append(f"{words[0]} {time.monotonic() - began_s:.0f} s")
        print(f"$ specctl {' '.join(words)}\n{done.stdout}", flush=True)
        if done.returncode not in codes:
            raise SystemExit(f"specctl {' '.join(words)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
        if shown:
            told = [word for word in words if word != "--yes"]
            self.parts.append(f"```console\n$ specctl {' '.join(told)}\n{done.stdout.rstrip()}\n```\n")
        return done.stdout

    def picture(self, name: str, what: str) -> None:
        """Take a plot from the operator's home into the page."""
        shutil.copy(self.site.fleet.home / name, self.images / f"measured-{name}")
        self.parts.append(f"![{what}](images/measured-{name})\n")

    def text(self) -> str:
        """Return the page."""
        head = HEAD.format(cores=os.cpu_count())
        return "\n".join([head.strip() + "\n", *self.parts])


def bench(page: Page, *, quick: bool) -> None:
    """Measure the tree and the chain."""
    levels, tokens, runs = ("1,2", "32", "2") if quick else ("1,2,4,8", "128", "3")
    page.say("## bench\n\nThe chain at rising concurrency ([bench.md](bench.md) defines every figure).")
    common = ("--host", HOST, "--concurrency", levels, "--tokens", tokens, "--runs", runs, "--seed", "1", "--yes")
    page.run("bench", *common, "--plot", "bench.svg")
    page.picture("bench.svg", "Throughput and latencies by concurrency")


def compare(page: Page, *, quick: bool) -> None:
    """The decisive experiment, once where nothing may differ and once where something must."""
    size = (
        ("--tokens", "32", "--runs", "1", "--cycles", "2")
        if quick
        else ("--tokens", "128", "--runs", "3", "--cycles", "4")
    )
    page.say(
        "## ab\n\nA tree of one chain (seven nodes, one alternative a depth) against the chain: the same drafts are verified,"
        " so that answers and accept length must be the same to the last digit ([ab.md](ab.md)).\n"
        "A step of the lab's tree code costs more than one of its chain, and throughput is lower by as much as steps a second are."
    )
    page.run(
        "ab", "--host", HOST, "--a", "dflash", "--b", "ddtree:tree_budget=7,topk_cap=1", "--concurrency", "1", *size,
        "--report", "same.md", "--yes",
    )  # fmt: skip
    page.say("The same with a real tree, of 16 nodes.")
    page.run(
        "ab", "--host", HOST, "--a", "dflash", "--b", "ddtree:tree_budget=16,topk_cap=8", "--concurrency", "1", *size,
        "--report", "tree.md", "--yes",
    )  # fmt: skip
    page.picture("tree-segments.svg", "Every segment of the experiment")
    page.picture("tree-differences.svg", "Differences with their intervals")


def doctor(page: Page) -> None:
    """A healthy server, then the field's own case from its figures alone."""
    page.say("## doctor\n\nA healthy server, with a short load of the doctor's own ([doctor.md](doctor.md)).")
    page.run("doctor", "--host", HOST, "--live")


def calibrate(page: Page, *, quick: bool) -> None:
    """Sweep modes and concurrencies for the agent."""
    page.say(
        "## calibrate\n\nWhich mode for which concurrency; the agent reads the file that comes of it"
        " ([calibrate.md](calibrate.md))."
    )
    for_, span = ("1m", "1..2") if quick else ("7m", "1..8")
    words = (
        "--host",
        HOST,
        "--for",
        for_,
        "--concurrency",
        span,
        "--output",
        "calibration.json",
        "--plot",
        "calibrate.svg",
        "--yes",
    )
    page.run("calibrate", *words)
    page.picture("calibrate.svg", "Throughput by concurrency and by packed tokens")


def main() -> int:
    """Make the host, run the commands, write the page, take the host down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    images = options.output / "images"
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wheels = wheelhouses.fetch(Path(folder))
        fleet = fleets.up(1, name="bench-measured", lifeline=True)
        try:
            site = Site(fleet=fleet, hosts=tuple(fleet.hosts), env={"COLUMNS": WIDTH})
            fleet.trust_hosts()
            site.describe(
                {"agent": {"mode": "observe", "algos": ["none", "dflash", "ddtree"]}, "limits": {"drain": "20s"}}
            )
            page = Page(site=site, images=images)
            page.run("deploy", "--host", HOST, "--yes", shown=False)
            page.run("agent", "install", "--host", HOST, "--wheelhouse", str(wheels), "--yes", shown=False)
            bench(page, quick=options.quick)
            compare(page, quick=options.quick)
            doctor(page)
            calibrate(page, quick=options.quick)
        finally:
            fleet.down()
    (options.output / "measured.md").write_text(page.text(), encoding="utf-8")
    print(", ".join(page.took))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
