"""A plan as a person reads it before saying yes (ux: what changes, what stays, what it costs)."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.plan import Change, Plan
from specctl.rollout.story import clock

SHOWN_CHANGES = 12


def gpus_text(facts: HostFacts) -> str | None:
    """Say which GPUs the host has: 8× NAME; None when not known or there is none."""
    if not facts.gpus:
        return None
    models = {gpu.model or "GPU" for gpu in facts.gpus}
    return f"{len(facts.gpus)}× {' + '.join(sorted(models))}"


def state_text(facts: ServerFacts) -> str:
    """Say what runs now."""
    if facts.current is None:
        return "nothing deployed yet"
    active = facts.unit.active or "state unknown"
    return f"{'running' if active == 'active' else active} {facts.current.algo}, release {facts.current.id}"


def head(plan: Plan, facts: ServerFacts, host: HostFacts, profile: str) -> Text:
    """Return the first line of a plan: host, server, engine, hardware, state."""
    parts = [plan.server, profile, gpus_text(host), state_text(facts)]
    return Text.assemble((plan.host, "host"), *((f" · {part}", "") for part in parts if part))


def change_text(change: Change) -> str:
    """Return one change: before → after, + what is new, - what goes."""
    if change.before is None:
        return f"+ {change.name} {change.after or ''}".rstrip()
    if change.after is None:
        return f"- {change.name} {change.before}".rstrip()
    return f"{change.name} {change.before or '(set)'} → {change.after or '(set)'}"


def change_lines(plan: Plan) -> list[str]:
    """Return the changes that are shown; a first deploy is summed up, since everything is new."""
    if plan.running is None:
        knobs = "   ".join(f"{name} {value}" for name, value in plan.knobs.items())
        return [f"first deploy   algo {plan.algo}   {knobs}".rstrip()]
    lines = [change_text(change) for change in plan.changes]
    if len(lines) > SHOWN_CHANGES:
        lines = [*lines[:SHOWN_CHANGES], f"… and {len(lines) - SHOWN_CHANGES} more (--diff shows all)"]
    if not lines and plan.files:
        lines = [f"files {', '.join(plan.files)}"]
    return lines or ["nothing but a restart"]


def cost_text(plan: Plan) -> str:
    """Say how long the server will be away."""
    if plan.predicted_s is None:
        return "load time not known yet on this host"
    loads = ", ".join(clock(value) for value in plan.past_loads_s[-3:])
    return f"~{clock(plan.predicted_s)} without this server (last loads {loads})"


def view(plan: Plan, facts: ServerFacts, host: HostFacts, profile: str, *, diff: bool = False) -> Group:
    """Return the whole plan of one server."""
    top = head(plan, facts, host, profile)
    if plan.nothing is not None:
        return Group(top, Text.assemble("  nothing to do: ", plan.nothing))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="quiet", min_width=8, no_wrap=True)
    grid.add_column(overflow="fold")
    for number, line in enumerate(change_lines(plan)):
        grid.add_row("  change" if number == 0 else "", line)
    if plan.running is not None:
        grid.add_row("", f"({plan.arguments_changed} of {plan.arguments} flags)", style="quiet")
    grid.add_row(
        "  write", f"release {plan.release}" if plan.writes else f"nothing: release {plan.release} is on the host"
    )
    grid.add_row("  cost", cost_text(plan))
    for warning in plan.warnings:
        grid.add_row("  warn", warning, style="warn")
    parts: list[RenderableType] = [top, Text(""), grid]
    if diff and plan.diff:
        parts.extend([Text(""), diff_view(plan.diff)])
    return Group(*parts, Text(""))


def diff_view(diff: str) -> Text:
    """Return a unified diff with its lines styled by their first character."""
    styles = {"+": "good", "-": "bad", "@": "quiet"}
    text = Text()
    for line in diff.splitlines():
        text.append(f"  {line}\n", style=styles.get(line[:1], ""))
    return text


def question(plans: Sequence[Plan]) -> str:
    """Return what is asked before acting."""
    hosts = len({plan.host for plan in plans})
    return "Go ahead?" if hosts == 1 else f"Go ahead on {hosts} hosts?"
