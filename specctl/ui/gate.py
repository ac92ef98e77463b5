"""Show a load: one line a host with phase, bar, detail, elapsed time and expected end; and the lines that stay.

Values to Rich text, nothing else; ui/board.py decides when a line is drawn. Narrow terminals lose columns (the bar first, then the
words of the ETA, then the end of the detail), never host, phase or time.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from specctl.rollout.gate_types import GateState, Loading, Slow
from specctl.rollout.loadlog import clean
from specctl.rollout.story import clock, headline, kind
from specctl.ui.theme import word_style

PHASE_WIDTH = 9
BAR_WIDTH = 21
MIN_BAR = 8
ELAPSED_WIDTH = 7
MAX_TEXT = 4000  # characters of a line that stays
QUIET_S = 20.0  # silence under this is not worth a word
CONTINUATIONS = frozenset({"because", "log", "remedy"})
_FULL, _EMPTY = "█", "░"
_ASCII_FULL, _ASCII_EMPTY = "#", "-"
_INDENT = 2


def load_line(host: str, state: GateState, *, width: int, host_width: int = 0, ascii_only: bool = False) -> Text:
    """Return the line of a load that goes on, or its headline when it is over; never wider than `width`."""
    if not isinstance(state.verdict, Loading | Slow):
        return final_line(host, kind(state), headline(state), width=width, host_width=host_width)
    lead = _lead(host, state.phase.label, max(host_width, cell_len(host)))
    elapsed = clock(state.elapsed_s).rjust(ELAPSED_WIDTH)
    layout = _layout(state, width - cell_len(lead.plain) - cell_len(elapsed))
    line = lead
    if layout.bar and state.progress is not None:
        line.append_text(_bar(state.progress, layout.bar, ascii_only=ascii_only)).append("  ")
    line.append(layout.detail, style="detail").append(elapsed, style="elapsed").append(layout.eta, style="eta")
    line.truncate(max(width, 1))
    return line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """What fits between the phase and the time, and after it: the bar's width (0: none), the detail filled up, the ETA."""

    bar: int
    detail: str
    eta: str


def _layout(state: GateState, room: int) -> _Layout:
    """Return the first layout that fits: the long ETA before the short one, a bar before a percentage."""
    words, percent = _detail(state), _percent(state)
    short = "" if state.eta_s is None else f" ~{clock(state.eta_s)}"
    etas = ("" if state.eta_s is None else f"   {_eta(state)}", short, "")
    tries = [(True, eta) for eta in etas[:2]] if percent else []
    for with_bar, eta in (*tries, *((False, eta) for eta in etas)):
        detail = words if with_bar or not percent else f"{percent} {words}".rstrip()
        left = room - cell_len(eta) - cell_len(detail) - 1
        bar = min(left - 2, BAR_WIDTH) if with_bar else 0
        if left >= 0 and (not with_bar or bar >= MIN_BAR):
            filled = room - cell_len(eta) - (bar + 2 if with_bar else 0)
            return _Layout(bar=bar, detail=set_cell_size(detail, filled), eta=eta)
    cut = Text(f"{percent} {words}".strip())
    cut.truncate(max(room - 1, 0), overflow="ellipsis", pad=True)
    return _Layout(bar=0, detail=f"{cut.plain} ", eta="")


def step_line(host: str, name: str, text: str, *, width: int, host_width: int = 0) -> Text:
    """Return the line of a step other than a load: drain, stop, smoke."""
    line = _lead(host, name, max(host_width, cell_len(host))).append(clean(text, MAX_TEXT), style="detail")
    line.truncate(max(width, 1), overflow="ellipsis")
    return line


def final_line(
    host: str, name: str, text: str, *, width: int | None = None, host_width: int = 0, follows: bool = True
) -> Text:
    """Return a line that stays: proof, deployed, failed, because, log, restored.

    A continuation does not repeat the host, unless it does not follow (`follows`) that host's own line.
    """
    shown = "" if name in CONTINUATIONS and follows else host
    line = _lead(shown, name, max(host_width, cell_len(host)), style=word_style(name))
    line.append(clean(text, MAX_TEXT), style="quiet" if name in CONTINUATIONS else "detail")
    if width is not None:
        line.truncate(max(width, 1), overflow="ellipsis")
    return line


def plain_line(host: str, state: GateState, *, host_width: int = 0) -> str:
    """Return the load as one line of plain words, for logs and pipes; in the same columns as the lines that stay."""
    if not isinstance(state.verdict, Loading | Slow):
        return plain_step(host, kind(state), headline(state), host_width=host_width)
    parts = [clock(state.elapsed_s), *(part for part in (_detail(state), _percent(state), _eta(state)) if part)]
    return plain_step(host, state.phase.label, ", ".join(parts), host_width=host_width)


def plain_step(host: str, name: str, text: str, *, host_width: int = 0) -> str:
    """Return a step as one line of plain words."""
    lead = _lead(host, name, max(host_width, cell_len(host)))
    return f"{lead.plain}{clean(text, MAX_TEXT)}".rstrip()


def _percent(state: GateState) -> str:
    return "" if state.progress is None else f"{round(state.progress * 100)} %"


def _eta(state: GateState) -> str:
    return "" if state.eta_s is None else f"ready in ~{clock(state.eta_s)}"


def _detail(state: GateState) -> str:
    if isinstance(state.verdict, Slow):
        usual = f"took {clock(state.verdict.usual_s)} before"
        return f"{state.detail}, {usual}" if state.detail else usual
    if state.quiet_s >= QUIET_S and state.detail is None:
        return f"quiet for {clock(state.quiet_s)}"
    return state.detail or ""


def _lead(host: str, word: str, host_width: int, style: str | None = None) -> Text:
    line = Text(" " * _INDENT, no_wrap=True)
    line.append(set_cell_size(host, host_width), style="host").append("  ")
    return line.append(word.ljust(PHASE_WIDTH), style=style or "phase").append("  ")


def _bar(ratio: float, width: int, *, ascii_only: bool) -> Text:
    full, empty = (_ASCII_FULL, _ASCII_EMPTY) if ascii_only else (_FULL, _EMPTY)
    done = min(int(ratio * width + 0.5), width)
    return Text(full * done, style="bar.done").append(empty * (width - done), style="bar.todo")
