"""What preflight found, as people read it: in a plan what must be known before a yes, on its own every check by its id."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from specctl.rollout.preflight.types import Finding, Level, Report

STYLES: Mapping[Level, str] = {Level.PASS: "good", Level.WARN: "warn", Level.FAIL: "bad", Level.UNKNOWN: "quiet"}
LEVEL = 7
INDENT = 15
NARROWEST = 30


def plan_rows(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the plan's labelled lines: the counts, what fails with its remedy, and what is warned of; one warning stands beside."""
    told = report.told()
    if len(told) == 1 and told[0].level is Level.WARN:
        yield "checks", f"{report.summary()}   {_line(told[0])}"
        return
    yield "checks", report.summary()
    for finding in told:
        yield finding.level.value, _line(finding)
        if finding.level is Level.FAIL:
            yield "", f"try: {finding.remedy}"


def _line(finding: Finding) -> str:
    return f"{finding.id} {finding.reason}"


def view(host: str, server: str, report: Report, *, width: int | None) -> Group:
    """Return every check of one server by its id, and the counts; `width` None: lines are not folded."""
    parts: list[RenderableType] = [Text.assemble((host, "host"), f" · {server}")]
    for finding in report.findings:
        parts.extend(_lines(finding, width))
    parts.append(Text(f"  {report.summary()}"))
    return Group(*parts)


def _lines(finding: Finding, width: int | None) -> Iterator[Text]:
    is_waived = finding.waived is not None and finding.level in (Level.WARN, Level.FAIL)
    word = "waived" if is_waived else finding.level.value
    style = "quiet" if is_waived else STYLES[finding.level]
    text = finding.reason if finding.level is not Level.PASS else f"{finding.title}: {finding.reason}"
    room = None if width is None else max(NARROWEST, width - INDENT - 1)
    pieces = _folded(text, room)
    yield Text.assemble("  ", (f"{finding.id}  ", "id"), (f"{word:<{LEVEL}}  ", style), pieces[0])
    extra = [*pieces[1:]]
    if is_waived:
        extra.extend(_folded(f"because: {finding.waived}", room))
    elif finding.level in (Level.WARN, Level.FAIL):
        extra.extend(_folded(f"try: {finding.remedy}", room))
    yield from (Text(" " * (INDENT + 2) + piece) for piece in extra)


def _folded(text: str, room: int | None) -> list[str]:
    if room is None:
        return [text]
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
