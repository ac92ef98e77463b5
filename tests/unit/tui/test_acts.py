"""Acts from the dashboard: impossible without the flag, never without their plan and a yes, told as they go."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.text import Text
from textual.pilot import Pilot

from specctl.errors import RolledBackError
from specctl.tui.app import READ_ONLY, Top
from specctl.tui.dialogs import ErrandView, Menu, WishForm
from specctl.tui.wishes import Deed, Errand, Phase, Talk, Wish
from tests.examples import examples
from tests.unit.tui.driving import dashboard, drive, press, screen, seen, until

pytestmark = pytest.mark.slow

ALGOS = ("none", "dflash", "ddtree")


@dataclass(slots=True)
class Recorder:
    """A performer that notes what was planned, what was said yes to, and what was done; `go`: lets a running act end."""

    planned: list[Wish] = field(default_factory=list)
    agreed: list[Wish] = field(default_factory=list)
    done: list[Wish] = field(default_factory=list)
    undone: list[Wish] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)
    error: RolledBackError | None = None

    def algos(self, host: str, server: str) -> Sequence[str]:
        return ALGOS

    def perform(self, wish: Wish, talk: Talk) -> str:
        self.planned.append(wish)
        talk.undo_by(lambda: self.undone.append(wish))
        if not talk.confirm([Text(f"plan of {wish}")]):
            return "nothing was changed"
        self.agreed.append(wish)
        talk.step(wish.host, "drain", "2 running → 0")
        self.go.wait(20.0)
        if self.error is not None:
            raise self.error
        talk.final(wish.host, "deployed", "release 7")
        self.done.append(wish)
        return "done as wished"


async def phase(app: Top, pilot: Pilot[None], wanted: Phase) -> None:
    """Wait until the errand is so far, and let the screen show it."""

    def there() -> bool:
        return app.errand is not None and app.errand.phase is wanted

    await until(pilot, there, f"the errand is {wanted.value}")
    app.peep()
    await pilot.pause()


async def planned(pilot: Pilot[None], errand: Errand) -> None:
    """Wait until the plan of an errand is there."""
    await until(pilot, lambda: errand.phase is not Phase.PLANNING, "it is planned")


KEYS = (
    "a",
    "y",
    "n",
    "x",
    "enter",
    "escape",
    "down",
    "up",
    "tab",
    "q",
    "l",
    "e",
    "b",
    "s",
    "t",
    "p",
    "r",
    "1",
    "slash",
)
HASTE = settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))


@HASTE
@given(keys=st.lists(st.sampled_from(KEYS), min_size=5, max_size=20))
def test_without_the_flag_no_keys_act(keys: list[str]) -> None:
    """No sequence of keys begins an act, or opens a dialog of one, in a dashboard that was started read-only."""
    app = dashboard()

    async def mash(pilot: Pilot[None]) -> bool:
        for key in keys:
            if not app.is_running:
                break
            await pilot.press(key)
            assert not isinstance(app.screen, (Menu, WishForm, ErrandView))
        return app.errand is None

    assert drive(app, mash, size=(100, 30)) is True


@HASTE
@given(keys=st.lists(st.sampled_from(KEYS), min_size=8, max_size=24), begin=st.booleans())
def test_no_keys_act_without_a_yes_to_the_plan(keys: list[str], begin: bool) -> None:
    """An act runs only after y was pressed while its own plan was on the screen, whatever else was pressed before."""
    recorder = Recorder()
    recorder.go.set()
    app = dashboard(performer=recorder)
    said_yes: list[Wish] = []

    async def mash(pilot: Pilot[None]) -> None:
        for key in (*(("a", "enter", "enter") if begin else ()), *keys):
            if not app.is_running:
                break
            errand = app.errand
            if errand is not None:
                await planned(pilot, errand)
                app.peep()
                await pilot.pause()
            view = app.screen
            if key == "y" and isinstance(view, ErrandView) and f"plan of {view.errand.wish}" in screen(app):
                said_yes.append(view.errand.wish)
            await pilot.press(key)
        if app.errand is not None:
            app.errand.answer(yes=False)
            assert app.errand.join(10.0)

    drive(app, mash, size=(100, 30))
    assert all(any(wish is yes for yes in said_yes) for wish in recorder.agreed)
    assert recorder.done == recorder.agreed


def test_read_only_says_how_to_act() -> None:
    """Without the flag the key says what to start with."""
    assert READ_ONLY in seen(dashboard(), "a")


def test_a_switch_is_planned_confirmed_and_told() -> None:
    """From the key to the end: deed, algo, plan, yes, progress in the dialog and in the foot of other views, how it ended."""
    recorder = Recorder()
    app = dashboard(performer=recorder)
    told = {}

    async def act(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "a", "enter", "down", "enter")
        await phase(app, pilot, Phase.ASKING)
        told["plan"] = screen(app)
        assert recorder.agreed == []
        await press(pilot, "y")
        await phase(app, pilot, Phase.RUNNING)
        told["running"] = screen(app)
        await press(pilot, "escape")
        app.tick()
        await pilot.pause()
        told["beside"] = screen(app)
        recorder.go.set()
        await phase(app, pilot, Phase.DONE)
        app.tick()
        await pilot.pause()
        told["over"] = screen(app)
        await press(pilot, "a")
        told["end"] = screen(app)
        await press(pilot, "enter")
        assert app.screen is app.fleet

    drive(app, act)
    assert recorder.done == [Wish(deed=Deed.SWITCH, host="ct200", server="k26", algo="dflash")]
    assert "plan of switch k26 on ct200 to dflash" in told["plan"]
    assert "2 running → 0" in told["running"]
    assert "switch k26 on ct200 to dflash: drain 2 running" in told["beside"].splitlines()[-1]
    assert "dflash: done (a shows it)" in told["over"].splitlines()[-1]
    assert "done as wished" in told["end"]


def test_an_error_comes_with_its_hint() -> None:
    """An act that fails says why, and what to do."""
    recorder = Recorder(
        error=RolledBackError("rolled back to release 6", hint="specctl logs --host ct200", host="ct200")
    )
    recorder.go.set()
    app = dashboard(performer=recorder, open_at="ct200")

    async def act(pilot: Pilot[None]) -> str:
        await press(pilot, "a", "up", "enter")
        await phase(app, pilot, Phase.ASKING)
        await press(pilot, "y")
        await phase(app, pilot, Phase.FAILED)
        return screen(app)

    shown = drive(app, act)
    assert ("ct200: rolled back to release 6" in shown, "specctl logs --host ct200" in shown) == (True, True)
    assert recorder.planned == [Wish(deed=Deed.ROLLBACK, host="ct200", server="k26")]


def test_a_pin_needs_all_its_fields() -> None:
    """A pin asks for mode, time and reason, and takes none of them empty."""
    recorder = Recorder()
    app = dashboard(performer=recorder, open_at="ct200")

    async def act(pilot: Pilot[None]) -> str:
        await press(pilot, "a", "down", "enter", "enter")
        empty = screen(app)
        await press(pilot, *"dflash", "enter", *"6h", "enter", *"demo", "enter")
        await phase(app, pilot, Phase.ASKING)
        await press(pilot, "escape")
        await phase(app, pilot, Phase.DECLINED)
        return empty

    assert "is needed" in drive(app, act)
    assert recorder.planned == [
        Wish(deed=Deed.PIN, host="ct200", server="k26", mode="dflash", duration="6h", reason="demo")
    ]
    assert recorder.agreed == []


def test_x_takes_a_running_act_back() -> None:
    """While an act runs x brings the interruption to it; before that there is nothing to interrupt."""
    recorder = Recorder()
    app = dashboard(performer=recorder, open_at="ct200")

    async def act(pilot: Pilot[None]) -> int:
        await press(pilot, "a", "up", "enter")
        await phase(app, pilot, Phase.ASKING)
        await press(pilot, "x")
        before = len(recorder.undone)
        await press(pilot, "y")
        await phase(app, pilot, Phase.RUNNING)
        await press(pilot, "x")
        recorder.go.set()
        await phase(app, pilot, Phase.DONE)
        return before

    assert (drive(app, act), len(recorder.undone)) == (0, 1)


def test_q_asks_twice_while_an_act_runs() -> None:
    """The first q says what leaving would mean, the second leaves."""
    recorder = Recorder()
    app = dashboard(performer=recorder, open_at="ct200")

    async def act(pilot: Pilot[None]) -> tuple[bool, bool]:
        await press(pilot, "a", "up", "enter")
        await phase(app, pilot, Phase.ASKING)
        await press(pilot, "y")
        await phase(app, pilot, Phase.RUNNING)
        await press(pilot, "escape", "q")
        warned = app.is_running and "an act runs" in screen(app)
        await pilot.press("q")
        await pilot.pause()
        recorder.go.set()
        return warned, app.is_running

    assert drive(app, act) == (True, False)
