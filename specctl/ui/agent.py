"""The agent for people: the plan of an install, the table of agents, a decision and its grounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from specctl.control.mode import parse
from specctl.control.sight_words import mode_text
from specctl.rollout import agent_unit, reading
from specctl.rollout.agent_plan import AgentPlan, AgentRow
from specctl.ui.text import UNKNOWN, age, plain

WIDE = 110


def plan_lines(plan: AgentPlan) -> Iterator[Text]:
    """Yield the lines of one host's plan."""
    what = plan.nothing or (f"{plan.before} → {plan.version}" if plan.before else f"install {plan.version}")
    yield Text.assemble((plan.host, "host"), f"  agent  {what}")
    if plan.nothing is not None:
        return
    yield Text(f"  python   {plan.python.path} ({plan.python.text})")
    for reason in plan.unfit:
        yield Text(f"           not {plain(reason)}", style="quiet")
    for name, digest in plan.wheels.items():
        yield Text(f"  wheel    {name}  sha256 {digest[:12]}…")
    yield Text(f"  units    {', '.join(sorted(plan.units))}")
    yield Text(plain(f"  metrics  {agent_unit.metrics_text(plan.config)}"))


def table(rows: Sequence[AgentRow], width: int) -> Table:
    """Return the table of agents, a line a server; an agent that says nothing is a line too."""
    view = Table(box=None, pad_edge=False, header_style="column", show_edge=False)
    names = [
        "HOST",
        "AGENT",
        "SERVER",
        "MODE",
        "ALGO",
        "LOAD",
        "DECISION",
        *(["SINCE", "VERSION"] if width >= WIDE else []),
    ]
    for name in names:
        view.add_column(name, no_wrap=name != "DECISION", ratio=1 if name == "DECISION" else None)
    for row in rows:
        for server in reading.rows(row.told.get("servers")) or ({},):
            decision = reading.mapping(server.get("decision"))
            # A mean of the last minutes: of an engine that answers no more it says nothing of now.
            load = None if server.get("running") is None else reading.number(server.get("concurrency"))
            cells: list[str | Text] = [
                Text(row.host, style="host"),
                Text(row.state, style="good" if row.state == "active" else "bad"),
                _shown(server.get("server")),
                _shown(server.get("conduct")),
                _short(server.get("mode")),
                UNKNOWN if load is None else f"{load:.1f}",
                _shown(decision.get("reason")),
            ]
            if width >= WIDE:
                cells += [age(reading.number(decision.get("for_s"))), row.version or UNKNOWN]
            view.add_row(*cells)
    return view


def answer_lines(host: str, server: str | None, result: Mapping[str, object]) -> Iterator[Text]:
    """Yield what one agent said about one server's decisions."""
    yield Text.assemble((host, "host"), f"  {server or ''}")
    decisions = reading.rows(result.get("decisions"))
    if not decisions:
        yield Text("  no decision yet")
    for decision in decisions:
        for line in decision_lines(decision):
            yield Text.assemble("  ", line)
    now = reading.mapping(result.get("now"))
    if now:
        yield Text("  now, with the figures of this moment:", style="quiet")
        for line in decision_lines({**now, "at": f"since {now.get('at') or UNKNOWN}"}):
            yield Text.assemble("  ", line)


def decision_lines(decision: Mapping[str, object]) -> Iterator[Text]:
    """Yield the lines of one decision: when and what, the rule and its reason, the figures, what would have had to differ."""
    head = [
        str(decision.get("at") or UNKNOWN),
        str(decision.get("decision") or UNKNOWN),
        f"({decision.get('conduct') or UNKNOWN})",
    ]
    yield Text(plain("  ".join(head)))
    yield Text(plain(f"  because  {decision.get('reason') or UNKNOWN}  [{decision.get('rule') or UNKNOWN}]"))
    for name, value in sorted(reading.mapping(decision.get("inputs")).items()):
        yield Text(plain(f"  {name} = {_figure(value)}"), style="quiet")
    if decision.get("otherwise"):
        yield Text(plain(f"  else if  {decision['otherwise']}"))


def trouble_lines(rows: Sequence[AgentRow]) -> Iterator[Text]:
    """Yield what agents say that is not as it should be: what of their own work they cannot do."""
    for row in rows:
        for subject, words in reading.mapping(row.told.get("troubles")).items():
            yield Text.assemble((row.host, "host"), plain(f"  trouble with {subject}: {words}"))


def _short(mode: object) -> str:
    """Return a mode as the status table shows one: ddtree 8/16/8; one that is not known here as it was told."""
    try:
        return mode_text(parse(str(mode or UNKNOWN)))
    except ValueError:
        return _shown(mode)


def _figure(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown(value: object) -> str:
    return plain(str(value)) if value not in (None, "") else UNKNOWN
