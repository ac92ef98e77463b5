"""What of a sight a person should look at, in words, the gravest first; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from specctl.control import sight_words
from specctl.control.sight import Sight, State
from specctl.rollout.story import clock
from specctl.tui.words import ago, known, one_line, reasons, unseen
from specctl.ui.status import MOVING

WELL = (State.READY, State.LOADING, State.NOT_DEPLOYED, *MOVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is not as it should be; `grave`: it does not serve, or slower than it could."""

    text: str
    grave: bool = False


def problems_of(sight: Sight) -> tuple[Problem, ...]:
    """Return what is wrong with a server, the gravest first; what `specctl status` notes beside its row is all in it."""
    # What slows a GPU is told above, where it is grave.
    noted = sight_words.notes(replace(sight, gpus=None) if sight.slowed else sight)
    return (*_grave(sight), *_figures(sight), *(Problem(text=one_line(note)) for note in noted))


def _grave(sight: Sight) -> Iterator[Problem]:
    if sight.loading is not None and sight.loading.fatal:
        yield Problem(text=f"the load fails: {one_line(sight.loading.fatal)}", grave=True)
    if sight.state not in WELL and not unseen(sight):
        why = f": {one_line(sight.reason)}" if sight.reason else ""
        yield Problem(text=f"{one_line(sight.state)}{why}", grave=True)
    for gpu in sight.slowed:
        yield Problem(text=f"GPU {gpu.index} is slowed: {reasons(gpu.slowing or ())}", grave=True)


def _figures(sight: Sight) -> Iterator[Problem]:
    if sight.state in WELL and sight.reason:
        yield Problem(text=one_line(sight.reason))
    if sight.state == State.READY and sight.proven is False:
        yield Problem(text="the algo is claimed, not proven")
    if sight.state != State.UNREACHABLE and sight.running is not None and sight.running.stale:
        yield Problem(text=f"the engine's figures are {ago(sight.running.age_s)} old")


def load_text(sight: Sight) -> str | None:
    """Return how far a load is, in one line; None where none goes on."""
    load = sight.loading
    if load is None:
        return None
    done, eta = known(load.progress), known(load.eta_s)
    parts = [
        one_line(load.phase),
        "" if done is None else f"{done * 100:.0f} %",
        one_line(load.detail or ""),
        "" if eta is None else f"ready in ~{clock(eta)}",
    ]
    return "  ".join(part for part in parts if part)
