"""A switch of a running engine as a person reads it before saying yes."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from specctl.control.live_plan import LivePlan
from specctl.ui.plan import LABEL, wrapped


def view(plan: LivePlan, profile: str, width: int | None = None) -> Group:
    """Return the plan of one server; long lines hang under their label, unwrapped where there is no width."""
    top = Text.assemble((plan.host, "host"), f" · {plan.server} · {profile} · running {plan.old}")
    if plan.nothing:
        return Group(top, Text(f"  nothing to do: it runs {plan.new}"))
    rows = (
        ("change", f"{plan.old} → {plan.new}"),
        ("tell", ", ".join(f"{name} {'null' if value is None else value}" for name, value in plan.tell.items())),
        ("cost", "none: nothing is started, and no request is lost"),
        ("start", f"a start would run {plan.starts}"),
    )
    parts: list[RenderableType] = [top, Text("")]
    for label, line in rows:
        for number, piece in enumerate(wrapped(line, width)):
            parts.append(Text.assemble((f"  {label if number == 0 else '':<{LABEL}}", "quiet"), piece))
    return Group(*parts, Text(""))
