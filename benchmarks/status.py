"""Measure `specctl status` of test hosts against one `ssh HOST true` to each in parallel, interleaved in one run.

The bar (issue 5): at most 1.2 × that, and 0.5 s. Every host serves the lab engine, so that status asks all that it asks of a real
one; none has an agent or a GPU. Prints medians, the ratio, and how the CPUs were spent: on two cores eight hosts and the operator
share them. Needs root and systemd-nspawn.
Usage: python benchmarks/status.py [--runs 9] [--hosts 8] [--keep]; exit 1 when the bar is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fleet import fleet as fleets  # noqa: E402  # after the path is set
from tests.fleet import state  # noqa: E402
from tests.fleet.fleet import Fleet  # noqa: E402
from tests.fleet.site import Site  # noqa: E402

NAME = "bench-status"
FACTOR, MORE_S = 1.2, 0.5
TICK_S = 0.01


def busy_s() -> float:
    """Return the seconds that all CPUs of the machine have worked since boot."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields) - fields[3] - fields[4]) * TICK_S


def timed(job: Callable[[], None]) -> tuple[float, float]:
    """Return the seconds that a job took, and the CPU seconds of the whole machine meanwhile."""
    busy, began = busy_s(), time.perf_counter()
    job()
    return time.perf_counter() - began, busy_s() - busy


class Jobs:
    """What is measured, on one fleet."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def ssh(self) -> None:
        """Run `true` on every host by OpenSSH, all at once."""
        script = "\n".join(f"ssh {name} true &" for name in self.site.hosts)
        self._run(["sh", "-c", f"{script}\nfor job in $(jobs -p); do wait $job || exit 1; done"])

    def status(self) -> None:
        """Show the table."""
        done = self.site.run("status", "--all")
        if done.returncode or done.stdout.count("ready, proven") != len(self.site.hosts):
            raise SystemExit(f"status is not whole:\n{done.stdout}\n{done.stderr}")

    def start(self) -> None:
        """Start specctl and read the inventory: what every command costs before it does anything."""
        self._run([str(fleets.SPECCTL), "inventory", "list"])

    def _run(self, argv: list[str]) -> None:
        done = self.site.fleet.run(argv, env=self.site.environment(), timeout_s=120.0)
        if done.returncode:
            raise SystemExit(f"{argv[0]} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")


def prepared(hosts: int) -> Fleet:
    """Bring the fleet up, or take the one that an earlier run kept."""
    if state.is_up(NAME):
        return fleets.attach(NAME)
    fleet = fleets.up(hosts, name=NAME, lifeline=False)
    site = Site(fleet=fleet, hosts=tuple(fleet.hosts))
    site.describe({"limits": {"load": "600s", "stall": "300s", "smoke": "300s"}})
    done = site.run("deploy", "--all", "--algo", "dflash", "--yes", timeout_s=600.0)
    if done.returncode:
        fleet.down()
        raise SystemExit(done.stderr)
    return fleet


def measured(fleet: Fleet, runs: int) -> Mapping[str, list[tuple[float, float]]]:
    """Run each job in turn, after one round for the caches."""
    jobs = Jobs(Site(fleet=fleet, hosts=tuple(fleet.hosts)))
    named = {"ssh true": jobs.ssh, "specctl status": jobs.status, "specctl inventory": jobs.start}
    for job in named.values():
        job()
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in named}
    for _ in range(runs):
        for name, job in named.items():
            took[name].append(timed(job))
    return took


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="leave the fleet up for another run")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    fleet = prepared(asked.hosts)
    try:
        took = measured(fleet, asked.runs)
    finally:
        if not asked.keep:
            fleet.down()
    wall = {name: statistics.median(wall for wall, _ in rows) for name, rows in took.items()}
    cpu = {name: statistics.median(cpu for _, cpu in rows) for name, rows in took.items()}
    bar_s = FACTOR * wall["ssh true"] + MORE_S
    held = wall["specctl status"] <= bar_s
    if asked.json:
        print(json.dumps({"wall_s": wall, "cpu_s": cpu, "bar_s": bar_s, "held": held, "hosts": asked.hosts}))
        return 0 if held else 1
    for name, rows in took.items():
        spread = f"{min(rows)[0]:.2f}-{max(rows)[0]:.2f}"
        print(f"{name:<18} {wall[name]:6.2f} s   ({spread} s)   {cpu[name]:5.2f} CPU s of the machine")
    print(f"status / ssh       {wall['specctl status'] / wall['ssh true']:6.2f}")
    print(f"bar                {bar_s:6.2f} s   (1.2 × ssh + 0.5 s)   {'held' if held else 'MISSED'}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
