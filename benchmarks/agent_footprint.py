"""Measure what the agent costs a GPU host, side by side with nvitop-exporter on the same stand-in NVML of eight GPUs.

Both run at the same time, at 1 Hz, and their pages are read each 15 s. First `--seconds` on the real clock, which tells
processor time as it is where other programs use the caches too; then `--ticks` on a clock that runs `--speed` times as
fast (faster.c), which tells the memory after an hour. The agent is the whole one, put together as its daemon does it,
with an engine that answers from recordings.

Usage: python benchmarks/agent_footprint.py [--seconds 60] [--ticks 3600] [--speed 30]. Exit 1 when the budget is missed.
With `--soak` the agent alone turns `--ticks` times, and exit 1 says that its memory grew.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from specctl.rollout import server_note  # noqa: E402 - the checkout is put on the path first
from tests.fakes import LOCAL, SERVER  # noqa: E402
from tests.nvml import standin  # noqa: E402

HERE = Path(__file__).resolve().parent
CPU_BUDGET_RATIO = 0.005
MEMORY_BUDGET_BYTES = 50_000_000
# Of a soak: by the third tenth windows and buffers are full and files were saved; a day's slices of the profile fill on, 0.3 MB.
FULL_BY = 3
GROWTH_BUDGET_BYTES = 1_000_000
LOOKS, LOOK_APART_S = 8, 0.05
SCRAPES = 20
SCRAPE_S = 15.0
SETTLE_S = 6.0
SEEN_RATIO = 0.8
RIVAL = "nvitop-exporter"
AGENT = "specctl-agent"
NAMES = (RIVAL, AGENT)
# What a tick of a real H200 waits for: each direction of PCIe is measured for 20 ms.
DELAYS = ("delay * nvmlDeviceGetPcieThroughput 20",)
AGENT_PROGRAMME = """
import signal, sys, threading
from pathlib import Path
from specctl_agent import daemon
from specctl_agent.clock import HostClock
from specctl_agent.config import Config
from specctl_agent.log import to_journal
from specctl_agent.notify import Notify
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
folder = Path(sys.argv[1])
config = Config(servers=folder / "servers", address="127.0.0.1", port=int(sys.argv[2]), state=folder / "state", run=folder / "run")
loop, doors = daemon.assemble(config, HostClock(), "benchmark", to_journal)
doors.open()
loop.run(stopping, Notify())
doors.close()
loop.close()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What all processes of one program together have used so far, and hold now."""

    cpu_s: float
    rss_bytes: int
    pss_bytes: int
    processes: int


class Program:
    """One of the two, with all its processes."""

    def __init__(self, name: str, argv: Sequence[str], environment: Mapping[str, str], port: int, log: Path) -> None:
        self.name = name
        self.page = f"http://127.0.0.1:{port}/metrics"
        with log.open("w") as file:
            self._process = subprocess.Popen(argv, env=dict(environment), stdout=file, stderr=file, cwd=ROOT)
        self._tree = psutil.Process(self._process.pid)
        self._log = log

    def cost(self) -> Cost:
        """Return what it costs; raises RuntimeError where it has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended: {self._log.read_text()[-2000:]}")
        found = [held for process in self._tree.children(recursive=True) if (held := _held(process)) is not None]
        memory = self._tree.memory_full_info()
        found.append((_cpu_s(self._tree.pid), memory.rss, memory.pss))
        ended = self._tree.cpu_times()  # systemctl and its like come and go
        return Cost(
            cpu_s=sum(cpu_s for cpu_s, _, _ in found) + ended.children_user + ended.children_system,
            rss_bytes=sum(rss for _, rss, _ in found),
            pss_bytes=sum(pss for _, _, pss in found),
            processes=len(found),
        )

    def scrape(self) -> str:
        """Read its page of metrics; on a fast clock the page's own time limit may pass on a busy machine, so ask again."""
        for left in reversed(range(SCRAPES)):
            try:
                with urllib.request.urlopen(self.page, timeout=10) as answer:
                    return str(answer.read().decode())
            except (ConnectionError, http.client.HTTPException):
                if not left:
                    raise
                self.cost()  # it is there still
                time.sleep(LOOK_APART_S)
        raise AssertionError

    def ready(self) -> None:
        """Wait until it serves its page."""
        end_s = time.monotonic() + 60
        while True:
            self.cost()
            try:
                self.scrape()
            except OSError:
                if time.monotonic() > end_s:
                    raise
                time.sleep(0.1)
            else:
                return

    def end(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(30)


def _held(process: psutil.Process) -> tuple[float, int, int] | None:
    """Return a process's processor time and its RSS and PSS, None where it has just ended."""
    try:
        memory = process.memory_full_info()
        return _cpu_s(process.pid), memory.rss, memory.pss
    except (psutil.NoSuchProcess, OSError):
        return None


def _cpu_s(pid: int) -> float:
    """Return a process's processor time to the nanosecond, its ended threads included (clock_getcpuclockid's encoding)."""
    return time.clock_gettime((~pid << 3) | 2)


def bytecode() -> dict[str, str]:
    """Return the environment in which bytecode is kept, as an installation has it; without, imports cost 13 MB each."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def note(folder: Path, port: int) -> Path:
    """Write the folder of a deployed server, as deploy leaves it; returns the log that its engine writes."""
    place = folder / "servers" / SERVER.name
    (place / server_note.FOLDER).mkdir(parents=True)
    (place / "log").touch()
    knobs = {"none": {}, "dflash": {}, "ddtree": {"tree_budget": 7, "topk_cap": 2}}
    release = server_note.ReleaseNote(port=port, bind="127.0.0.1", knobs=knobs)
    made = server_note.make(LOCAL, replace(SERVER, port=port, secrets={}), {}, calibrated=False)
    (place / server_note.FOLDER / server_note.NOTE).write_text(replace(made, releases={"1": release}).text())
    (place / "current").symlink_to("releases/1/dflash.service")
    for name in ("state", "run"):
        (folder / name).mkdir()
    return place / "log"


@contextmanager
def engine(folder: Path) -> Iterator[None]:
    """Run the engine that answers from recordings, and let the server's folder name it."""
    log = folder / "engine.log"
    argv = [sys.executable, str(HERE / "footprint_engine.py"), str(log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            written = note(folder, int(process.stdout.readline()))
            written.unlink()
            log.touch()
            written.symlink_to(log)
            yield
        finally:
            process.kill()


@contextmanager
def running(folder: Path, speed: int, names: Sequence[str] = NAMES) -> Iterator[list[Program]]:
    """Run these programs on the stand-in, at that speed."""
    folder.mkdir()
    told = standin.Scenario(folder)
    with ExitStack() as stack:
        sleepers = [stack.enter_context(_sleeper()) for _ in range(standin.GPUS)]
        told.write(*DELAYS, *(f"process {gpu} {pid} {112 << 30}" for gpu, pid in enumerate(sleepers)))
        environment = {**bytecode(), **told.environment, **_faster(speed), "PYTHONPATH": str(ROOT / "agents")}
        environment["MALLOC_ARENA_MAX"] = "1"  # as in the unit
        del environment["SPECCTL_NVML_CALLS"]
        stack.enter_context(engine(folder))
        programs = []
        for name in names:
            port = _free_port()
            program = Program(name, _argv(name, folder, port), environment, port, folder / f"{name}.log")
            stack.callback(program.end)
            program.ready()
            programs.append(program)
        yield programs


def _argv(name: str, folder: Path, port: int) -> list[str]:
    if name == RIVAL:
        return [str(Path(sys.executable).parent / RIVAL), "--port", str(port)]
    return [sys.executable, "-c", AGENT_PROGRAMME, str(folder), str(port)]


@contextmanager
def _sleeper() -> Iterator[int]:
    with subprocess.Popen(["sleep", "infinity"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _faster(speed: int) -> dict[str, str]:
    """Return the environment of a clock that runs that fast; none for the real one."""
    if speed == 1:
        return {}
    library = standin.build() / "faster.so"
    options = ["-O2", "-shared", "-fPIC", "-o", str(library), str(HERE / "faster.c")]
    subprocess.run([str(standin.compiler()), *options], check=True)
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime_ns(time.CLOCK_REALTIME)
    return {"LD_PRELOAD": str(library), "FASTER": f"{speed} {began[0]} {began[1]}"}


def ticks_of(page: str) -> int:
    """Return how often the agent's loop has turned."""
    (line,) = [line for line in page.splitlines() if line.startswith("specctl_agent_ticks_total ")]
    return int(float(line.split()[1]))


def sees(page: str) -> bool:
    """Whether the agent sees all GPUs and the engine; on a fast clock an answer may be late for one look."""
    gpus = sum(line.startswith("specctl_gpu_temperature_celsius{") for line in page.splitlines())
    return gpus == standin.GPUS and "specctl_server_running_requests{" in page


def refuse_blind(sights: Sequence[bool]) -> None:
    """Refuse a run in which the agent saw little: it would be cheap for no good reason. Raises RuntimeError."""
    if sum(sights) < len(sights) * SEEN_RATIO:
        raise RuntimeError(f"the agent saw GPUs and engine in {sum(sights)} of {len(sights)} pages: lower --speed")


def measure(folder: Path, speed: int, ticks: int) -> tuple[dict[str, Cost], dict[str, Cost], int]:
    """Let both turn that often; returns their costs after the first turns and at the end, and the agent's turns in between."""
    with running(folder, speed) as programs:
        agent = programs[-1]
        time.sleep(SETTLE_S if speed == 1 else SETTLE_S / 2)
        before = {program.name: program.cost() for program in programs}
        first, end_s = ticks_of(agent.scrape()), time.monotonic() + ticks / speed
        sights = []
        while (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, SCRAPE_S / speed))
            pages = [program.scrape() for program in programs]
            sights.append(sees(pages[-1]))
        page = agent.scrape()
        refuse_blind(sights)
        after = {program.name: program.cost() for program in programs}
        return before, after, ticks_of(page) - first


def report(title: str, before: dict[str, Cost], after: dict[str, Cost], ticks: int) -> float:
    """Print what both cost in one run; returns the agent's processor time a tick in seconds."""
    print(f"\n{title}")
    print(f"{'':<18} {'RSS':>9} {'PSS':>9} {'processes':>10} {'CPU a tick':>11} {'of a core at 1 Hz':>18}")
    used = {name: (after[name].cpu_s - before[name].cpu_s) / ticks for name in after}
    for name, cost in after.items():
        print(
            f"{name:<18} {cost.rss_bytes / 1e6:>6.1f} MB {cost.pss_bytes / 1e6:>6.1f} MB {cost.processes:>10}"
            f" {used[name] * 1e3:>8.3f} ms {used[name]:>17.2%}"
        )
    rival, agent = after[RIVAL], after[AGENT]
    print(f"{'ratio':<18} {agent.rss_bytes / rival.rss_bytes:>9.2f} {agent.pss_bytes / rival.pss_bytes:>9.2f}", end=" ")
    print(f"{'':>10} {used[AGENT] / used[RIVAL]:>11.2f}")
    return used[AGENT]


def compare(folder: Path, seconds: int, ticks: int, speed: int) -> bool:
    """Run both parts and print them; returns whether the budget is met."""
    measure(folder / "caches", 1, 1)
    before, after, turns = measure(folder / "real", 1, seconds)
    cpu_s = report(f"at 1 Hz, {seconds} s on the real clock ({turns} ticks)", before, after, turns)
    before, after, turns = measure(folder / "fast", speed, ticks)
    report(f"{turns} ticks on a clock {speed} times as fast", before, after, turns)
    memory, grown = after[AGENT].rss_bytes, after[AGENT].rss_bytes - before[AGENT].rss_bytes
    met = cpu_s <= CPU_BUDGET_RATIO and memory <= MEMORY_BUDGET_BYTES
    print(
        f"\nbudget: {cpu_s:.2%} of a core (at most {CPU_BUDGET_RATIO:.1%}), {memory / 1e6:.1f} MB after {turns} ticks",
        end=" ",
    )
    print(
        f"(at most {MEMORY_BUDGET_BYTES / 1e6:.0f} MB, {grown / 1e6:+.1f} MB since the first): {'met' if met else 'MISSED'}"
    )
    return met


def _lasting(agent: Program) -> int:
    """Return the memory that stays: the least of several looks, for a journalctl that lives a moment counts in some of them."""
    looks = []
    for _ in range(LOOKS):
        looks.append(agent.cost().rss_bytes)
        time.sleep(LOOK_APART_S)
    return min(looks)


def soak(folder: Path, ticks: int, speed: int) -> bool:
    """Let the agent alone turn that often, printing its memory each tenth; returns whether it kept its size."""
    with running(folder, speed, (AGENT,)) as (agent,):
        held: list[int] = []
        sights = []
        for tenth in range(1, 11):
            while ticks_of(page := agent.scrape()) < ticks * tenth // 10:
                sights.append(sees(page))
                time.sleep(SCRAPE_S / speed)
            held.append(_lasting(agent))
            print(f"{ticks_of(page):>7} ticks {held[-1] / 1e6:>6.1f} MB", flush=True)
    refuse_blind(sights)
    grown = held[-1] - held[FULL_BY - 1]
    kept = grown <= GROWTH_BUDGET_BYTES
    print(f"growth since the third tenth: {grown / 1e6:+.1f} MB (at most {GROWTH_BUDGET_BYTES / 1e6:.0f} MB)", end=": ")
    print("kept" if kept else "GROWN")
    return kept


def main() -> int:
    """Compare, or soak; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--ticks", type=int, default=3600)
    parser.add_argument("--speed", type=int, default=30)
    parser.add_argument("--soak", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if asked.soak:
            met = soak(Path(made) / "soak", asked.ticks, asked.speed)
        else:
            met = compare(Path(made), asked.seconds, asked.ticks, asked.speed)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
