"""Record how the lab engine's throughput varies by itself: window by window within a start, and from start to start.

`python benchmarks/noise.py [--out tests/data/lab-noise] [--loads 32] [--seconds 6]`.
What `specctl ab` promises of its error rates is held against these series (tests/unit/measure/test_ab_soak.py): they keep the
machine's autocorrelation and drift, and what one start of the engine decides for all that follows. Nothing is changed between the
starts. `--table` prints what the recorded series say.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from specctl.adapters.local import LocalTransport
from specctl.adapters.transport import Transport
from specctl.fleet.overrides import Overrides
from specctl.fleet.select import Selection
from specctl.fleet.types import Host, Server
from specctl.measure import prompts
from specctl.measure.figures import window_of
from specctl.measure.load import Closed, Level, Run
from specctl.ops import inventory
from specctl.ops.engine_http import EngineClient
from specctl.ops.load import run_level
from specctl.rollout import launch as launches

OUT = Path(__file__).parents[1] / "tests" / "data" / "lab-noise"
WINDOW_S = 0.5
TOKENS = 64
READY_S = 60.0
SETTINGS: tuple[tuple[str, Mapping[str, int], int], ...] = (
    ("none", {}, 1),
    ("dflash", {"block_size": 8}, 1),
    ("ddtree", {"tree_budget": 16, "topk_cap": 8}, 4),
)


class Here:
    """The way to this machine."""

    def __init__(self, host: Host) -> None:
        self._transport = LocalTransport(host)

    @property
    def transport(self) -> Transport:
        """Return the connection."""
        return self._transport


def server_of(algo: str, knobs: Mapping[str, int]) -> tuple[Host, Server]:
    """Return this machine and a lab server on a free port of it, without keys."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inventory.yaml"
        inventory.write_starter(path, lab=True)
        over = Overrides(algo=algo, knobs=knobs, options={"load-seconds": 0})
        ((host, server),) = inventory.load_selected([str(path)], Selection(hosts=("local",)), over)
    return host, replace(server, secrets={}, port=inventory.free_port())


def one_start(host: Host, server: Server, concurrency: int, seconds: float) -> list[float]:
    """Start the engine, load it for so long, and return its tokens a second by windows."""
    words = launches.build(host, server, server.algo).words()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = EngineClient.of(Here(host), server)
        deadline = time.monotonic() + READY_S
        while client.get("/ready").status != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the lab engine did not come up: {words}")
            time.sleep(0.05)
        level = Level(
            pace=Closed(concurrency=concurrency), tokens=TOKENS, rounds=1, seconds=seconds, limit_s=10 * seconds
        )
        return windows(run_level(client, level, prompts.shipped(prompts.MIXED)))
    finally:
        process.terminate()
        process.wait()


def windows(run: Run) -> list[float]:
    """Return the tokens a second of each whole window of the steady stretch."""
    window = window_of(run)
    if window is None:
        raise SystemExit(f"no steady stretch: {run.stopped}")
    counts = [0.0] * int(window.span_s / WINDOW_S)
    for timing in run.timings:
        before = 0
        for at_s, count in zip(timing.at_s, timing.counts, strict=True):
            place = int((at_s - window.opened_s) / WINDOW_S)
            if window.opened_s < at_s and place < len(counts):
                counts[place] += count - before
            before = count
    return [round(count / WINDOW_S, 3) for count in counts]


def record(algo: str, knobs: Mapping[str, int], concurrency: int, loads: int, seconds: float) -> dict[str, object]:
    """Record one setting: so many starts, one after the other."""
    host, server = server_of(algo, knobs)
    began = time.monotonic()
    rows = []
    for number in range(loads):
        at_s = time.monotonic() - began
        rows.append({"began_s": round(at_s, 3), "tokens_s": one_start(host, server, concurrency, seconds)})
        print(f"{algo} at {concurrency}: start {number + 1} of {loads}", flush=True)
    return {
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "engine": "specctl.lab",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "algo": algo,
        "knobs": dict(knobs),
        "concurrency": concurrency,
        "tokens": TOKENS,
        "window_s": WINDOW_S,
        "loads": rows,
    }


def table(folder: Path) -> None:
    """Print what the series of a folder say: level, spread within a start and between starts, autocorrelation."""
    print("| series | starts | tok/s | spread of a window | spread between starts | lag-1 autocorrelation of windows |")
    print("|---|---:|---:|---:|---:|---:|")
    for path in sorted(folder.glob("*.json")):
        loads = [row["tokens_s"] for row in json.loads(path.read_text())["loads"]]
        means = [statistics.fmean(row) for row in loads]
        inside = statistics.fmean(statistics.stdev(row) / statistics.fmean(row) for row in loads)
        between = statistics.stdev(means) / statistics.fmean(means)
        lag = statistics.fmean(autocorrelation(row) for row in loads)
        print(
            f"| {path.stem} | {len(loads)} | {statistics.fmean(means):.0f} | {100 * inside:.1f} % | {100 * between:.1f} % "
            f"| {lag:+.2f} |"
        )


def autocorrelation(values: Sequence[float]) -> float:
    """Return the correlation of each value with the next."""
    mean = statistics.fmean(values)
    spread = sum((value - mean) ** 2 for value in values)
    return sum((a - mean) * (b - mean) for a, b in itertools.pairwise(values)) / spread if spread else 0.0


def main() -> None:
    """Record every setting, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--loads", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        table(given.out)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    for algo, knobs, concurrency in SETTINGS:
        found = record(algo, knobs, concurrency, given.loads, given.seconds)
        path = given.out / f"{algo}-{concurrency}.json"
        path.write_text(json.dumps(found) + "\n")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
