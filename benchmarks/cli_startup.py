"""Measure start-up against pyinfra in one run, interleaved: `specctl --help` and `specctl render` of one host.

Prints medians and ratios; the aims are 0.5 and 0.7 of `pyinfra --help`. Usage: python benchmarks/cli_startup.py [--runs 15]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
# Bytecode is kept between starts, as for any user, whatever the machine that measures is set to.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
AIMS = {"specctl --help": 0.5, "specctl render": 0.7}


def commands() -> dict[str, list[str]]:
    """Return what is timed, by name; pyinfra is the rival."""
    field = str(ROOT / "inventory" / "field.yaml")
    return {
        "pyinfra --help": [str(BIN / "pyinfra"), "--help"],
        "specctl --help": [str(BIN / "specctl"), "--help"],
        "specctl render": [str(BIN / "specctl"), "render", "--inventory", field, "--host", "ct200", "--algo", "dflash"],
    }


def seconds(argv: list[str]) -> float:
    """Return the wall time of one run; raise when the command fails."""
    begin = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env=ENVIRONMENT)
    return time.perf_counter() - begin


def main() -> int:
    """Time every command in turn, `runs` times, and print medians and ratios; exit 1 when an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    timed: dict[str, list[float]] = {name: [] for name in commands()}
    for argv in commands().values():
        seconds(argv)  # once for the caches
    for _ in range(runs):
        for name, argv in commands().items():
            timed[name].append(seconds(argv))
    rival = statistics.median(timed["pyinfra --help"])
    met = True
    print(f"{'command':<16} {'median':>8} {'min':>8} {'max':>8} {'ratio':>6}  aim")
    for name, values in timed.items():
        median = statistics.median(values)
        aim = AIMS.get(name)
        met = met and (aim is None or median / rival <= aim)
        figures = (
            f"{median * 1000:>6.0f}ms {min(values) * 1000:>6.0f}ms {max(values) * 1000:>6.0f}ms {median / rival:>6.2f}"
        )
        print(f"{name:<16} {figures}  {'' if aim is None else aim}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
