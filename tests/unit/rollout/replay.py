"""Turn recordings of the real server into observations, as the watcher on a host would have made them.

A recording has the log with the seconds since the start before each line, what /ready answered, and when the process ended.
It has no processor, memory or disk figures: a test that needs some gives them itself and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from specctl.engines._sglang_log import GRAMMAR
from specctl.rollout import gate
from specctl.rollout.gate_types import GateSpec, GateState
from specctl.rollout.observation import Observation, Port, UnitState

LOGS = Path(__file__).parents[2] / "data" / "sglang-0.5.23" / "logs"
STEP_S = 0.5
INVOCATION = "a1b2"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 94.97 GiB"
SIGQUIT = "[2026-11-29 16:55:15] Received sigquit from a child process. It usually means the child failed."
RAISED = "[2026-11-29 16:55:15 TP3] Scheduler hit an exception: Traceback (most recent call last):"
_ROW = re.compile(r" *(\d+\.\d{3}) (.*)", re.DOTALL)
_EXIT = re.compile(r"^ *([\d.]+) main process exited .*shell code (\d+)", re.MULTILINE)

Edit = Callable[[Observation], Observation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One start of the real server."""

    lines: tuple[tuple[float, str], ...]
    ready: tuple[tuple[float, str], ...]
    exit_at_s: float | None
    exit_status: int | None

    def first(self, text: str) -> float:
        """Return when a text was first logged."""
        return next(at for at, line in self.lines if text in line)

    def ready_at(self, at_s: float) -> str | None:
        """Return what /ready answered last, None before the first probe."""
        return next((answer for when, answer in reversed(self.ready) if when <= at_s), None)


def names(folder: str) -> list[str]:
    """Return the recordings in a folder, by the name that `load` takes."""
    return sorted(f"{folder}/{path.name}" for path in (LOGS / folder).iterdir())


def load(name: str) -> Recording:
    """Read a recording."""
    folder = LOGS / name
    with (folder / "server.log").open(encoding="utf-8", newline="") as file:
        rows = re.split(r"\n(?= *\d+\.\d{3} )", file.read())
    found = [match for row in rows if (match := _ROW.match(row))]
    ready = [line.split("\t") for line in (folder / "ready.tsv").read_text("utf-8").splitlines()[1:]]
    ended = _EXIT.search((folder / "events.txt").read_text("utf-8"))
    return Recording(
        lines=tuple((float(match[1]), match[2].rstrip("\n")) for match in found),
        ready=tuple((float(at), answer) for at, answer in ready),
        exit_at_s=float(ended[1]) if ended else None,
        exit_status=int(ended[2]) if ended else None,
    )


def observations(recording: Recording, *, until_s: float | None = None) -> Iterator[Observation]:
    """Yield a look each half second, until two seconds after the end of the process or until `until_s`."""
    end_s = until_s if until_s is not None else (recording.exit_at_s or recording.lines[-1][0]) + 2.0
    listening_s = next((at for at, line in recording.lines if "Uvicorn running" in line), float("inf"))
    at_s, seen = 0.0, 0
    while at_s <= end_s:
        count = sum(1 for when, _ in recording.lines if when <= at_s)
        new = recording.lines[seen:count]
        seen = count
        alive = recording.exit_at_s is None or at_s < recording.exit_at_s
        answer = recording.ready_at(at_s) if alive else None
        listens = alive and at_s >= listening_s and answer != "refused"
        yield Observation(
            at_s=at_s,
            unit=UnitState(
                active="active" if alive else "failed",
                sub="running" if alive else "failed",
                invocation=INVOCATION,
                restarts=0,
                exit_status=None if alive else recording.exit_status,
            ),
            port=Port.OWN if listens else Port.REFUSED,
            ready=int(answer) if answer is not None and answer.isdigit() and listens else None,
            lines=tuple(part for _, line in new for part in re.split(r"[\r\n]", line) if part),
        )
        at_s += STEP_S


def spec_for(**changes: object) -> GateSpec:
    """Return a gate's spec with long limits and SGLang's grammar."""
    base: dict[str, object] = {
        "grammar": GRAMMAR,
        "started_at_s": 0.0,
        "load_s": 600.0,
        "stall_s": 300.0,
        "invocation": INVOCATION,
        "restarts": 0,
        "port": 30001,
    }
    return GateSpec(**{**base, **changes})  # type: ignore[arg-type]  # tests name fields by keyword


def replay(
    recording: Recording, spec: GateSpec | None = None, *, until_s: float | None = None, edit: Edit = lambda seen: seen
) -> list[GateState]:
    """Return the gate's state after every look; `edit` changes an observation before the gate sees it."""
    spec = spec or spec_for()
    state = gate.begin(spec)
    states = []
    for seen in observations(recording, until_s=until_s):
        state = gate.advance(spec, state, edit(seen))
        states.append(state)
    return states
