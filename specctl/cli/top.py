"""`specctl top`: the terminal dashboard; reads unless it is started with --allow-acts."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.errors import EXIT_INTERRUPTED, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specctl.fleet.types import Host, Server
    from specctl.tui.app import Top
    from specctl.tui.wishes import Performer

THEMES = ("auto", "dark", "light")
SIZE = "120x36"
_SIZE = re.compile(r"([0-9]{2,3})x([0-9]{2,3})")
LEAVE_S = 2.0
NARROWEST, WIDEST, LOWEST, HIGHEST = 40, 400, 10, 200


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("top")(top)


@options.selecting()
def top(
    chosen: options.Chosen,
    allow_acts: Annotated[
        bool, typer.Option("--allow-acts", help="Offer switch, pin, hold, rollback, each behind its plan and a yes.")
    ] = False,
    period_s: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.5, max=60.0, help="Look at hosts so often.")
    ] = 1.0,
    theme: Annotated[str, typer.Option("--theme", help="auto, dark or light.", metavar="THEME")] = "auto",
    view: Annotated[
        str | None, typer.Option("--view", metavar="HOST[/SERVER]", help="Begin with this server in detail.")
    ] = None,
    screenshot: Annotated[
        Path | None,
        typer.Option("--screenshot", metavar="FILE.svg", help="Write one frame as SVG and leave; needs no terminal."),
    ] = None,
    size: Annotated[str, typer.Option("--size", metavar="WxH", help="Cells of the screenshot.")] = SIZE,
) -> int:
    """Watch the fleet on one screen: servers, load, GPUs, decisions, logs; all hosts where none is named."""
    cells = _cells(size)
    if theme not in THEMES:
        raise UsageError(f"there is no theme {theme}", hint="auto, dark or light")
    if screenshot is not None:
        _refuse_other(screenshot)
    else:
        from specctl.tui import terminal

        terminal.require(os.environ, sys.stdin, sys.stdout, sys.stderr)
    pairs = chosen.pairs(every=not chosen.given)
    _require_there(view, pairs)
    return _run(pairs, period_s, theme, view, screenshot, cells, allow_acts=allow_acts)


def _run(
    pairs: Sequence[tuple[Host, Server]],
    period_s: float,
    theme: str,
    view: str | None,
    screenshot: Path | None,
    cells: tuple[int, int],
    *,
    allow_acts: bool,
) -> int:
    """Watch, draw, and hang up at the end."""
    from specctl.ops.sights import Watch, sources
    from specctl.tui import terminal
    from specctl.tui.app import Top

    watch = Watch(sources(pairs), period_s=period_s)
    light = terminal.asks_light() if screenshot is None and theme == "auto" and "NO_COLOR" not in os.environ else None
    shot_colours = {**os.environ, "COLORTERM": "truecolor"} if screenshot is not None else os.environ
    app = Top(
        watch,
        performer=_performer(pairs) if allow_acts else None,
        palette=terminal.palette_for(shot_colours, theme, light=light),
        ascii_only=screenshot is None and terminal.ascii_only(os.environ, sys.stdout.encoding),
        period_s=period_s,
        open_at=view,
    )
    watch.start()
    try:
        if screenshot is not None:
            _shoot(app, screenshot, cells)
        else:
            app.run()
    finally:
        watch.close()
    return _left(app)


def _performer(pairs: Sequence[tuple[Host, Server]]) -> Performer:
    from functools import partial

    from specctl.adapters.templates import Templates
    from specctl.ops import deploy
    from specctl.tui.performing import OpsPerformer

    return OpsPerformer(pairs, partial(deploy.rollout, templates=Templates(())))


def _cells(size: str) -> tuple[int, int]:
    """Read WIDTHxHEIGHT; raises UsageError for what no frame can be drawn on."""
    found = _SIZE.fullmatch(size)
    if found is not None:
        width, height = int(found[1]), int(found[2])
        if NARROWEST <= width <= WIDEST and LOWEST <= height <= HIGHEST:
            return width, height
    raise UsageError(
        f"--size {size} is no size from {NARROWEST}x{LOWEST} to {WIDEST}x{HIGHEST} cells", hint=f"--size {SIZE}"
    )


def _refuse_other(path: Path) -> None:
    """Raise UsageError for a file that the screenshot could not be, before any host is reached."""
    if path.suffix.lower() != ".svg":
        raise UsageError(f"a screenshot is an SVG, and {path.name} does not end in .svg", hint="--screenshot top.svg")
    from specctl.adapters import lasting

    lasting.refuse_place(path)


def _require_there(view: str | None, pairs: Sequence[tuple[Host, Server]]) -> None:
    """Raise UsageError where --view names a server that is not selected."""
    if view is None:
        return
    host, _, server = view.partition("/")
    if any(one.name == host and server in ("", two.name) for one, two in pairs):
        return
    names = ", ".join(dict.fromkeys(one.name for one, _ in pairs))
    raise UsageError(f"--view {view} is not among the selected servers", hint=f"one of {names}")


def _shoot(app: Top, path: Path, cells: tuple[int, int]) -> None:
    """Write one frame, once every host has answered or is known not to."""
    from specctl.adapters import lasting
    from specctl.tui.shot import shot

    drawn = shot(app, cells, ready=app.model.complete)
    lasting.write(path, drawn.encode(), hint="name a file that can be written")


def _left(app: Top) -> int:
    """Return the exit code; where an act is still under way, leave it to the host's guard, for its threads may wait for long."""
    from specctl.tui.wishes import Phase

    errand = app.errand
    if errand is None or errand.phase.over:
        return app.return_code or 0
    errand.answer(yes=False)
    if errand.join(LEAVE_S):
        return 0
    running = errand.phase is Phase.RUNNING
    if running:
        typer.echo(
            f"left while {errand.wish} goes on: unconfirmed, the host's guard takes it back (specctl status)", err=True
        )
    sys.stdout.flush()
    os._exit(EXIT_INTERRUPTED if running else 0)
