"""A plan as a person reads it before saying yes (ux: what changes, what stays, what it costs)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.plan import Change, ChangeKind, Plan
from specctl.rollout.story import clock
from specctl.ui import checks

SHOWN_CHANGES = 12
PLUGINS = "plugins/"
LABEL = 8
LIVE = "the engine takes it without a start: add --live"
NOTE = "the agent on the host is told anew what it may do; the server is not touched"
LABEL_STYLES: Mapping[str, str] = {"warn": "warn", "fail": "bad"}


def gpus_text(facts: HostFacts) -> str | None:
    """Say which GPUs the host has: 8× NAME; None when not known or there is none."""
    gpus = facts.graphics.gpus
    if not gpus:
        return None
    models = {gpu.model or "GPU" for gpu in gpus}
    return f"{len(gpus)}× {' + '.join(sorted(models))}"


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


def _short(plan: Plan) -> str:
    """Return algo and knobs in one line: what becomes of each."""
    if plan.running is None:
        knobs = [f"{name} {value}" for name, value in plan.knobs.items()]
        return "   ".join([f"algo {plan.algo}", *knobs])
    parts = [
        f"{change.name} {change.after}" if change.before is None and change.after else change_text(change)
        for change in plan.changes
        if change.kind in (ChangeKind.ALGO, ChangeKind.KNOB) and change.after is not None
    ]
    return "   ".join(parts)


def rows(plan: Plan) -> list[tuple[str, str]]:
    """Return the plan as labelled lines: what changes, what is written, what it costs, what to know."""
    found: list[tuple[str, str]] = []
    if short := _short(plan):
        found.append(("change", short))
    if plan.running is None:
        found.append(("", f"first deploy, {plan.arguments} flags"))
    else:
        for kind, label in ((ChangeKind.FLAG, "flags"), (ChangeKind.ENV, "env")):
            lines = [change_text(change) for change in plan.changes if change.kind is kind]
            if len(lines) > SHOWN_CHANGES:
                lines = [*lines[:SHOWN_CHANGES], f"… and {len(lines) - SHOWN_CHANGES} more: --diff shows all"]
            found.extend((label if number == 0 else "", line) for number, line in enumerate(lines))
        if plan.arguments_changed:
            found.append(("", f"{plan.arguments_changed} of {plan.arguments} flags"))
        if not plan.changes:
            found.append(
                ("change", f"files {', '.join(_named(plan.files))}" if plan.files else "nothing but a restart")
            )
    carried = [name.removeprefix(PLUGINS) for name in _named(plan.files) if name.startswith(PLUGINS)]
    release = f"release {plan.release}{f', with the plugin {carried[0]}' if carried else ''}"
    found.append(("write", release if plan.writes else f"nothing: release {plan.release} is on the host"))
    found.append(("cost", cost_text(plan)))
    if plan.checks is not None:
        found.extend(checks.plan_rows(plan.checks))
    found.extend(("warn", warning) for warning in plan.warnings if not _said(plan, warning))
    return found


def _named(files: Sequence[str]) -> list[str]:
    """Return files as people want them named: those of a plugin by its folder."""
    return list(dict.fromkeys("/".join(name.split("/")[:2]) for name in files))


def _said(plan: Plan, warning: str) -> bool:
    """Claim that a check says the same, such as that of the host's drift."""
    return plan.checks is not None and any(warning in finding.reason for finding in plan.checks.told())


def cost_text(plan: Plan) -> str:
    """Say how long the server will be away."""
    if plan.predicted_s is None:
        return "load time not known yet on this host"
    loads = ", ".join(clock(value) for value in plan.past_loads_s[-3:])
    return f"~{clock(plan.predicted_s)} without this server (last loads {loads})"


def view(
    plan: Plan,
    facts: ServerFacts,
    host: HostFacts,
    profile: str,
    *,
    diff: bool = False,
    live: bool = False,
    width: int | None = None,
) -> Group:
    """Return the whole plan of one server; long lines hang under their label, unwrapped where there is no width.

    `live`: the same can be had without a start.
    """
    top = head(plan, facts, host, profile)
    if plan.nothing is not None:
        told = [Text(f"  {NOTE}")] if plan.note else []
        return Group(top, Text.assemble("  nothing to do: ", plan.nothing), *told)
    parts: list[RenderableType] = [top, Text("")]
    for label, line in [*rows(plan), *([("or", LIVE)] if live else [])]:
        pieces = wrapped(line, width)
        for number, piece in enumerate(pieces):
            shown = label if number == 0 else ""
            parts.append(Text.assemble((f"  {shown:<{LABEL}}", LABEL_STYLES.get(label, "quiet")), piece))
    if diff and plan.diff:
        parts.extend([Text(""), diff_view(plan.diff)])
    return Group(*parts, Text(""))


def wrapped(line: str, width: int | None) -> list[str]:
    """Return a line in pieces that fit beside the label; a word that is too long stays whole."""
    if width is None:
        return [line]
    room = max(20, width - LABEL - 2)
    return textwrap.wrap(line, room, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) or [""]


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
