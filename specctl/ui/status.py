"""The status table: columns give way to a narrow screen by what they matter; unknown is —, stale is dim with its age."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from specctl.control.sight import GpuSight, Sight, State, Told
from specctl.control.sight_words import age, last_decision, mode_text, notes
from specctl.rollout.story import clock
from specctl.ui.text import UNKNOWN, plain

STATE_STYLES = {
    State.READY.value: "good",
    State.LOADING.value: "phase",
    State.STOPPED.value: "quiet",
    State.NOT_DEPLOYED.value: "quiet",
    State.NOT_READY.value: "warn",
}
GAP = 2
# A decision that shows less than this says nothing: its column goes before that.
LEAST_DECISION = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: what it shows of a sight; `rank`: columns of a higher one go first where the screen is narrow."""

    name: str
    show: Callable[[Sight], Text]
    rank: int
    right: bool = True


def figure(told: Told[int] | Told[float] | None, digits: int = 0) -> Text:
    """Return a figure, dim where it is stale, or — where it is not known."""
    if told is None:
        return Text(UNKNOWN)
    return Text(f"{told.value:.{digits}f}", style="quiet" if told.stale else "number")


def state_text(sight: Sight) -> Text:
    """Return the state, with what is known of the proof, and how long a load takes."""
    text = sight.state
    if sight.state == State.READY.value and sight.proven is not None:
        text += ", proven" if sight.proven else ", claimed"
    if sight.loading is not None and sight.loading.elapsed_s is not None:
        text += f" {clock(sight.loading.elapsed_s)}"
    return Text(text, style=STATE_STYLES.get(sight.state, "bad"))


def algo_text(sight: Sight) -> Text:
    """Return the algo with its knobs: ddtree 7/1."""
    return Text(UNKNOWN if sight.mode is None else plain(mode_text(sight.mode)))


def age_text(sight: Sight) -> Text:
    """Return the age of the engine's figures, or of the whole sight where its host is gone; a stale one says so in a word."""
    told = next((told for told in (sight.running, sight.waiting, sight.kv_ratio) if told is not None), None)
    if told is None:
        return Text(UNKNOWN)
    return Text(
        f"{age(told.age_s) or 'age —'}{' old' if told.stale else ''}", style="quiet" if told.stale else "number"
    )


def kv_text(sight: Sight) -> Text:
    """Return the share of the KV pool that is used."""
    told = sight.kv_ratio
    return (
        Text(UNKNOWN)
        if told is None
        else Text(f"{told.value:.0%}"[:-1] + " %", style="quiet" if told.stale else "number")
    )


def power_text(sight: Sight) -> Text:
    """Return count and mean power of the GPUs, 8×212; the count of those that tell it where some do not; ! where any is slowed."""
    return _over_gpus(sight, lambda gpu: gpu.power_w, mark="!" if sight.slowed else "")


def memory_text(sight: Sight) -> Text:
    """Return count and mean used memory of the GPUs in GB (10⁹ bytes)."""
    return _over_gpus(sight, lambda gpu: None if gpu.memory_used_bytes is None else gpu.memory_used_bytes / 1e9)


def _over_gpus(sight: Sight, figure_of: Callable[[GpuSight], float | None], mark: str = "") -> Text:
    gpus = sight.gpus or ()
    known = [value for gpu in gpus if (value := figure_of(gpu)) is not None]
    if not known:
        return Text(UNKNOWN + mark)
    count = str(len(gpus)) if len(known) == len(gpus) else f"{len(known)}/{len(gpus)}"
    style = "warn" if mark else "quiet" if any(gpu.stale for gpu in gpus) else "number"
    return Text(f"{count}×{sum(known) / len(known):.0f}{mark}", style=style)


def decision_text(sight: Sight) -> Text:
    """Return what was decided last, in one line."""
    return Text(plain(" ".join((last_decision(sight) or UNKNOWN).split())))


DECISION = "LAST DECISION"
COLUMNS = (
    Column(name="HOST", show=lambda sight: Text(sight.host, style="host"), rank=0, right=False),
    Column(name="SERVER", show=lambda sight: Text(plain(sight.server)), rank=1, right=False),
    Column(name="ALGO", show=algo_text, rank=1, right=False),
    Column(name="STATE", show=state_text, rank=0, right=False),
    Column(name="RUN", show=lambda sight: figure(sight.running), rank=2),
    Column(name="QUEUE", show=lambda sight: figure(sight.waiting), rank=2),
    Column(name="TOK/S", show=lambda sight: figure(sight.tokens_per_s, 1), rank=4),
    Column(name="ACCEPT", show=lambda sight: figure(sight.accept_length, 2), rank=5),
    Column(name="KV", show=kv_text, rank=7),
    Column(name="GPU W", show=power_text, rank=8),
    Column(name="GPU GB", show=memory_text, rank=10),
    Column(name="AGE", show=age_text, rank=3),
    Column(name="RELEASE", show=lambda sight: Text(plain(sight.release or UNKNOWN)), rank=9),
    Column(name=DECISION, show=decision_text, rank=6, right=False),
)


def chosen(sights: Sequence[Sight], width: int) -> tuple[Column, ...]:
    """Return the columns that fit into a width, those that matter most first served; the last decision may be cut, down to a bound.

    Columns after it in rank come only where it is whole.
    """
    widths = {column.name: _width(column, sights) for column in COLUMNS}
    kept: list[Column] = []
    taken = -GAP
    for column in sorted(COLUMNS, key=lambda column: column.rank):
        least = min(widths[column.name], LEAST_DECISION) if column.name == DECISION else widths[column.name]
        if column.rank > 0 and taken + GAP + least > width:
            if column.name == DECISION:
                continue
            break
        kept.append(column)
        taken += GAP + least
    return tuple(column for column in COLUMNS if column in kept)


def table(sights: Sequence[Sight], width: int) -> Table:
    """Return the table of servers."""
    view = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="column", show_edge=False)
    columns = chosen(sights, width)
    for column in columns:
        view.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis" if column.name == DECISION else "fold",
        )
    for sight in sights:
        view.add_row(*(column.show(sight) for column in columns))
    return view


def note_lines(sights: Sequence[Sight], width: int) -> Iterator[Table]:
    """Yield what a person should know beside the rows, hosts that share a note on one line; and what to do next."""
    whole = _decisions_are_whole(sights, width)
    said: dict[str, list[str]] = {}
    for sight in sights:
        reason = [] if whole or not sight.reason else [sight.reason]
        for text in (*reason, *notes(sight), *([f"try: {sight.hint}"] if sight.hint and sight.reason else [])):
            hosts = said.setdefault(text, [])
            if sight.host not in hosts:
                hosts.append(sight.host)
    for text, hosts in said.items():
        line = Table.grid(padding=(0, GAP, 0, 0))
        line.add_column(no_wrap=True)
        line.add_column(overflow="fold")
        line.add_row(Text(_names(hosts), style="host"), Text(plain(" ".join(text.split()))))
        yield line


def below(sights: Sequence[Sight], width: int) -> Iterator[Table | Text]:
    """Yield what stands below the table: the notes and, of several servers, the sum of all."""
    yield from note_lines(sights, width)
    if len(sights) > 1:
        yield fleet_line(sights)


def fleet_line(sights: Sequence[Sight]) -> Text:
    """Return the servers in one line: how many in which state, and what they do together, as far as it is known."""
    states: dict[str, int] = {}
    for sight in sights:
        states[sight.state] = states.get(sight.state, 0) + 1
    parts = [
        f"{len(sights)} servers",
        *(f"{count} {state}" for state, count in sorted(states.items(), key=lambda one: -one[1])),
    ]
    for name, figures in (
        ("running", [sight.running for sight in sights]),
        ("waiting", [sight.waiting for sight in sights]),
    ):
        known = [told.value for told in figures if told is not None and not told.stale]
        if known:
            parts.append(f"{sum(known)} {name}")
    rates = [
        sight.tokens_per_s.value for sight in sights if sight.tokens_per_s is not None and not sight.tokens_per_s.stale
    ]
    if rates:
        parts.append(f"{sum(rates):.1f} tok/s")
    return Text(" · ".join(parts), style="quiet")


def _names(hosts: Sequence[str]) -> str:
    return ", ".join(hosts) if len(hosts) <= 3 else f"{', '.join(hosts[:2])} and {len(hosts) - 2} more"


def _width(column: Column, sights: Sequence[Sight]) -> int:
    return max([cell_len(column.name), *(cell_len(column.show(sight).plain) for sight in sights)])


def _decisions_are_whole(sights: Sequence[Sight], width: int) -> bool:
    columns = chosen(sights, width)
    return any(column.name == DECISION for column in columns) and (
        sum(_width(column, sights) + GAP for column in columns) - GAP <= width
    )
