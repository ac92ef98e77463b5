"""What the doctor found, as people read it: the gravest first, with evidence, effect and remedy; then what is not decided."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from specctl.doctor.types import Confidence, Finding, Passed, Report, Unknown
from specctl.lint.types import Severity
from specctl.ui.text import plain

INDENT = 8
LABEL = 10
NARROWEST = 30
STYLES: Mapping[Severity, str] = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "quiet"}


def view(heading: Sequence[str], report: Report, *, width: int | None, whole: bool) -> Group:
    """Return one server's report; `width` None: lines are not folded; `whole`: what passed and each unknown too."""
    parts: list[RenderableType] = []
    if heading:
        parts.append(Text.assemble((plain(heading[0]), "host"), *(f" · {plain(part)}" for part in heading[1:])))
    for finding in report.findings:
        parts.extend(_finding(finding, width))
    told = [one for one in report.unknown if one.partly or whole]
    for unknown in told:
        parts.extend(_unknown(unknown, width))
    if whole:
        for passed in report.passed:
            parts.extend(_passed(passed, width))
    parts.extend(_count(report, width, folded=not whole))
    return Group(*parts)


def _finding(one: Finding, width: int | None) -> Iterator[Text]:
    head = f"{one.id}  "
    yield from _hanging(head, f"{one.title}: {one.message}", width, STYLES[one.severity])
    for number, words in enumerate(one.evidence):
        yield from _labelled("evidence" if number == 0 else "", words, width)
    effect = one.effect if one.confidence is Confidence.CERTAIN else f"{one.effect} (likely)"
    yield from _labelled("effect", effect, width)
    yield from _labelled("remedy", one.remedy, width)


def _unknown(one: Unknown, width: int | None) -> Iterator[Text]:
    head = f"{one.id}  "
    yield from _hanging(head, f"not decided: {one.title}", width, "quiet")
    yield from _labelled("so far" if one.partly else "lacks", one.reason, width)
    yield from _labelled("decide", one.decide, width)


def _passed(one: Passed, width: int | None) -> Iterator[Text]:
    note = f" ({one.note})" if one.note else ""
    yield from _hanging(f"{one.id}  ", f"passed: no sign that {one.title}{note}", width, "good")


def _count(report: Report, width: int | None, *, folded: bool) -> Iterator[Text]:
    """Count everything, and say what would decide the unknown ones, most of them first."""
    findings, passed, unknown = len(report.findings), len(report.passed), len(report.unknown)
    words = f"{_number(findings, 'finding')}, {_number(passed, 'check')} passed, {unknown} unknown"
    by_decision: dict[str, list[str]] = defaultdict(list)
    for one in report.unknown:
        by_decision[one.decide].append(one.id)
    if folded:
        for decide, ids in sorted(by_decision.items(), key=lambda pair: (-len(pair[1]), pair[1])):
            yield from _labelled("unknown", f"{_ids(ids)} — {decide}", width, indent=2)
    yield from _hanging("", words, width, "default")


def _ids(ids: Sequence[str]) -> str:
    """Return ids in a few words: M001, M002, M005."""
    return ", ".join(ids)


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _labelled(label: str, words: str, width: int | None, *, indent: int = INDENT) -> Iterator[Text]:
    yield from _hanging(f"{label:<{LABEL}}", words, width, "quiet", margin=indent)


def _hanging(head: str, words: str, width: int | None, style: str, *, margin: int = 2) -> Iterator[Text]:
    """Yield a text behind its head, further lines hanging under the first."""
    lead = " " * margin if head else ""
    room = None if width is None else max(NARROWEST, width - len(lead) - len(head))
    pieces = [plain(words)] if room is None else textwrap.wrap(plain(words), room, break_on_hyphens=False) or [""]
    for number, piece in enumerate(pieces):
        yield Text.assemble(lead, (head if number == 0 else " " * len(head), style), piece, overflow="fold")
