"""The status table: columns give way to a narrow screen by what they matter; unknown is —, stale is dim with its age."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from specctl.control.sight import GpuSight, Sight, State, Told
from specctl.control.sight_words import age, last_decision, mode_text, notes, stands_out, wish
from specctl.rollout.story import clock
from specctl.ui.text import UNKNOWN, plain

# Words of the service manager while a unit goes from one state to another.
MOVING = ("activating", "deactivating", "reloading")
STATE_STYLES = {
    **dict.fromkeys(MOVING, "phase"),
    State.READY.value: "good",
    State.LOADING.value: "phase",
    State.STOPPED.value: "quiet",
    State.NOT_DEPLOYED.value: "quiet",
    State.NOT_READY.value: "warn",
}
GAP = 2
# A decision that shows less than this says nothing: its column goes before that.
LEAST_DECISION = 26
LUXURY = 9
NOTHING_KNOWN = 20


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


HOST, AGE, DECISION = "HOST", "AGE", "LAST DECISION"
COLUMNS = (
    Column(name=HOST, show=lambda sight: Text(sight.host, style="host"), rank=0, right=False),
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
    Column(name=AGE, show=age_text, rank=3),
    Column(name="RELEASE", show=lambda sight: Text(plain(sight.release or UNKNOWN)), rank=9),
    Column(name=DECISION, show=decision_text, rank=6, right=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which columns a table has, each with its width in cells."""

    columns: tuple[tuple[Column, int], ...]
    whole: bool

    @classmethod
    def of(cls, sights: Sequence[Sight], width: int) -> Layout:
        """Choose the columns that fit into a width, those that matter most first.

        The last decision may be cut, down to a bound; what is a luxury comes only beside a whole one. `whole`: nothing is cut.
        """
        widths = {column.name: _width(column, sights) for column in COLUMNS}
        kept: dict[str, int] = {}
        room = width + GAP
        for column in sorted(COLUMNS, key=lambda column: _rank(column, sights)):
            wanted = widths[column.name]
            cut = widths[DECISION] - kept.get(DECISION, 0) if column.rank >= LUXURY else 0
            least = min(wanted, LEAST_DECISION) if column.name == DECISION else wanted
            if column.rank > 0 and least + GAP + cut > room:
                break
            kept[column.name] = least
            room -= least + GAP
        if DECISION in kept:
            kept[DECISION] = min(widths[DECISION], kept[DECISION] + max(0, room))
        shown = tuple((column, kept[column.name]) for column in COLUMNS if column.name in kept)
        return cls(columns=shown, whole=kept.get(DECISION) == widths[DECISION])


def _rank(column: Column, sights: Sequence[Sight]) -> int:
    """Return a column's rank; one in which nothing is known matters least of all, and the age more than a figure that is old."""
    if column.name == AGE and any(told.stale for sight in sights for told in (sight.running, sight.waiting) if told):
        return 1
    empty = column.rank > 1 and all(column.show(sight).plain == UNKNOWN for sight in sights)
    return column.rank + NOTHING_KNOWN if empty else column.rank


def table(sights: Sequence[Sight], width: int, *, of: Sequence[Sight] = ()) -> Table:
    """Return the table of servers; `of`: more of them, by which its columns are laid out, so that parts of it look alike."""
    view = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="column", show_edge=False)
    layout = Layout.of(of or sights, width)
    fits = sum(cells + GAP for _, cells in layout.columns) - GAP <= width
    for column, cells in layout.columns:
        view.add_column(
            column.name,
            justify="right" if column.right else "left",
            width=None if column.name == HOST and not fits else cells,
            no_wrap=column.name != HOST,
            overflow="fold" if column.name == HOST else "ellipsis",
        )
    for sight in sights:
        view.add_row(*(column.show(sight) for column, _ in layout.columns))
    return view


def note_lines(sights: Sequence[Sight], width: int) -> Iterator[Table]:
    """Yield what a person should know beside the rows, hosts that share a note on one line; and what to do next."""
    whole = Layout.of(sights, width).whole
    said: dict[str, list[str]] = {}
    for sight in sights:
        cut = last_decision(sight) if not whole and stands_out(sight) else None
        hint = f"try: {sight.hint}" if sight.reason and sight.hint else None
        for text in (cut, *notes(sight), wish(sight), hint):
            hosts = said.setdefault(text, []) if text else [sight.host]
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
    parts += _sums(sights)
    return Text(" · ".join(parts), style="quiet")


def _sums(sights: Sequence[Sight]) -> Iterator[str]:
    """Yield what the servers do together; where not all tell it, how many do."""
    counts = [(sight.running, sight.waiting) for sight in sights]
    known = [
        (run, wait) for run, wait in counts if run is not None and wait is not None and not (run.stale or wait.stale)
    ]
    of = "" if len(known) == len(sights) else f" on the {len(known)} that tell"
    if known:
        running, waiting = sum(run.value for run, _ in known), sum(wait.value for _, wait in known)
        yield f"{running} running, {waiting} waiting{of}"
    rates = [told.value for sight in sights if (told := sight.tokens_per_s) is not None and not told.stale]
    if rates:
        yield f"{sum(rates):.1f} tok/s"


def _names(hosts: Sequence[str]) -> str:
    return ", ".join(hosts) if len(hosts) <= 3 else f"{', '.join(hosts[:2])} and {len(hosts) - 2} more"


def _width(column: Column, sights: Sequence[Sight]) -> int:
    return max([cell_len(column.name), *(cell_len(column.show(sight).plain) for sight in sights)])
