"""Time `specctl simulate` on a concurrency of 14 days by the second that changes at most steps: all policies, start-up included.

Prints seconds of the clock and of the processor for a live switch and for a restart; the aim is 10 s of the clock. Usage:
python benchmarks/simulate.py [--days 14]
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from specctl.control.replay.arrivals import uniform

DAY_S = 86_400
AIM_S = 10.0
MODEL = Path(__file__).resolve().parent.parent / "tests" / "data" / "traces" / "model.json"


def levels(days: int) -> Iterator[int]:
    """Yield a load that goes up and down with the day and by chance: two steps of three change it."""
    level = 2.0
    for second, chance in zip(range(days * DAY_S), uniform(1), strict=False):
        wanted = 4 + 4 * math.sin(2 * math.pi * second / DAY_S)
        level = max(0.0, level + math.floor(chance * 3) - 1 + 0.05 * (wanted - level))
        yield round(level)


def run(trace: Path, cost: str) -> tuple[float, float]:
    """Return seconds of the clock and of the processor that one simulation takes; raise when it fails."""
    argv = [
        str(Path(sys.executable).parent / "specctl"),
        "simulate",
        "--trace",
        str(trace),
        "--model",
        str(MODEL),
        "--cost",
        cost,
    ]
    begin, before = time.perf_counter(), os.times()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begin, used


def main() -> int:
    """Print a line a cost; exit 1 when the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=14)
    days = parser.parse_args().days
    met = True
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "long.csv"
        with trace.open("w", encoding="utf-8") as file:
            file.write("time_s,concurrency\n")
            file.writelines(f"{second},{level}\n" for second, level in enumerate(levels(days)))
        changes = sum(one != two for one, two in itertools.pairwise(levels(days)))
        print(f"{days} days, {days * DAY_S} steps, {changes} changes, {os.cpu_count()} cores (aim {AIM_S:.0f} s)")
        for cost in ("live", "restart"):
            clock_s, processor_s = run(trace, cost)
            met = met and clock_s < AIM_S
            print(f"{cost:<8} {clock_s:>6.1f} s  {processor_s:>6.1f} s of the processor")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
