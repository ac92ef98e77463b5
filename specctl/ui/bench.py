"""Benches in words and tables: what one will send, what one found, a list of them; narrow terminals lose columns, never levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from specctl.measure.bench import Bench, Measured, Setting, Subject, middle, summary
from specctl.ui.text import UNKNOWN, plain

GIGA = 1e9
GAP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its heading, what it shows of a level, and from which width of the terminal on it is there.

    `rank`: where the rest does not fit, columns of a higher one go first.
    """

    head: str
    cell: Callable[[Measured], str]
    width: int = 0
    rank: int = 9


def seconds(value: float | None) -> str:
    """Return seconds as milliseconds, with three figures or so."""
    if value is None:
        return UNKNOWN
    shown = value * 1000
    return f"{shown:.2f}" if shown < 10 else f"{shown:.1f}" if shown < 100 else f"{shown:.0f}"


def rate(value: float | None) -> str:
    """Return something a second with a place after the point."""
    return UNKNOWN if value is None else f"{value:,.1f}"


def _middle(name: str, show: Callable[[float | None], str]) -> Callable[[Measured], str]:
    return lambda level: show(middle(level, name))


def _range(name: str) -> Callable[[Measured], str]:
    def cell(level: Measured) -> str:
        found = summary(level, name)
        if found is None or found.low is None or found.high is None:
            return UNKNOWN
        return f"{found.low:,.1f}…{found.high:,.1f}"

    return cell


def _plain(digits: int) -> Callable[[float | None], str]:
    return lambda value: UNKNOWN if value is None else f"{value:,.{digits}f}"


def _clock(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value / GIGA:.2f}"


COLUMNS = (
    Column(head="LOAD", cell=lambda level: level.name, rank=0),
    Column(head="TOK/S", cell=_middle("tokens_s", rate), rank=0),
    Column(head="RANGE", cell=_range("tokens_s"), rank=5),
    Column(head="EACH", cell=_middle("request_tokens_s", rate), rank=4),
    Column(head="TTFT", cell=_middle("ttft_p50_s", seconds), rank=2),
    Column(head="ITL", cell=_middle("itl_p50_s", seconds), rank=3),
    Column(head="P95", cell=_middle("itl_p95_s", seconds), rank=8),
    Column(head="P99", cell=_middle("itl_p99_s", seconds), rank=7),
    Column(head="ACCEPT", cell=_middle("accept_length", _plain(2)), rank=1),
    Column(head="STEPS/S", cell=_middle("verify_steps_s", _plain(1)), rank=6),
    Column(head="TTFT P99", cell=_middle("ttft_p99_s", seconds), width=92),
    Column(head="GAP P99", cell=_middle("gap_p99_s", seconds), width=102, rank=10),
    Column(head="GPU W", cell=_middle("power_w", _plain(0)), width=110, rank=11),
    Column(head="GHZ", cell=_middle("sm_clock_hz", _clock), width=116, rank=12),
)


def title(subject: Subject) -> Text:
    """Say what was measured, in a line."""
    mode = f"{subject.mode}, {'proven' if subject.proven else 'claimed'}" if subject.mode else f"mode {UNKNOWN}"
    release = f"release {subject.release}" if subject.release else "not deployed by specctl"
    parts = [subject.server, subject.profile, mode, *([subject.gpus] if subject.gpus else []), release]
    return Text.assemble((plain(subject.host), "host"), plain(" · " + " · ".join(parts)))


def load(found: Setting) -> str:
    """Say which load it was, in a line."""
    kind = {"closed": "closed loop", "open": "open loop", "trace": f"trace {found.trace}"}[found.pace]
    length = f"{found.tokens} tokens an answer" if found.tokens is not None else "lengths of the trace"
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    heat = f", temperature {found.temperature:g}" if found.temperature else ""
    return plain(f"{kind}, {runs} a level, {length}{heat}")


def asked(found: Setting) -> str:
    """Say what it asked, in a line."""
    return plain(f"{found.prompts} ({found.prompts_digest}), seed {found.seed}")


def table(levels: Sequence[Measured], *, width: int) -> Table:
    """Return a row a level: medians over its runs, in as many columns as fit whole."""
    found = Table(box=None, pad_edge=False, header_style="column", show_edge=False, padding=(0, GAP, 0, 0))
    cells = {column: [plain(column.cell(level)) for level in levels] for column in COLUMNS if width >= column.width}
    while len(cells) > 1 and sum(_width(column, texts) + GAP for column, texts in cells.items()) - GAP > width:
        cells.pop(max(cells, key=lambda column: column.rank))
    for column in cells:
        found.add_column(column.head, justify="left" if column.head == "LOAD" else "right", no_wrap=True)
    for row in zip(*cells.values(), strict=True):
        found.add_row(*(Text(text, style="number") for text in row))
    return found


def _width(column: Column, texts: Sequence[str]) -> int:
    return max(map(cell_len, (column.head, *texts)))


def legend(bench: Bench) -> str:
    """Say what the columns mean, and how far their range can be trusted."""
    runs = bench.setting.runs
    trust = {
        1: "one run has no range",
        2: "a range of two runs holds the true median in 1 of 2 cases",
        3: "a range of three runs holds the true median in 3 of 4 cases",
    }.get(runs, "RANGE is the median's bootstrap interval")
    return f"medians of {'1 run' if runs == 1 else f'{runs} runs'}, times in ms; {trust} (docs/bench.md)"


def notes(bench: Bench) -> tuple[str, ...]:
    """Return what makes figures doubtful, level by level."""
    found = [f"{level.name}: {note}" for level in bench.levels for note in level.notes]
    if bench.stopped is not None:
        found.append(f"not whole: {bench.stopped}")
    return tuple(plain(each) for each in found)


def view(bench: Bench, *, width: int) -> Group:
    """Return a whole bench: what, how, the table, the doubts."""
    how = (f"  {load(bench.setting)}", f"  prompts {asked(bench.setting)}", plain(f"  {bench.id}, begun {bench.at}"))
    lines: list[Text | Table] = [title(bench.subject), *(Text(line, style="quiet") for line in how)]
    if bench.note:
        lines.append(Text(f"  {plain(bench.note)}"))
    lines += [Text(), table(bench.levels, width=width), Text(), Text(legend(bench), style="quiet")]
    lines += [Text.assemble(("doubt  ", "warn"), note) for note in notes(bench)]
    return Group(*lines)


def listed(benches: Sequence[Bench], *, width: int) -> Table:
    """Return a row a bench, oldest first."""
    gap = 2 if width >= 100 else 1
    found = Table(box=None, pad_edge=False, header_style="column", show_edge=False, padding=(0, gap, 0, 0))
    heads = ("ID", "HOST", "SERVER", "MODE", "LOAD", "BEST TOK/S", "NOTE")
    lost = () if width >= 100 else ("SERVER", "NOTE") if width >= 80 else ("SERVER", "NOTE", "MODE", "LOAD")
    shown = [head for head in heads if head not in lost]
    for head in shown:
        whole = head in ("ID", "BEST TOK/S")  # an id is there to be typed again; the others wrap
        found.add_column(head, justify="right" if head == "BEST TOK/S" else "left", overflow="fold", no_wrap=whole)
    for bench in benches:
        cells = dict(zip(heads, _cells(bench), strict=True))
        found.add_row(*(Text(plain(cells[head]), style="id" if head == "ID" else "default") for head in shown))
    return found


def _cells(bench: Bench) -> tuple[str, ...]:
    best = [found for level in bench.levels if (found := middle(level, "tokens_s")) is not None]
    levels = ",".join(level.name for level in bench.levels) + (" (not whole)" if bench.stopped else "")
    return (
        bench.id,
        bench.subject.host,
        bench.subject.server,
        bench.subject.mode or UNKNOWN,
        levels,
        rate(max(best)) if best else UNKNOWN,
        bench.note or "",
    )
