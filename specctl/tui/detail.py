"""The page of one server: charts, GPUs, the decision and why, what is set, what happened; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.text import Text

from specctl.control.sight import Sight
from specctl.control.sight_events import Event, Kind
from specctl.control.sight_past import Past
from specctl.rollout import reading
from specctl.rollout.story import clock
from specctl.tui import charts, spark, words
from specctl.tui.columns import Row
from specctl.tui.layout import Part, beside, labelled, packed, rule, text
from specctl.tui.rowtext import fitted
from specctl.ui.text import UNKNOWN, plain

WIDE = 110
ROOMY = 18
EVENT_STYLES = {Kind.STATE: "phase", Kind.DECISION: "title", Kind.ACT: "id", Kind.DRIFT: "warn", Kind.GPU: "warn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that a page tells of one server: its row, its past, its newest decision with its grounds, what happened."""

    row: Row
    past: Past
    decision: Mapping[str, object] | None = None
    events: tuple[Event, ...] = ()

    @property
    def sight(self) -> Sight:
        """Return what it looks like now."""
        return self.row.sight


def head(sight: Sight, width: int, right: Text) -> Text:
    """Return the first line of the page: which server, what it runs, how it is."""
    parts: list[Part] = [
        (100, text(words.one_line(sight.host), "host")),
        (95, text(words.one_line(sight.server))),
        (90, text(words.state_text(sight), words.state_style(sight))),
        (85, text(words.mode_text(sight.mode))),
        (70, _age(sight)),
        *([(60, text(f"release {words.one_line(sight.release)}", "quiet"))] if sight.release else []),
        *([(50, text(words.one_line(", ".join(sight.groups)), "quiet"))] if sight.groups else []),
    ]
    return packed(parts, width, right)


def _age(sight: Sight) -> Text:
    """Say how old the figures are; old ones are no news."""
    age = sight.age_s if sight.figures_age_s is None else sight.figures_age_s
    if age is None:
        return text("no figures", "warn")
    stale = sight.running is not None and sight.running.stale
    return text("figures ", "quiet").append(f"{words.ago(age)} old", style="warn" if stale else "quiet")


def page(story: Story, width: int, height: int) -> list[Text]:
    """Return the whole page; on a wide screen charts and words stand side by side."""
    sight = story.sight
    top = [*_problems(story.row, width), *load(sight, width)]
    if width < WIDE:
        tall = 3 if height < 34 else 4
        pictures = _pictures(story, width, tall)
        return [
            *top,
            *pictures,
            *charts.gpus(sight, story.past, width),
            *why(story, width),
            *_settings(sight, width),
            *happened(story.events, width, 8),
        ]
    half = (width - 3) // 2
    tall = 4 if height < 42 else 6
    left = _pictures(story, half, tall)
    right = [*why(story, width - 3 - half), *_settings(sight, width - 3 - half)]
    return [
        *top,
        *beside(left, right, half),
        *charts.gpus(sight, story.past, width),
        *happened(story.events, width, 12),
    ]


def peek(story: Story, width: int, height: int) -> list[Text]:
    """Return the lines under the table: the server under the cursor in short, or its page where there is room for most of it."""
    sight, row = story.sight, story.row
    title = rule(f"{words.one_line(sight.host)} · {words.one_line(sight.server)}", width, "Enter shows all")
    if height >= ROOMY:
        return [title, *page(story, width, height)][:height]
    said = [
        *load(sight, width)[1:],
        *(labelled("problem", p.text, width, "bad" if p.grave else "warn")[0] for p in row.problems[:3]),
    ]
    lines = [title, *said]
    rest = height - len(lines)
    if rest < 3:
        return lines[:height]
    half = (width - 3) // 2
    left = charts.requests(sight, story.past, half, rest - 1)
    right = charts.figures(
        _tokens_title(sight), story.past.tokens_per_s, story.past, width - half - 3, rest - 1, "line.tokens"
    )
    return [*lines, *beside(left, right, half)][:height]


def _tokens_title(sight: Sight) -> str:
    return f"tok/s  {words.figure(words.shown(sight.tokens_per_s))}"


def _problems(row: Row, width: int) -> list[Text]:
    lines = []
    for problem in row.problems:
        lines += labelled("problem", problem.text, width, "bad" if problem.grave else "warn")
    if row.problems and row.sight.hint:
        lines += labelled("try", words.one_line(row.sight.hint), width)
    return lines


def load(sight: Sight, width: int) -> list[Text]:
    """Return how far a load is: phase, bar, detail, time, expected end; nothing where none goes on."""
    found = sight.loading
    if found is None:
        return []
    done, eta, elapsed = words.known(found.progress), words.known(found.eta_s), words.known(found.elapsed_s)
    line = text(f" {words.one_line(found.phase):<12} ", "phase")
    line.append(spark.bar(done, 30) if done is not None else "─" * 30, style="bar.done")
    parts = [
        "" if done is None else f"{done * 100:.0f} %",
        words.one_line(found.detail or ""),
        UNKNOWN if elapsed is None else f"{clock(elapsed)} gone",
        "when ready is not known" if eta is None else f"ready in ~{clock(eta)}",
    ]
    line.append("  ").append("  ".join(part for part in parts if part))
    line.truncate(width, overflow="ellipsis")
    lines = [rule("loading", width), line]
    if found.fatal:
        lines += labelled("fails", words.one_line(found.fatal), width, "bad")
    return lines


def _pictures(story: Story, width: int, height: int) -> list[Text]:
    sight, past = story.sight, story.past
    return [
        *charts.requests(sight, past, width, height),
        *charts.figures(_tokens_title(sight), past.tokens_per_s, past, width, height, "line.tokens"),
        charts.strip(
            "accept", words.figure(words.shown(sight.accept_length), 2), past.accept_length, width, "line.accept"
        ),
        charts.strip("KV in use", words.percent(words.shown(sight.kv_ratio)), past.kv_ratio, width, "line.gpu"),
    ]


def why(story: Story, width: int) -> list[Text]:
    """Return the decision in words: what, since when, why, what would have had to differ, what stands in its way."""
    agent = story.sight.agent
    if agent is None:
        said = words.one_line(story.sight.agent_trouble or "no agent on this host")
        return [rule("decision", width), *labelled("agent", said, width, "quiet")]
    conduct = words.one_line(agent.conduct or UNKNOWN)
    lines = [rule("decision", width, f"agent {words.one_line(agent.version or '')} in mode {conduct}")]
    decided, told = agent.decision, story.decision or {}
    if decided is not None:
        since = f", for {words.ago(decided.for_s)}" if decided.for_s is not None else ""
        lines += labelled("decided", words.one_line(f"{decided.text}{since}"), width, "id")
        rule_name = f"  [{decided.rule}]" if decided.rule else ""
        lines += labelled("because", words.one_line(f"{decided.reason or UNKNOWN}{rule_name}"), width)
    else:
        lines += labelled("decided", "nothing yet", width, "quiet")
    if told.get("otherwise"):
        lines += labelled("would act", words.one_line(f"on {told['otherwise']}"), width)
    figures = ", ".join(
        f"{name} {_figure(value)}" for name, value in sorted(reading.mapping(told.get("inputs")).items())
    )
    if figures:
        lines += labelled("figures", words.one_line(figures), width, "quiet")
    return [*lines, *_in_the_way(story.sight, width)]


def _in_the_way(sight: Sight, width: int) -> list[Text]:
    agent = sight.agent
    if agent is None:
        return []
    left = words.known(agent.pin_left_s)
    until = "" if left is None else f", {words.ago(left)} left"
    said = (
        ("acting", agent.acting, "phase"),
        ("pinned", agent.pinned and f"{agent.pinned}{until}", "warn"),
        ("held", agent.held, "warn"),
        ("frozen", agent.frozen, "warn"),
    )
    lines = []
    for label, words_said, style in said:
        if words_said:
            lines += labelled(label, words.one_line(words_said), width, style)
    return lines


def _figure(value: object) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.4g}" if isinstance(value, float) else plain(str(value))


def _settings(sight: Sight, width: int) -> list[Text]:
    """Return what is wanted, what is deployed, what runs, who owns it, and the newest act."""
    proof = {True: ", proven", False: ", claimed and not proven", None: ""}[sight.proven]
    by = f", set live by {words.one_line(sight.live_by)}" if sight.live_by else ""
    lines = [
        rule("setting", width),
        *labelled("wanted", words.mode_long(sight.desired), width),
        *labelled("deployed", words.mode_long(sight.deployed), width),
        *labelled("live", f"{words.mode_long(sight.live)}{proof if sight.live else ''}{by}", width),
    ]
    if sight.owned:
        lines += labelled("owned", f"the agent may choose {words.one_line(', '.join(sight.owned))}", width)
    if sight.last is not None:
        last = sight.last
        ago = f", {words.ago(last.age_s)} ago" if last.age_s is not None else ""
        said = f"{last.act} by {last.who or UNKNOWN}{ago}: {last.result or UNKNOWN}"
        lines += labelled("last act", words.one_line(said), width)
    return lines


def happened(events: Sequence[Event], width: int, most: int) -> list[Text]:
    """Return the newest events of a server, the newest first."""
    lines = [rule("events", width, "e shows all")]
    if not events:
        return [*lines, text(" nothing since this watch began", "quiet")]
    return [*lines, *(event_line(event, width) for event in reversed(events[-most:]))]


def event_line(event: Event, width: int, host_width: int | None = None) -> Text:
    """Return one event; `host_width`: with its host, in so many cells."""
    line = text(f" {day_and_time(event.at)}  ", "quiet").append(
        f"{event.kind.value:<9}", style=EVENT_STYLES.get(event.kind, "")
    )
    if host_width is not None:
        line.append(f"{fitted(words.one_line(event.host), host_width)}  ", style="host")
    line.append(words.one_line(event.text))
    line.truncate(width, overflow="ellipsis")
    return line


def day_and_time(at: float) -> str:
    """Return a moment (Unix seconds) with its day; — for one that no calendar has."""
    try:
        return datetime.fromtimestamp(at).astimezone().strftime("%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return UNKNOWN
