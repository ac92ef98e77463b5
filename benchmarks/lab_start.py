"""How long the lab's server takes from its process' start to /ready, and what memory it then holds.

`python benchmarks/lab_start.py [--repeat N] [--model-path DIR] [--draft-path DIR]` exits 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODELS = Path(__file__).parents[1] / "specctl" / "lab" / "models"
TARGET_S = 1.0
TARGET_MIB = 150.0
GIVE_UP_S = 30.0


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--model-path", type=Path, default=MODELS / "target")
    parser.add_argument("--draft-path", type=Path, default=MODELS / "dflash")
    found = parser.parse_args()
    runs = [measure(found.model_path, found.draft_path) for _ in range(found.repeat)]
    seconds, mebibytes = [run[0] for run in runs], [run[1] for run in runs]
    median_s, highest_mib = statistics.median(seconds), max(mebibytes)
    print(
        f"process start -> /ready 200: median {median_s:.3f} s, {min(seconds):.3f} to {max(seconds):.3f} s ({found.repeat} runs)"
    )
    print(f"resident memory when ready:  {highest_mib:.1f} MiB at most")
    print(f"targets: {TARGET_S:.1f} s, {TARGET_MIB:.0f} MiB")
    return 0 if median_s <= TARGET_S and highest_mib <= TARGET_MIB else 1


def measure(target: Path, draft: Path) -> tuple[float, float]:
    """Start a server once; return seconds to ready and its resident memory in MiB."""
    port = free_port()
    models = (
        "--model-path",
        str(target),
        "--speculative-draft-model-path",
        str(draft),
        "--speculative-algorithm",
        "DDTREE",
    )
    argv = (sys.executable, "-m", "specctl.lab", "serve", *models, "--port", str(port), "--enable-metrics")
    began = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not ready(port):
            if process.poll() is not None or time.monotonic() - began > GIVE_UP_S:
                raise SystemExit(f"the server did not become ready (exit code {process.poll()})")
            time.sleep(0.005)
        return time.monotonic() - began, resident_mib(process.pid)
    finally:
        process.kill()
        process.wait()


def ready(port: int) -> bool:
    """Tell whether /ready answers 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def resident_mib(pid: int) -> float:
    """Return a process' resident memory."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def free_port() -> int:
    """Return a free port of the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
