"""`specctl status`: one look at every selected server or, with --watch, one after the other until Ctrl-C."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.errors import UsageError

if TYPE_CHECKING:
    from specctl.control.sight import Sight
    from specctl.fleet.types import Host, Server

    Show = Callable[[Sequence[Sight]], None]

# A fleet's first looks come within a second or two; what has not come by then is shown as not looked at yet.
FIRST_S = 3.0
INTERVAL_S = 2.0
WATCH = Annotated[bool, typer.Option("--watch", "-w", help="Look again and again until Ctrl-C.")]
INTERVAL = Annotated[
    float | None,
    typer.Option("--interval", min=0.5, max=3600.0, metavar="SECONDS", help="How often --watch shows anew [2]."),
]


@options.selecting()
def status(
    chosen: options.Chosen, watch: WATCH = False, interval: INTERVAL = None, as_json: options.JSON = False
) -> None:
    """Show what every selected server runs and how it is."""
    if interval is not None and not watch:
        raise UsageError("--interval has no meaning without --watch", hint="specctl status --watch")
    pairs = chosen.pairs()
    if watch:
        _watch(pairs, interval or INTERVAL_S, as_json=as_json)
        return
    gc.disable()  # A look is over in a second, and a tenth of it would go into walking what imports have left.
    _once(pairs, as_json=as_json)


def _once(pairs: Sequence[tuple[Host, Server]], *, as_json: bool) -> None:
    """Look once and show it; hosts are dialled while the rest is imported."""
    from specctl.ops.dialling import Dialling

    dial = Dialling([host for host, _ in pairs])
    from specctl.ops import sights

    found = sights.look(pairs, dial=dial)
    if as_json:
        typer.echo(_json(found, indent=2))
        return
    from specctl.cli.printed import listing
    from specctl.ui.status_watch import whole

    out = listing()
    for each in whole(found, out.width):
        out.print(each)


def _json(sights: Sequence[Sight], indent: int | None = None) -> str:
    from specctl.control.sight_wire import as_wire

    return json.dumps({"servers": [as_wire(sight) for sight in sights]}, indent=indent)


def _watch(pairs: Sequence[tuple[Host, Server]], interval_s: float, *, as_json: bool) -> None:
    """Show the newest sights at each interval; Ctrl-C is how a watch ends, and so no failure."""
    from specctl.ops.sights import Watch, sources

    watch = Watch(sources(pairs), period_s=min(1.0, interval_s))
    watch.start()
    try:
        watch.first(FIRST_S)
        if as_json:
            _lines(watch.sights, interval_s)
        else:
            _pictures(watch.sights, interval_s)
    except KeyboardInterrupt:
        pass
    finally:
        watch.close()


def _lines(look: Callable[[], Sequence[Sight]], interval_s: float) -> None:
    """Print a JSON object a line with the servers of which there is news."""
    from specctl.ui.status_watch import Changes

    changes = Changes()

    def show(sights: Sequence[Sight]) -> None:
        news = changes.changed(sights)
        if news:
            typer.echo(_json(news))

    _each(interval_s, look, show)


def _pictures(look: Callable[[], Sequence[Sight]], interval_s: float) -> None:
    """Draw the table in place on a terminal; elsewhere print what changed, with the time of day."""
    from rich.console import Group
    from rich.live import Live

    from specctl.cli.printed import listing
    from specctl.ui.status_watch import Changes, whole

    out = listing()
    if out.is_terminal:
        with Live(console=out, auto_refresh=False) as live:
            _each(interval_s, look, lambda sights: live.update(Group(*whole(sights, out.width)), refresh=True))
    changes = Changes()

    def show(sights: Sequence[Sight]) -> None:
        for each in changes.lines(sights, out.width, time.strftime("%H:%M:%S")):
            out.print(each)

    _each(interval_s, look, show)


def _each(interval_s: float, look: Callable[[], Sequence[Sight]], show: Show) -> None:
    """Show at every beat, for ever."""
    beat_s = time.monotonic()
    while True:
        show(look())
        beat_s = max(beat_s + interval_s, time.monotonic())
        time.sleep(max(0.0, beat_s - time.monotonic()))
