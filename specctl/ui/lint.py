"""What the linter found, as people read it: by server, the gravest first, with place, reason and remedy; waived ones in a line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from specctl.fleet.types import Host, Server
from specctl.lint.types import Finding, Severity

INDENT = 8
NARROWEST = 30
STYLES: Mapping[Severity, str] = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "quiet"}


def view(selected: Sequence[tuple[Host, Server]], findings: Sequence[Finding], *, width: int | None) -> Group:
    """Return every server that something is said of, then the count; `width` None: lines are not folded."""
    parts: list[RenderableType] = []
    for host, server in selected:
        mine = [one for one in findings if (one.host, one.server) == (host.name, server.name)]
        if mine:
            parts.append(Text.assemble((host.name, "host"), f" · {server.name} · {server.profile.name}"))
            parts.extend(line for one in mine for line in _lines(one, len(server.profile.algos), width))
            parts.append(Text())
    parts.append(Text(summary(len(selected), findings)))
    return Group(*parts)


def summary(servers: int, findings: Sequence[Finding]) -> str:
    """Say in a line how many servers were looked at and what was found: 3 servers · 1 warning · 2 waived."""
    spoken = [one for one in findings if one.waived is None]
    counts = [(sum(one.severity is severity for one in spoken), severity.value) for severity in Severity]
    words = [_count(number, what) for number, what in counts if number]
    waived = len(findings) - len(spoken)
    words = words or ["clean"]
    return " · ".join([_count(servers, "server"), *words, *([f"{waived} waived"] if waived else [])])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _lines(one: Finding, possible: int, width: int | None) -> Iterator[Text]:
    if one.waived is not None:
        yield from _folded(f"{one.rule.id}  ", f"waived: {one.rule.title} — {one.waived}", width, "quiet", "quiet")
        return
    # Where a server can run several algos and this concerns some of them, they are named.
    some = f" [{', '.join(one.algos)}]" if 0 < len(one.algos) < possible else ""
    yield from _folded(f"{one.rule.id}  ", f"{one.message}{some}", width, STYLES[one.severity], "default")
    label = " " * 6
    if one.key is not None:
        place = f"{one.key} — {one.origin}" if one.origin is not None else one.key
        yield from _folded(f"{label}at      ", place, width, "quiet", "quiet")
    yield from _folded(f"{label}why     ", one.rule.reason, width, "quiet", "default")
    yield from _folded(f"{label}remedy  ", one.remedy, width, "quiet", "default")


def _folded(label: str, words: str, width: int | None, label_style: str, style: str) -> Iterator[Text]:
    """Yield a labelled text, its further lines hanging under the first."""
    room = None if width is None else max(NARROWEST, width - len(label) - 2)
    pieces = [words] if room is None else textwrap.wrap(words, room, break_on_hyphens=False) or [words]
    for number, piece in enumerate(pieces):
        shown = label if number == 0 else " " * len(label)
        yield Text.assemble("  ", (shown, label_style), (piece, style), overflow="fold")
