"""What the dashboard looks like, as pictures that a person has seen and found good (`--snapshot-update` takes new ones)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from textual.pilot import Pilot

from specctl.control.sight import Sight
from specctl.tui.palette import DARK, LIGHT, PLAIN, Palette
from tests.unit.tui import world
from tests.unit.tui.driving import dashboard, press, settled
from tests.unit.tui.pictures import FOLDER, pictures, planned
from tests.unit.tui.planner import Planner

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One picture: of which fleet, how large, in which colours, after which keys."""

    size: tuple[int, int]
    sights: tuple[Sight, ...] = world.FLEET
    palette: Palette = DARK
    keys: tuple[str, ...] = ()
    open_at: str | None = None
    acts: bool = False
    ascii_only: bool = False
    events: bool = field(default=True)


NEW = tuple(
    Sight(host=sight.host, server=sight.server, state="unknown", groups=sight.groups, reason="not looked at yet")
    for sight in world.FLEET
)
SHOTS = {
    "narrow": Shot(size=(80, 24)),
    "usual": Shot(size=(130, 40), keys=("down", "down")),
    "wide": Shot(size=(250, 60), sights=tuple(world.many(24)), keys=("down",)),
    "light": Shot(size=(100, 30), palette=LIGHT, keys=("down", "down")),
    "no-colour": Shot(size=(100, 30), palette=PLAIN, keys=("down", "down")),
    "ascii": Shot(size=(80, 24), palette=PLAIN, ascii_only=True, keys=("v",)),
    "two-hundred": Shot(size=(100, 24), sights=tuple(world.many(200)), keys=("pagedown", "b")),
    "detail": Shot(size=(130, 40), open_at="ct200"),
    "detail-narrow": Shot(size=(80, 24), open_at="ct200"),
    "loading": Shot(size=(100, 30), open_at="ct201"),
    "unreachable": Shot(size=(100, 24), open_at="b300-2"),
    "slowed": Shot(size=(130, 36), open_at="ct202"),
    "decisions": Shot(size=(100, 24), open_at="ct200", keys=("2",)),
    "events": Shot(size=(100, 24), keys=("e",)),
    "log": Shot(size=(80, 16), open_at="ct200", keys=("4",)),
    "help": Shot(size=(90, 36), keys=("question_mark",)),
    "confirm": Shot(size=(110, 30), acts=True, keys=("down", "down", "a", "enter", "down", "enter")),
    "no-answer-yet": Shot(size=(100, 20), sights=NEW, events=False),
    "empty": Shot(size=(80, 16), sights=(), events=False),
}


@pytest.mark.parametrize("name", list(SHOTS))
def test_looks_as_before(name: str, snap_compare: Compare) -> None:
    """The screen looks as it did when a person looked at it."""
    shot = SHOTS[name]
    feed = world.FakeFeed(shown=shot.sights, told_events=world.EVENTS if shot.events else ())
    app = dashboard(
        feed,
        palette=shot.palette,
        open_at=shot.open_at,
        ascii_only=shot.ascii_only,
        performer=Planner() if shot.acts else None,
    )

    async def prepare(pilot: Pilot[None]) -> None:
        await settled(pilot)
        await press(pilot, *shot.keys)
        if shot.acts:
            await planned(app, pilot)

    assert snap_compare(app, terminal_size=shot.size, run_before=prepare)


@pytest.mark.slow
def test_the_documentations_pictures_are_of_today() -> None:
    """docs/images show the dashboard as it is (python -m tests.unit.tui.pictures draws them anew)."""
    assert {name: drawn == (FOLDER / name).read_text() for name, drawn in pictures().items()} == {
        "top.svg": True,
        "top-detail.svg": True,
        "top-confirm.svg": True,
    }
