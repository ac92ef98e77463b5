"""Draw the pictures of docs/top.md, of the made-up fleet: python -m tests.unit.tui.pictures (from the root of the checkout)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from textual.pilot import Pilot

from specctl.tui.app import Top
from specctl.tui.wishes import Performer
from tests.unit.tui.driving import dashboard, drive, press, settled, until
from tests.unit.tui.planner import Planner

FOLDER = Path(__file__).parents[3] / "docs" / "images"


def picture(
    keys: tuple[str, ...] = (), *, size: tuple[int, int], open_at: str | None = None, performer: Performer | None = None
) -> str:
    """Return what the dashboard shows after some keys, as SVG."""
    app = dashboard(open_at=open_at, performer=performer)

    async def draw(pilot: Pilot[None]) -> str:
        await press(pilot, *keys)
        if performer is not None:
            await planned(app, pilot)
        return app.export_screenshot(simplify=True)

    return drive(app, draw, size=size)


async def planned(app: Top, pilot: Pilot[None]) -> None:
    """Wait until the plan of an act is on the screen."""
    await until(pilot, lambda: app.errand is not None and bool(app.errand.plan), "it is planned")
    await settled(pilot)


def pictures() -> dict[str, str]:
    """Return every picture by the name of its file."""
    return {
        "top.svg": picture(("down", "down"), size=(130, 42)),
        "top-detail.svg": picture(size=(130, 34), open_at="ct202"),
        "top-confirm.svg": picture(
            ("down", "down", "a", "enter", "down", "enter"), size=(110, 28), performer=Planner()
        ),
    }


def main() -> None:
    """Write them."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn)


if __name__ == "__main__":
    main()
