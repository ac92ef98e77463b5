"""Charts of a server's newest past as lines: requests, tokens a second, GPUs; pure. Each says its scale and how long it reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from specctl.control.sight import GpuSight, Sight
from specctl.control.sight_past import Line, Past
from specctl.tui import spark, words
from specctl.tui.glyphs import LEVELS
from specctl.tui.layout import rule, text
from specctl.tui.rowtext import fitted
from specctl.ui.text import age

AXIS = 8
QUEUED = "▒"
WHOLE = len(LEVELS)
ROOMY = 96
GAP = 2
# Cells of a GPU's line beside its three bars and what is told after them.
FIGURES_WIDTH = 48


def span_text(past: Past) -> str:
    """Say how long the past is that a chart shows."""
    points = max(len(past.tokens_per_s), len(past.running))
    return f"last {age(points * past.period_s)}" if points else "no past yet"


def requests(sight: Sight, past: Past, width: int, height: int) -> list[Text]:
    """Return the chart of requests: running below, queued on top of it."""
    room = max(width - AXIS, 1)
    running = spark.squeezed(past.running, room)
    waiting = spark.squeezed(past.waiting, room)
    total = [None if run is None else run + (wait or 0.0) for run, wait in zip(running, waiting, strict=True)]
    top = spark.top_of(total) or 1.0
    below, above = spark.heights(running, top, height), spark.heights(total, top, height)
    lines = [rule(_said(sight), width, span_text(past))]
    for row in range(height - 1, -1, -1):
        line = _axis(top, row, height)
        cells = [_stacked(run, whole, row) for run, whole in zip(below, above, strict=True)]
        for style, alike in groupby(cells, key=lambda cell: cell[1]):
            line.append("".join(sign for sign, _ in alike), style=style)
        lines.append(line)
    return lines


def _said(sight: Sight) -> str:
    run, queue = words.whole(words.shown(sight.running)), words.whole(words.shown(sight.waiting))
    return f"requests  {run} running, {queue} queued {QUEUED}"


def _stacked(run: int | None, whole: int | None, row: int) -> tuple[str, str]:
    """Return one cell and its style: what runs or what waits, whichever fills more of it."""
    if run is None or whole is None:
        return " ", ""
    runs = min(max(run - row * WHOLE, 0), WHOLE)
    waits = min(max(whole - row * WHOLE, 0), WHOLE) - runs
    if waits > runs and waits >= WHOLE // 2:
        return QUEUED, "line.wait"
    return (LEVELS[runs - 1], "line.run") if runs else (" ", "")


def figures(title: str, series: Line, past: Past, width: int, height: int, style: str) -> list[Text]:
    """Return the chart of one figure."""
    top = spark.top_of(series) or 1.0
    drawn = spark.chart(series, max(width - AXIS, 1), height, top)
    lines = [rule(title, width, span_text(past))]
    for place, bars in enumerate(drawn):
        lines.append(_axis(top, height - 1 - place, height).append(bars, style=style))
    return lines


def _axis(top: float, row: int, height: int) -> Text:
    label = words.figure(top, 1 if top < 10 else 0) if row == height - 1 else "0" if row == 0 else ""
    return text(fitted(label, AXIS - 1, right=True), "quiet").append("│", style="faint")


def strip(label: str, value: str, series: Line, width: int, style: str) -> Text:
    """Return one figure in one line: its name, its value, its newest past."""
    line = text(f" {fitted(label, 10)}", "quiet").append(fitted(value, 8, right=True), style="id").append("  ")
    return line.append(spark.line(series, max(width - line.cell_len, 0)), style=style)


def gpus(sight: Sight, past: Past, width: int) -> list[Text]:
    """Return a line for every GPU: load, memory, power, temperature, clock, and what slows it."""
    found = sight.gpus or ()
    models = sorted({words.one_line(gpu.model) for gpu in found if gpu.model})
    title = f"{len(found)} GPUs  {', '.join(models)}" if found else "GPUs"
    lines = [rule(title, width, f"{words.watts(words.power_w(found))} in all" if found else "")]
    if not found:
        return [*lines, text(f" {words.one_line(sight.gpu_trouble or 'not known')}", "quiet")]
    tails = [[part for part in _tail(gpu) if width >= ROOMY or part[1] != "quiet"] for gpu in found]
    longest = max(sum(len(part) + GAP for part, _ in tail) for tail in tails)
    bars = max((width - FIGURES_WIDTH - min(longest, width // 3)) // 3, 0)
    return [*lines, *(_gpu(gpu, past, tail, bars) for gpu, tail in zip(found, tails, strict=True))]


def _gpu(gpu: GpuSight, past: Past, told: Sequence[tuple[str, str]], bars: int) -> Text:
    """Return one GPU's line, each of its three bars so many cells wide; `told`: what comes after the figures."""
    figures_style = "quiet" if gpu.stale else ""
    line = text(f" {gpu.index:>2} ", "quiet").append(fitted(words.percent(words.known(gpu.busy_ratio)), 6, right=True))
    line.stylize(figures_style or "id", 4)
    _bar(line, spark.line(past.gpu_busy_ratio.get(gpu.index, ()), bars, 1.0), "line.gpu")
    line.append(f"  {fitted(_memory(gpu), 11, right=True)}", style=figures_style)
    _bar(line, spark.bar(words.memory_ratio(gpu), bars), "line.gpu")
    line.append(f"  {fitted(_power(gpu), 11, right=True)}", style=figures_style)
    _bar(line, spark.line(past.gpu_power_w.get(gpu.index, ()), bars, words.known(gpu.power_limit_w)), "line.gpu")
    line.append(f"  {fitted(words.celsius(gpu.temperature_c), 7, right=True)}", style=figures_style)
    for part, style in told:
        line.append(f"  {part}", style=style)
    return line


def _bar(line: Text, bars: str, style: str) -> None:
    if bars:
        line.append(" ").append(bars, style=style)


def _memory(gpu: GpuSight) -> str:
    return f"{words.gigabytes(gpu.memory_used_bytes)}/{words.gigabytes(gpu.memory_total_bytes)} GB"


def _power(gpu: GpuSight) -> str:
    return f"{words.whole(gpu.power_w)}/{words.whole(gpu.power_limit_w)} W"


def _tail(gpu: GpuSight) -> Iterator[tuple[str, str]]:
    clock, most = words.known(gpu.sm_clock_hz), words.known(gpu.sm_clock_max_hz)
    if clock is not None:
        yield f"{clock / 1e9:.2f}" + (f"/{most / 1e9:.2f}" if most is not None else "") + " GHz", "quiet"
    if gpu.slowing:
        yield f"slowed: {words.reasons(gpu.slowing)}", "bad"
    elif gpu.throttles:
        yield words.reasons(gpu.throttles), "quiet"
    if gpu.stale:
        yield f"{words.ago(gpu.age_s)} old", "warn"
