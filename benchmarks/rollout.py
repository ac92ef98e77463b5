"""Measure a rollout on 8 test hosts against pyinfra and parallel OpenSSH, interleaved in one run.

The job: put a changed unit on every host and restart it (specctl: facts, plan, lease, write, swap, stop, start, record; gate and
smoke off, capability cache warm), and a plan that finds nothing to do. Prints medians and ratios; the aims are 1.0 and 0.5 of
pyinfra. Needs root and systemd-nspawn. Usage: python benchmarks/rollout.py [--runs 7] [--hosts 8]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fleet import fleet as fleets  # noqa: E402  # after the path is set
from tests.fleet.fleet import Fleet  # noqa: E402

UNIT = "specctl-idle.service"
AIMS = {"specctl deploy": 1.0, "specctl no-op plan": 0.5}
PYINFRA = """
from pyinfra.operations import files, systemd
files.put(src="{source}", dest="/etc/systemd/system/{unit}", mode="644", _sudo=False)
systemd.daemon_reload()
systemd.service(service="{unit}", running=True, restarted=True, enabled=True)
"""


def inventory(hosts: tuple[str, ...], mark: int) -> str:
    """Return an inventory of one idle server a host; `mark` makes its unit another one."""
    profile = {"extends": "lab", "module": ["http.server"], "flags": {"bind": "--bind"}, "algos": {"none": {}}}
    server = {
        "engine": "idle",
        "target": "nothing",
        "port": 8000,
        "algo": "none",
        "python": sys.executable,
        "env": {"MARK": str(mark)},
        "limits": {"drain": "5s", "stop": "5s"},
    }
    return yaml.safe_dump(
        {
            "engine_profiles": {"idle": profile},
            "models": {"nothing": {"path": str(ROOT / "specctl" / "lab" / "models" / "target")}},
            "servers": {"idle": server},
            "hosts": {name: {"servers": ["idle"]} for name in hosts},
        },
        sort_keys=False,
    )


class Job:
    """The same job by three tools on one fleet; each call changes the unit."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.hosts = tuple(fleet.hosts)
        self.mark = 0

    def _run(self, argv: list[str]) -> float:
        begin = time.perf_counter()
        done = self.fleet.run(argv, timeout_s=120.0)
        took = time.perf_counter() - begin
        if done.returncode:
            raise SystemExit(f"{argv[0]} failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return took

    def _write(self) -> None:
        self.mark += 1
        (self.fleet.home / "inventory.yaml").write_text(inventory(self.hosts, self.mark))

    def deploy(self) -> float:
        """Deploy a changed unit by specctl."""
        self._write()
        return self._run([str(fleets.SPECCTL), "deploy", "--all", "--no-gate", "--yes"])

    def plan(self) -> float:
        """Plan what is deployed already."""
        return self._run([str(fleets.SPECCTL), "deploy", "--all", "--dry-run"])

    def _unit(self) -> Path:
        """Write the unit that specctl would, changed, for the others to copy."""
        self._write()
        done = self.fleet.run([str(fleets.SPECCTL), "render", "--host", self.hosts[0]])
        path = self.fleet.home / UNIT
        path.write_text(done.stdout)
        return path

    def pyinfra(self) -> float:
        """Copy, reload, enable, restart by pyinfra."""
        source = self._unit()
        (self.fleet.home / "hosts.py").write_text(f"hosts = {list(self.hosts)!r}\n")
        (self.fleet.home / "job.py").write_text(PYINFRA.format(source=source, unit=UNIT))
        return self._run([str(fleets.SPECCTL.with_name("pyinfra")), "-y", "hosts.py", "job.py"])

    def openssh(self) -> float:
        """Copy, reload, enable, restart by one `ssh` a host, all at once."""
        source = self._unit()
        command = (
            f"cat > /etc/systemd/system/{UNIT} && systemctl daemon-reload && systemctl enable -q {UNIT} && "
            f"systemctl restart {UNIT} && systemctl is-active -q {UNIT}"
        )
        script = "\n".join(f"ssh {name} '{command}' < {source} &" for name in self.hosts)
        return self._run(["sh", "-c", f"{script}\nfor job in $(jobs -p); do wait $job || exit 1; done"])


def measure(job: Job, runs: int) -> dict[str, list[float]]:
    """Run every tool in turn, `runs` times, after one round for the caches; returns seconds by tool."""
    tools: dict[str, Callable[[], float]] = {
        "pyinfra": job.pyinfra,
        "openssh, parallel": job.openssh,
        "specctl deploy": job.deploy,
        "specctl no-op plan": job.plan,
    }
    cold = {name: tool() for name, tool in tools.items()}
    print("cold: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in cold.items()))
    timed: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(runs):
        for name, tool in tools.items():
            timed[name].append(tool())
    return timed


def main() -> int:
    """Bring a fleet up, measure, print, take it down; exit 1 when an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--hosts", type=int, default=8)
    options = parser.parse_args()
    fleet = fleets.up(options.hosts, name="bench-rollout", lifeline=True)
    try:
        timed = measure(Job(fleet), options.runs)
    finally:
        fleet.down()
    rival = statistics.median(timed["pyinfra"])
    met = True
    print(f"{'tool':<20} {'median':>8} {'min':>8} {'max':>8} {'ratio':>6}  aim   ({options.hosts} hosts)")
    for name, values in timed.items():
        median = statistics.median(values)
        aim = AIMS.get(name)
        met = met and (aim is None or median / rival <= aim)
        spread = f"{median:>7.2f}s {min(values):>7.2f}s {max(values):>7.2f}s"
        print(f"{name:<20} {spread} {median / rival:>6.2f}  {'' if aim is None else aim}")
    return 0 if met else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired as error:
        sys.exit(f"a tool did not end: {error}")
