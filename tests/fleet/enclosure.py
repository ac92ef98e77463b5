"""How commands get to the fleet's two places: the control side (where the operator sits) and the room (where the hosts run)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet import holder, namespaces, state
from tests.fleet.waiting import FleetError, until

CHECKOUT = Path(__file__).resolve().parents[2]
ENDED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Enclosure:
    """The two places of a running fleet, by the processes that hold them."""

    holder_pid: int
    room_pid: int

    def control_argv(self, argv: Sequence[str], *, cwd: Path) -> list[str]:
        """Return the command that becomes `argv` on the control side: a signal to the started process reaches `argv` itself."""
        return ["nsenter", "--target", str(self.holder_pid), "--net", "--mount", "env", f"--chdir={cwd}", "--", *argv]

    def room_argv(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `argv` as a process of the room, which the fleet's end takes with it."""
        return ["nsenter", "--target", str(self.room_pid), "--net", "--mount", "--pid", "--", *argv]

    def room_path(self, path: Path) -> Path:
        """Return the path by which this process reaches a file of the room."""
        return Path(f"/proc/{self.room_pid}/root") / path.relative_to("/")

    def in_room(self, argv: Sequence[str]) -> str:
        """Run `argv` in the room and return its output; raise FleetError when it fails."""
        done = subprocess.run(
            self.room_argv(argv), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0:
            raise FleetError(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the calling thread, and what it starts meanwhile, on the control side."""
        with namespaces.entered(self.holder_pid):
            yield


def start(name: str, lock: int, *, lifeline: bool) -> subprocess.Popen[bytes]:
    """Start the fleet's keeper, which shares the lock; with a lifeline it ends when this process does, however that ends."""
    mode = "lifeline" if lifeline else "persistent"
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.fleet.holder", name, mode],
        stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        pass_fds=(lock,),
        start_new_session=True,
    )
    assert keeper.stdout is not None
    assert keeper.stderr is not None
    if keeper.stdout.readline().strip() != holder.READY.encode():
        said = keeper.stderr.read().decode(errors="replace").strip()
        raise FleetError(f"the keeper of fleet {name} did not start (status {keeper.wait()}): {said}")
    keeper.stdout.close()
    keeper.stderr.close()
    return keeper


def attach(name: str) -> Enclosure:
    """Return the enclosure of a fleet that is up."""
    known = state.load(name) if state.is_up(name) else None
    if known is None or known.holder_pid is None or known.room_pid is None:
        raise FleetError(f"fleet {name} is not up")
    return Enclosure(known.holder_pid, known.room_pid)


def end(name: str, keeper: subprocess.Popen[bytes] | None) -> None:
    """Ask the fleet's keeper to end, and wait until nothing of the fleet is left; a fleet that is not up is only swept."""
    known = state.load(name)
    if known is not None and known.holder_pid is not None and state.is_up(name):
        os.kill(known.holder_pid, signal.SIGTERM)
        pids = (known.holder_pid, known.room_pid or known.holder_pid)
        until(lambda: not any(map(state.is_alive, pids)), within_s=ENDED_WITHIN_S, what=f"the end of fleet {name}")
    if keeper is not None:
        if keeper.stdin is not None:
            keeper.stdin.close()
        keeper.wait(timeout=ENDED_WITHIN_S)
    state.sweep()
