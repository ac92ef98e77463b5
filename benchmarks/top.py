"""Measure `specctl top` with 200 agents that answer once a second: a refresh (new figures → frame drawn), memory, start-up.

The agents are made up; the watch, the model and the whole app are the real ones, on a terminal of 130x40 and of 250x60 cells.
A refresh is timed from the moment at which the app turns to the feed until the frame is written to the terminal, while the 200
threads of the watch go on. Start-up is timed from the start of a process.

Usage: python benchmarks/top.py [--hosts 200] [--gpus 8] [--seconds 30] [--starts 5]. Exit 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import pty
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from specctl.control.sight import Sight  # noqa: E402  # the checkout is put on the path first
from specctl.control.sight_past import Past  # noqa: E402
from specctl.measure.chance import seeded  # noqa: E402
from specctl.ops.sights import Rows, Watch  # noqa: E402
from specctl.tui.app import Top  # noqa: E402
from tests.unit.tui import world  # noqa: E402

REFRESH_BUDGET_S = 0.250
MEMORY_BUDGET_BYTES = 200_000_000
SIZES = ((130, 40), (250, 60))
VIEWS = {"table": "table", "detail": "down,enter"}
# What the first look of 200 threads, and the first layout, take is start-up and no refresh.
SETTLE_S = 4.0
BARE = "from specctl.cli.main import main; main()"


@dataclass(slots=True)
class Agent:
    """One made-up host: another load, other GPU figures, at each look."""

    sight: Sight
    seed: int
    looks: int = field(default=0)

    @property
    def blank(self) -> tuple[Sight, ...]:
        """Return what the inventory says."""
        return (Sight(host=self.sight.host, server=self.sight.server, state="unknown", groups=self.sight.groups),)

    def look(self) -> tuple[Sight, ...]:
        """Return other figures than before."""
        self.looks += 1
        chance = seeded(self.seed * 100_003 + self.looks)
        running = chance.randrange(0, 40)
        gpus = tuple(
            replace(
                gpu,
                power_w=150 + 400 * chance.random(),
                busy_ratio=chance.random(),
                temperature_c=50 + 30 * chance.random(),
            )
            for gpu in self.sight.gpus or ()
        )
        return (
            replace(
                self.sight,
                running=world.count(running, chance.random()),
                waiting=world.count(chance.randrange(0, 9), chance.random()),
                tokens_per_s=world.told(running * (90 + 20 * chance.random())),
                accept_length=world.told(2 + chance.random()),
                kv_ratio=world.told(chance.random()),
                gpus=gpus,
            ),
        )

    def past(self, server: str) -> Past | None:
        """Return nothing: this agent has just begun."""
        del server
        return None

    def ask(self, server: str, what: str, limit: int) -> Rows:
        """Return one decision."""
        del server
        return (world.DECISION,)[:limit] if what == "decisions" else ()

    def close(self) -> None:
        """Do nothing: there is no connection."""


def fleet(hosts: int, gpus: int) -> list[Agent]:
    """Return so many agents of so many GPUs each."""
    shown = [
        replace(world.ready("x"), host=f"gpu{place:03d}", groups=(f"rack{place // 16:02d}",)) for place in range(hosts)
    ]
    return [Agent(sight=replace(sight, gpus=world.gpus(gpus)), seed=place) for place, sight in enumerate(shown)]


class Timed(Top):
    """The dashboard, which notes how long each refresh takes until its frame is composed."""

    def __init__(self, watch: Watch, keys: Sequence[str], seconds: float) -> None:
        super().__init__(watch)
        self.took_s: list[float] = []
        self.cpu_s: list[float] = []
        self._keys = keys
        self._seconds = seconds

    def on_mount(self) -> None:
        """Press the keys, wait until the start is over, note times for a while, leave."""
        self.set_timer(SETTLE_S / 2, self._press)
        self.set_timer(SETTLE_S, self._forget)
        self.set_timer(SETTLE_S + self._seconds, self.exit)

    def _press(self) -> None:
        for key in self._keys:
            self.simulate_key(key)

    def _forget(self) -> None:
        self.took_s.clear()
        self.cpu_s.clear()

    def tick(self) -> None:
        """Refresh, and note what it took."""
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        super().tick()

        def drawn() -> None:
            self.took_s.append(time.perf_counter() - began_s)
            self.cpu_s.append(time.thread_time() - cpu_s)

        self.call_after_refresh(drawn)


def inside(given: argparse.Namespace) -> None:
    """Run the dashboard on this process's terminal for a while, and write its times to a file."""
    watch = Watch(fleet(given.hosts, given.gpus))
    app = Timed(watch, keys=given.inside.split(",") if given.inside != "table" else (), seconds=given.seconds)
    watch.start()
    try:
        app.run(mouse=False)
    finally:
        watch.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    Path(given.out).write_text(json.dumps({"took_s": app.took_s, "cpu_s": app.cpu_s, "peak_bytes": peak}))


def on_terminal(size: tuple[int, int], arguments: Sequence[str]) -> None:
    """Run this program again on a terminal of a size, and read all that it draws."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(sys.executable, [sys.executable, __file__, *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    with contextlib.suppress(OSError):  # a terminal that nobody holds any more cannot be read: its program has ended
        while os.read(terminal, 1 << 16):
            pass
    os.waitpid(pid, 0)
    os.close(terminal)


def refreshes(given: argparse.Namespace) -> bool:
    """Print the times of refreshes in each size and view, and the memory; says whether all are within their budgets."""
    good = True
    print(f"{given.hosts} hosts of {given.gpus} GPUs, an answer of each a second; drawn on a terminal")
    for size in SIZES:
        for name, keys in VIEWS.items():
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                numbers = [f"--{each}={getattr(given, each)}" for each in ("hosts", "gpus", "seconds")]
                on_terminal(size, [*numbers, f"--inside={keys}", f"--out={file.name}"])
                told = json.loads(Path(file.name).read_text())
            median, high = statistics.median(told["took_s"]), _percentile(told["took_s"], 0.95)
            good = good and high < REFRESH_BUDGET_S and told["peak_bytes"] < MEMORY_BUDGET_BYTES
            print(
                f"{size[0]:>4}x{size[1]:<3} {name:<7} refresh median {median * 1e3:5.0f} ms  p95 {high * 1e3:5.0f} ms"
                f"  its own processor time {statistics.median(told['cpu_s']) * 1e3:4.0f} ms"
                f"  memory at most {told['peak_bytes'] / 1e6:.0f} MB  ({len(told['took_s'])} refreshes)"
            )
    return good


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def start_up(starts: int) -> None:
    """Print how long `specctl --help` and the import of the whole dashboard take, each in a process of its own."""
    for name, code in (
        ("specctl --help", f"import sys; sys.argv = ['specctl', '--help']; {BARE}"),
        ("dashboard imported", "import specctl.tui.app"),
    ):
        took = []
        for _ in range(starts):
            began_s = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env={**os.environ})
            took.append(time.perf_counter() - began_s)
        print(f"{name:<20} median {statistics.median(took):.2f} s of {starts}")


def first_frame(starts: int) -> None:
    """Print how long it takes from the start of a process to the first frame of 200 hosts that answer at once."""
    took = []
    for _ in range(starts):
        began_s = time.perf_counter()
        subprocess.run([sys.executable, __file__, "--one-frame"], check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - began_s)
    print(f"{'first frame':<20} median {statistics.median(took):.2f} s of {starts}, process and imports included")


def one_frame() -> None:
    """Draw one frame and leave."""

    async def draw() -> None:
        app = Top(world.FakeFeed(shown=tuple(world.many(200))))
        async with app.run_test(size=SIZES[0]) as pilot:
            await pilot.pause()

    asyncio.run(draw())


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--one-frame", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one_frame:
        one_frame()
        return 0
    if given.inside:
        inside(given)
        return 0
    good = refreshes(given)
    start_up(given.starts)
    first_frame(given.starts)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
