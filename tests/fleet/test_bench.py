"""Bench over real SSH on a real host: measured, kept, compared; interrupted; and refused where it would mean nothing."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.nvidia import PROGRAM
from tests.fleet.site import PORT, Site, wait_for_line

SMALL = ("--tokens", "32", "--rounds", "2", "--prompts", "code", "--yes")
# A driver's tool with two GPUs that goes on as `-l 1` asks for.
TOOL = b"""#!/bin/sh
case "$*" in *power.draw*) ;; *) exit 1 ;; esac
while :; do
    echo "0, 300.00, 600.00, 1900, 60, 97, 1000, 0x0000000000000004"
    echo "1, 310.50, 600.00, 1800, 61, 96, 1000, 0x0000000000000044"
    sleep 0.2
done
"""
# Prints how many requests the engine has ended.
COUNT = f"""
from urllib.request import urlopen
lines = urlopen("http://127.0.0.1:{PORT}/metrics").read().decode().splitlines()
print([line for line in lines if line.startswith("sglang:num_requests_total")])
"""


@pytest.fixture
def served(site: Site, tmp_path: Path) -> Site:
    """Deploy the chain on a host, and keep what is measured in a folder of its own."""
    site.env["XDG_STATE_HOME"] = str(tmp_path)
    done = site.run("deploy", "--host", "gpu1", "--algo", "dflash", "--yes")
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture
def with_gpus(served: Site) -> Iterator[Site]:
    """Give the host two GPUs, as its driver's tool says."""
    served.host("gpu1").put(PROGRAM, TOOL, mode=0o755)
    yield served
    served.host("gpu1").output(["rm", PROGRAM])


def benches(site: Site) -> list[dict[str, object]]:
    """Return what is kept, oldest first."""
    found = site.read("bench", "list")["benches"]
    assert isinstance(found, list)
    return found


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for a command's end and return the rest of what it said."""
    return process.communicate(timeout=120)[1]


def test_bench_is_measured_kept_and_compared(served: Site) -> None:
    """Two benches of a chain over SSH: tokens, acceptance and power are there, nobody else was, and they compare."""
    words = ("bench", "--host", "gpu1", "-c", "1,4", "--runs", "2", *SMALL)
    first = served.run(*words, "--json", timeout_s=300)
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)["bench"]
    assert (told["subject"]["mode"], told["subject"]["release"], told["stopped"]) == ("dflash:block_size=8", "1", None)
    assert [level["name"] for level in told["levels"]] == ["1", "4"]
    for level in told["levels"]:
        for run in level["runs"]:
            assert run["tokens_s"] > 0
            assert run["failed"] == 0
            assert run["requests"] >= 2
            assert 1.0 < run["accept_length"] <= 8.0
            assert (run["foreign_requests"], run["foreign_tokens"], run["cached_ratio"]) == (0, 0, 0)
            # Less by the time that a busy machine takes to open the next connection; never more.
            assert level["concurrency"] / 2 < run["in_flight"] <= level["concurrency"] + 1e-9

    second = served.run(*words, "--note", "again", "--plot", "bench.svg", timeout_s=300)
    assert second.returncode == 0, second.stderr
    assert "measured   4: " in second.stderr
    kept = benches(served)
    assert [each["note"] for each in kept] == [None, "again"]
    assert kept[0] == told
    shown = served.run("bench", "show", "last-1")
    assert (shown.returncode, "dflash:block_size=8, proven" in shown.stdout) == (0, True)
    compared = served.read("bench", "compare")["comparison"]
    assert isinstance(compared, dict)
    assert (compared["a"], compared["b"], compared["refusals"]) == (kept[0]["id"], kept[1]["id"], [])
    assert {row["level"] for row in compared["rows"]} == {"1", "4"}


def test_power_of_the_gpus_is_read_meanwhile(with_gpus: Site) -> None:
    """Without an agent the driver's own tool tells power, clocks and why they are held down, and ends with the bench."""
    done = with_gpus.run("bench", "--host", "gpu1", "-c", "2", "--runs", "1", "--seconds", "3", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["bench"]
    (level,) = told["levels"]
    gpus = level["runs"][0]["gpus"]
    assert (told["gpu_source"], gpus["count"], gpus["power_w"]) == ("nvidia-smi", 2, 610.5)
    assert gpus["sm_clock_least_hz"] == 1.8e9
    assert gpus["throttle"] == ["hw_thermal", "sw_power_cap"]
    assert "clocks were held down: hw_thermal" in level["notes"]
    with_gpus.host("gpu1").console(
        ["sh", "-c", f"for i in $(seq 50); do pgrep -f {PROGRAM} || exit 0; sleep 0.1; done; exit 1"]
    )


def test_interrupt_keeps_the_levels_that_are_whole(served: Site) -> None:
    """Ctrl-C in the second level ends at once with 130, and the first level is kept and shown."""
    process = served.start("bench", "--host", "gpu1", "-c", "1,8", "--runs", "1", "--seconds", "2", *SMALL)
    wait_for_line(process, "measured")
    process.send_signal(signal.SIGINT)
    told = ended(process)
    assert process.returncode == 130, told
    (kept,) = benches(served)
    assert isinstance(kept["levels"], list)
    assert ([level["name"] for level in kept["levels"]], kept["stopped"]) == (["1"], "interrupted")


def test_restart_in_between_ends_the_bench(served: Site) -> None:
    """A bench takes no lease: a restart wins, and the bench ends by itself, long before its time, and says why."""
    process = served.start("bench", "--host", "gpu1", "-c", "2", "--runs", "2", "--seconds", "300", *SMALL)
    wait_for_line(process, "in flight")
    restarted = served.run("restart", "--host", "gpu1", "--yes")
    assert restarted.returncode == 0, restarted.stderr
    told = ended(process)
    assert process.returncode == 4, told
    assert "the bench is not whole: " in told
    assert "request after request failed" in told or "the engine was started anew meanwhile" in told
    assert benches(served) == []


def test_bench_is_refused_where_it_would_mean_nothing(served: Site) -> None:
    """While somebody holds the lease (5), where answers do not fit the context (2), and where nothing serves (6)."""
    assert served.run("lock", "acquire", "--host", "gpu1", "--reason", "work").returncode == 0
    held = served.run("bench", "--host", "gpu1", "-c", "1", *SMALL)
    assert (held.returncode, "acts on server lab (work)" in held.stderr) == (5, True)
    assert served.run("lock", "release", "--host", "gpu1").returncode == 0

    long = served.run("bench", "--host", "gpu1", "-c", "1", "--tokens", "5000", "--yes")
    assert (long.returncode, "do not fit into the server's context" in long.stderr) == (2, True)

    assert served.run("stop", "--host", "gpu1", "--yes").returncode == 0
    down = served.run("bench", "--host", "gpu1", "-c", "1", *SMALL)
    assert (down.returncode, "does not serve now" in down.stderr) == (6, True)
    assert benches(served) == []


def test_dry_run_sends_nothing(served: Site) -> None:
    """A dry run says what would be sent; the engine has answered no request more than before."""
    count = ["python3", "-c", COUNT]
    before = served.host("gpu1").output(count)
    done = served.run("bench", "--host", "gpu1", "-c", "1,4", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "levels   1 4" in done.stdout
    assert "running  nothing else" in done.stdout
    assert served.host("gpu1").output(count) == before
