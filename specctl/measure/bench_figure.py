"""A bench as a figure to draw: throughput, one request's share, latencies, acceptance by level."""

from __future__ import annotations

from specctl.measure.bench import Bench, Measured, summary
from specctl.measure.figure import Figure, Line, Panel, Point

MS = 1000.0


def figure(bench: Bench) -> Figure:
    """Return the panels of what was measured; a figure that no level tells has none."""
    subject = bench.subject
    panels = [
        _panel(bench, "tokens a second", {"in all": "tokens_s"}),
        _panel(bench, "tokens a second, each", {"of one request": "request_tokens_s"}),
        _panel(bench, "first token, ms", {"p50": "ttft_p50_s", "p99": "ttft_p99_s"}, MS),
        _panel(bench, "a token, ms", {"p50": "itl_p50_s", "p95": "itl_p95_s", "p99": "itl_p99_s"}, MS),
        _panel(bench, "tokens a verify step", {"accept length": "accept_length"}),
        _panel(bench, "verify steps a second", {"verify steps": "verify_steps_s"}),
    ]
    mode = subject.mode or "mode unknown"
    length = "" if bench.setting.tokens is None else f", {bench.setting.tokens} tokens an answer"
    return Figure(
        title=f"{subject.host} {subject.server}: {mode}",
        panels=tuple(panel for panel in panels if panel.lines),
        note=f"{bench.id}; medians of {bench.setting.runs} runs with their range{length}, prompts {bench.setting.prompts}",
        across=2,
    )


def _panel(bench: Bench, label: str, names: dict[str, str], scale: float = 1.0) -> Panel:
    lines = [
        Line(label=word, points=points)
        for word, name in names.items()
        if (points := tuple(_points(bench, name, scale)))
    ]
    closed = all(level.concurrency is not None for level in bench.levels)
    return Panel(x_label="requests in flight" if closed else "level", y_label=label, lines=tuple(lines), x_log=closed)


def _points(bench: Bench, name: str, scale: float) -> list[Point]:
    found = []
    for number, level in enumerate(bench.levels, start=1):
        told = summary(level, name)
        if told is not None:
            low, high = (None if bound is None else bound * scale for bound in (told.low, told.high))
            found.append(Point(x=_place(level, number), y=told.centre * scale, low=low, high=high))
    return found


def _place(level: Measured, number: int) -> float:
    """Return where a level stands: its concurrency, else its rate, else its number."""
    if level.concurrency is not None:
        return float(level.concurrency)
    rate = level.name.removesuffix("/s")
    return float(rate) if rate != level.name else float(number)
