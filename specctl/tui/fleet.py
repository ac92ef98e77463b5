"""The lines over the table: the whole fleet in figures, and what is wrong with it; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.text import Text

from specctl.control.sight import GpuSight, Sight, State, Told
from specctl.tui import words
from specctl.tui.columns import FLAG, Row
from specctl.tui.layout import Part, packed, text
from specctl.ui.text import UNKNOWN

DOWN = (State.UNREACHABLE, State.UNKNOWN)


def lines(rows: Sequence[Row], *, width: int, right: Text) -> list[Text]:
    """Return the fleet in three lines: hosts and servers, what they do, what is wrong. `right`: stands at the end of the first."""
    return [
        packed(_servers(rows), width, right),
        packed(_figures(rows), width),
        _problems(rows, width),
    ]


def _servers(rows: Sequence[Row]) -> list[Part]:
    hosts = {row.sight.host for row in rows}
    up = {row.sight.host for row in rows if row.sight.state not in DOWN}
    states = Counter(words.NOT_YET if words.unseen(row.sight) else row.sight.state for row in rows)
    algos = Counter(row.sight.mode.algo for row in rows if row.sight.mode)
    style = "good" if len(up) == len(hosts) else "warn"
    told = [f"{words.one_line(state)} {count}" for state, count in states.most_common()]
    return [
        (60, text("specctl top", "title")),
        (90, text("hosts ", "quiet").append(f"{len(up)}/{len(hosts)} up", style=style)),
        (80, text("servers ", "quiet").append(f"{len(rows)}: {', '.join(told)}" if rows else "none")),
        *(
            [(50, text("algo ", "quiet").append(", ".join(f"{words.one_line(a)} {n}" for a, n in algos.most_common())))]
            if algos
            else []
        ),
    ]


def _figures(rows: Sequence[Row]) -> list[Part]:
    gpus = _gpus(rows)
    slowed = sum(bool(gpu.slowing) for gpu in gpus)
    power, busy, hottest = words.power_w(gpus), words.busy_ratio(gpus), words.hottest_c(gpus)
    found = [
        (90, _total(rows, "tok/s", lambda sight: sight.tokens_per_s)),
        (80, _total(rows, "running", lambda sight: sight.running)),
        (75, _total(rows, "queued", lambda sight: sight.waiting)),
        (70, text("GPUs ", "quiet").append(f"{len(gpus)}  {words.watts(power)}" if gpus else UNKNOWN)),
        (50, text("busy ", "quiet").append(words.percent(busy))),
        (45, text("hottest ", "quiet").append(words.celsius(hottest))),
    ]
    if slowed:
        found.append((85, text(f"{slowed} GPU{'s' if slowed > 1 else ''} slowed", "bad")))
    return found


def _gpus(rows: Sequence[Row]) -> list[GpuSight]:
    """Return each GPU of the fleet once: two servers of one host may tell the same ones."""
    seen = {
        (row.sight.host, gpu.uuid or str(gpu.index)): gpu
        for row in rows
        for gpu in row.sight.gpus or ()
        if not gpu.stale
    }
    return list(seen.values())


def _total(rows: Sequence[Row], name: str, of: Callable[[Sight], Told[float] | Told[int] | None]) -> Text:
    """Return a sum over the servers that tell the figure now, and over how many where some do not."""
    told = [value for row in rows if (value := words.fresh(of(row.sight))) is not None]
    line = text(f"{name} ", "quiet")
    if not told:
        return line.append(UNKNOWN)
    line.append(words.figure(sum(told), 1 if name == "tok/s" else 0), style="id")
    silent = len(rows) - len(told)
    return line.append(f" ({len(told)} of {len(rows)})", style="quiet") if silent else line


def _problems(rows: Sequence[Row], width: int) -> Text:
    """Return the problems that fit, the gravest first, and how many there are."""
    found = [(row, problem) for row in rows for problem in row.problems]
    if not found:
        if not any(row.sight.age_s is not None for row in rows):
            return text("no answer yet" if rows else "", "quiet")
        return text("no problems", "quiet")
    found.sort(key=lambda pair: not pair[1].grave)
    line = text(f"{FLAG} {len(found)} problem{'s' if len(found) > 1 else ''}", "warn")
    for row, problem in found:
        part = text("  ·  ", "faint").append(words.one_line(row.sight.host), style="host")
        part.append(f" {problem.text}", style="bad" if problem.grave else "")
        if line.cell_len >= width:
            break
        line.append_text(part)
    line.truncate(width, overflow="ellipsis")
    return line
