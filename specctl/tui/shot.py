"""One frame as SVG, without a terminal: for READMEs, reports and tests of what a person would see."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.pilot import Pilot

from specctl.tui.app import Top
from specctl.tui.server_view import ServerView

POLL_S = 0.05
FIRST_S = 30.0
REPLIES_S = 10.0


def shot(app: Top, size: tuple[int, int], *, ready: Callable[[], bool], first_s: float = FIRST_S) -> str:
    """Run an app without a terminal until `ready`, or for so long, and return what it shows."""
    drawn: list[str] = []

    async def take(pilot: Pilot[object]) -> None:
        await _until(pilot, ready, first_s)
        app.begin()
        app.tick()
        await pilot.pause()
        if isinstance(app.screen, ServerView):
            await _until(pilot, app.model.asked.idle, REPLIES_S)
            app.screen.redraw()
        await pilot.pause()
        drawn.append(app.export_screenshot())
        app.exit()

    app.run(headless=True, size=size, auto_pilot=take)
    return drawn[0]


async def _until(pilot: Pilot[object], true: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not true() and time.monotonic() < deadline:
        await pilot.pause(POLL_S)
