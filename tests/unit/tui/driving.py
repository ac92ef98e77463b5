"""Run the dashboard without a terminal, press keys, and read what it shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from textual.pilot import Pilot

from specctl.tui.app import Top
from specctl.tui.model import Feed
from specctl.tui.palette import DARK, Palette
from specctl.tui.wishes import Performer
from tests.unit.tui import world

T = TypeVar("T")
WITHIN_S = 10.0
# No look comes by itself while a test runs: `tick` is called where one is wanted.
NEVER_S = 3600.0


def dashboard(
    feed: Feed | None = None,
    *,
    performer: Performer | None = None,
    palette: Palette = DARK,
    ascii_only: bool = False,
    open_at: str | None = None,
) -> Top:
    """Return a dashboard of the made-up fleet at its own moment."""
    return Top(
        feed or world.FakeFeed(),
        performer=performer,
        palette=palette,
        ascii_only=ascii_only,
        clock=lambda: world.NOW_S,
        period_s=NEVER_S,
        open_at=open_at,
    )


def drive(
    app: Top,
    work: Callable[[Pilot[None]], Awaitable[T]],
    *,
    size: tuple[int, int] = (130, 40),
    keys: Sequence[str] = (),
) -> T:
    """Run the app, press the keys, and return what the work returns."""

    async def run() -> T:
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            await press(pilot, *keys)
            return await work(pilot)

    return asyncio.run(run())


def seen(app: Top, *keys: str, size: tuple[int, int] = (130, 40)) -> str:
    """Return what is on the screen after some keys."""

    async def look(_pilot: Pilot[None]) -> str:
        return screen(app)

    return drive(app, look, size=size, keys=keys)


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one after another, each once the one before has done all that it does."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def settled(pilot: Pilot[None]) -> None:
    """Wait until no host's answer is outstanding and all that came is drawn."""
    app = pilot.app
    assert isinstance(app, Top)
    await pilot.pause()
    await until(pilot, app.model.asked.idle, "hosts have answered")
    app.peep()
    await pilot.pause()


async def until(pilot: Pilot[None], true: Callable[[], bool], what: str) -> None:
    """Wait until something is so; fail after a bound."""
    deadline = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < deadline, f"not within {WITHIN_S:.0f} s: {what}"
        await pilot.pause(0.01)


def screen(app: Top) -> str:
    """Return the characters of the screen, line by line."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip) for strip in strips]
    assert len(lines) == height
    assert width > 0
    return "\n".join(line.rstrip() for line in lines)
