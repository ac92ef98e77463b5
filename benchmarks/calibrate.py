"""Hold `specctl calibrate` against brute force on the lab engine: the same modes at many concurrencies, all measured alike.

Deploys the lab on this machine in a folder of its own, calibrates it by the command line within a time limit, then measures every
mode at every concurrency of a fine grid in so many rounds, in an order drawn for each round, by nothing of the sweep's but the load
itself. Prints for each crossover and each stretch of the calibration what brute force says there, and exits 1 where nothing was
decided, or where brute force is certain of another best mode, by three standard errors of paired differences.

Usage: python benchmarks/calibrate.py [--for 10m] [--rounds 6] [--seconds 4] [--most 16] [--mode MODE …] [--docs]
--docs puts what the calibration printed, and its plot, into docs/calibrate.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from specctl.control import calibration
from specctl.control import mode as modes
from specctl.control.calibration import Calibration
from specctl.control.crossovers import Stretch
from specctl.control.mode import Mode
from specctl.fleet.select import Selection
from specctl.fleet.types import Host, Server
from specctl.measure import prompts
from specctl.measure.chance import seeded
from specctl.measure.figures import figures
from specctl.measure.load import Closed, Level
from specctl.ops import inventory as inventories
from specctl.ops.contact import Contact, contacts
from specctl.ops.engine_http import EngineClient
from specctl.ops.engine_live import Engine, accepted, fields
from specctl.ops.load import run_level

MODES = (
    "none",
    "dflash:block_size=8",
    "ddtree:block_size=8,topk_cap=8,tree_budget=4",
    "ddtree:block_size=8,topk_cap=8,tree_budget=16",
)
FINE = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
ERRORS = 3.0
DOCS = Path(__file__).resolve().parent.parent / "docs"
KEY = "sk-benchmark-calibrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Brute:
    """Logarithms of tokens a second by concurrency and mode, one a round."""

    logs: Mapping[int, Mapping[Mode, Sequence[float]]]

    def best(self, at: int) -> Mode:
        """Return the mode with the highest mean."""
        return max(self.logs[at], key=lambda mode: fmean(self.logs[at][mode]))

    def surely_better(self, at: int, one: Mode, other: Mode) -> bool:
        """Claim that one mode leads another by more than three standard errors of their differences in the same rounds."""
        pairs = [a - b for a, b in zip(self.logs[at][one], self.logs[at][other], strict=True)]
        return fmean(pairs) > ERRORS * stdev(pairs) / math.sqrt(len(pairs))

    def contradicts(self, at: int, said: Sequence[Mode]) -> bool:
        """Claim that the best mode here is for certain none of those that were said."""
        if at not in self.logs:
            return False
        best = self.best(at)
        return best not in said and all(self.surely_better(at, best, each) for each in said if each in self.logs[at])


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[tuple[Host, Server]]:
    """Yield a deployed lab engine on this machine; its supervisor is ended afterwards."""
    os.environ.update(LAB_API_KEY=KEY, XDG_STATE_HOME=str(folder / "state"))
    command("init", "--lab", folder=folder)
    path = folder / "inventory.yaml"
    path.write_text(
        path.read_text().replace("load-seconds: 2", f"max-running-requests: {max(FINE)}\n      load-seconds: 0")
    )
    try:
        command("deploy", "--host", "local", "--algo", "dflash", "--yes", folder=folder)
        (pair,) = inventories.load_selected((str(path),), Selection(everything=True), None)
        yield pair
    finally:
        for file in folder.rglob("supervisord.pid"):
            os.kill(int(file.read_text()), signal.SIGTERM)


def command(*words: str, folder: Path) -> str:
    """Run a specctl command that must go well, its progress shown, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "specctl", *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def brute_force(
    pair: tuple[Host, Server], wanted: Sequence[Mode], grid: Sequence[int], rounds: int, seconds: float
) -> Brute:
    """Measure every mode at every concurrency, each round in an order of its own."""
    host, server = pair
    chance = seeded(1)
    logs: dict[int, dict[Mode, list[float]]] = {at: {mode: [] for mode in wanted} for at in grid}
    texts = prompts.shipped(prompts.MIXED)
    with contacts([host]) as reached:
        contact = reached[host.name]
        assert isinstance(contact, Contact)
        engine = Engine(contact, server)
        for turn in range(rounds):
            for at in grid:
                for mode in chance.sample(list(wanted), len(wanted)):
                    assert accepted(engine.set(fields(server.profile, mode)))
                    level = Level(
                        pace=Closed(concurrency=at), tokens=128, rounds=1, seconds=seconds, seed=1000 + turn * 100 + at
                    )
                    found = figures(run_level(EngineClient.of(contact, server), level, texts)).tokens_s
                    assert found, f"{mode} at {at} measured nothing"
                    logs[at][mode].append(math.log(found))
            print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
    return Brute(logs=logs)


def compare(said: Calibration, brute: Brute) -> bool:
    """Print both answers side by side; return whether they agree, and in something that was decided."""
    names = {mode: str(place) for place, mode in enumerate(next(iter(brute.logs.values())), start=1)}
    print("\n" + "   ".join(f"{name} {mode}" for mode, name in names.items()))
    print(
        f"{'at once':>8}"
        + "".join(f"{name:>8}" for name in names.values())
        + "  tok/s by brute force, its best, the calibration's"
    )
    wrong: list[str] = []
    for at, rows in brute.logs.items():
        told = next((each for each in said.said.stretches if each.low <= at <= each.high), None)
        if told is not None and brute.contradicts(at, told.modes):
            wrong.append(f"at {at}")
        rates = "".join(f"{math.exp(fmean(logs)):>8.0f}" for logs in rows.values())
        print(f"{at:>8}{rates}  {names[brute.best(at)]:<4}{_words(told, names)}")
    for each in said.said.crossovers:
        if brute.contradicts(int(each.low), each.before) or brute.contradicts(int(each.high), each.after):
            wrong.append(f"crossover {each.low:g} to {each.high:g}")
        change = f"{_named(each.before, names)} → {_named(each.after, names)}"
        found = _crossing(brute, each.before, each.after)
        print(f"crossover {change}: {each.low:g} to {each.high:g}; brute force: {found}")
    decided = len([each for each in said.said.stretches if each.decided]) + len(said.said.crossovers)
    print(f"contradicted: {', '.join(wrong)}" if wrong else f"{decided} statements, none contradicted")
    return not wrong and decided > 0


def _named(wanted: Sequence[Mode], names: Mapping[Mode, str]) -> str:
    return " or ".join(names[mode] for mode in wanted)


def _words(told: Stretch | None, names: Mapping[Mode, str]) -> str:
    if told is None:
        return "between two stretches"
    return _named(told.modes, names) + ("" if told.decided else " (not decided)")


def _crossing(brute: Brute, before: Sequence[Mode], after: Sequence[Mode]) -> str:
    """Say between which concurrencies the best mode goes from one set to the other."""
    last = [at for at in brute.logs if brute.best(at) in before]
    first = [at for at in brute.logs if brute.best(at) in after and (not last or at > last[-1])]
    return f"after {last[-1]}, by {first[0]}" if last and first else "none within the grid"


def document(shown: str, plot: bytes) -> None:
    """Put what a calibration printed, and its plot, into the docs."""
    page = DOCS / "calibrate.md"
    text = page.read_text(encoding="utf-8")
    block = "\n".join(line.rstrip() for line in shown.splitlines()).strip("\n")
    before, mark, rest = text.partition("<!-- result -->\n```\n")
    assert mark, "docs/calibrate.md has a block to fill"
    page.write_text(before + mark + block + "\n```\n" + rest.partition("\n```\n")[2], encoding="utf-8")
    (DOCS / "calibrate.svg").write_bytes(plot)


def main() -> int:
    """Calibrate, measure by brute force, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="length", default="10m")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--mode", action="append", default=None)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    wanted = tuple(modes.parse(text) for text in given.mode or MODES)
    with tempfile.TemporaryDirectory() as name, lab(Path(name)) as pair:
        words = [
            "calibrate",
            "--host",
            "local",
            "--for",
            given.length,
            "-c",
            f"1..{given.most}",
            "--yes",
            "--output",
            f"{name}/found.json",
        ]
        asked = [word for mode in wanted for word in ("--mode", str(mode))]
        shown = command(*words, *asked, "--plot", f"{name}/calibrate.svg", folder=Path(name))
        print(shown)
        if given.docs:
            document(shown.replace(name, "."), Path(name, "calibrate.svg").read_bytes())
        content = json.loads(Path(name, "found.json").read_text())
        grid = [at for at in FINE if at <= given.most]
        said = calibration.parse(content)
        # As the calibration calls them, with every knob: a mode may be asked for by fewer.
        brute = brute_force(pair, tuple(said.table.modes), grid, given.rounds, given.seconds)
    return 0 if compare(said, brute) else 1


if __name__ == "__main__":
    raise SystemExit(main())
