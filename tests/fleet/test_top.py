"""`specctl top` in a real terminal (tmux) before real hosts, one with an agent: live figures, filter, detail, log, an act, quit."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.site import KEY, Site
from tests.fleet.waiting import FleetError, until

TMUX = shutil.which("tmux") or ""
WIDTH, HEIGHT = 130, 40
# A machine that runs other tests draws late.
SOON_S = 30.0
GONE_S = 5.0
ACT_S = 120.0

pytestmark = pytest.mark.skipif(not TMUX, reason="tmux is not installed")


@dataclass(slots=True)
class Terminal:
    """One tmux server with one window; what runs in it is told by keys and read off the screen."""

    name: str
    site: Site

    def tmux(self, *arguments: str) -> str:
        """Run a tmux command and return what it prints."""
        command = [TMUX, "-L", self.name, "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10.0).stdout

    def start(self, *command: str) -> None:
        """Run a command on the operator's side, in a window of a fixed size; its exit status stays on the screen."""
        fleet = self.site.fleet
        variables = {**fleet.environment(self.site.environment()), "TERM": "screen-256color"}
        for size in ("COLUMNS", "LINES"):
            variables.pop(size, None)
        # A size in the environment would win over the window's own.
        argv = [
            "env",
            "-u",
            "COLUMNS",
            "-u",
            "LINES",
            *(f"{name}={value}" for name, value in variables.items()),
            *command,
        ]
        line = shlex.join(fleet.enclosure.control_argv(argv, cwd=fleet.home)) + "; echo left with $?; exec sleep 600"
        self.tmux("new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), line)

    def press(self, *keys: str) -> None:
        """Press keys."""
        self.tmux("send-keys", *keys)

    def screen(self) -> str:
        """Return the characters of the screen."""
        return self.tmux("capture-pane", "-p")

    def shows(self, *words: str, within_s: float = SOON_S) -> None:
        """Wait until all of these words are on the screen."""
        try:
            until(lambda: all(word in self.screen() for word in words), within_s=within_s, what=f"it shows {words}")
        except FleetError as error:
            raise FleetError(f"{error}, but\n{self.screen()}") from error

    def close(self) -> None:
        """End the server and all that runs in it."""
        subprocess.run([TMUX, "-L", self.name, "kill-server"], capture_output=True, check=False, timeout=10.0)


@pytest.fixture
def terminal(site: Site) -> Iterator[Terminal]:
    """Give a terminal whose shell is the operator's."""
    made = Terminal(name=f"specctl-top-{uuid.uuid4().hex[:8]}", site=site)
    yield made
    made.close()


def test_the_fleet_on_one_screen(site: Site, terminal: Terminal, wheelhouse: Path) -> None:
    """One sitting before the dashboard: what an operator sees, presses and changes on real hosts."""
    site.describe()
    assert site.run("deploy", "--host", "gpu1", "--algo", "dflash", "--yes").returncode == 0
    installed = site.run("agent", "install", "--host", "gpu1", "--wheelhouse", str(wheelhouse), "--yes")
    assert installed.returncode == 0, installed.stderr
    try:
        terminal.start(str(Path(sys.executable).with_name("specctl")), "top", "--all", "--allow-acts")
        terminal.shows("specctl top", "gpu1", "ready, proven", "not deployed")
        _require_live_figures(site, terminal)

        terminal.press("/", "gpu2", "Enter")
        terminal.shows(f"/gpu2  1 of {len(site.hosts)}, Esc clears")
        assert "gpu1 " not in _table(terminal.screen())
        terminal.press("Escape")
        until(lambda: "gpu1 " in _table(terminal.screen()), within_s=SOON_S, what="the filter is gone")

        terminal.press("g", "Enter")
        terminal.shows("1 now", "requests", "decision", "wanted", "mode observe")
        terminal.press("4")
        terminal.shows("GET /v1/loads")
        assert KEY not in terminal.tmux("capture-pane", "-p", "-S", "-1000")

        terminal.press("a")
        terminal.shows("switch", "rollback")
        terminal.press("j", "j", "j", "Enter")
        terminal.shows("why, for whoever meets it")
        terminal.press("firmware", "Enter")
        terminal.shows("Go ahead?", "let the agent act on nothing")
        terminal.press("y")
        terminal.shows("held (firmware)")
        terminal.press("Enter", "1")
        terminal.shows("held", "firmware")

        terminal.press("a")
        terminal.shows("rollback")
        terminal.press("Enter")
        terminal.shows("what it runs now")
        terminal.press("j", "j", "Enter")
        terminal.shows("algo dflash → ddtree", "Go ahead?")
        terminal.press("y")
        terminal.shows("switch done", "undo: specctl rollback --host gpu1", within_s=ACT_S)
        terminal.press("Enter")
        terminal.shows("deployed   ddtree")

        terminal.press("q")
        until(lambda: "left with 0" in terminal.screen(), within_s=GONE_S, what="it is gone")
    finally:
        site.run("agent", "remove", "--host", "gpu1", "--purge", "--yes")


def test_a_picture_needs_no_terminal(site: Site, tmp_path: Path) -> None:
    """A screenshot of a host that is there and of one that is not is written without a terminal."""
    site.describe()
    assert site.run("deploy", "--host", "gpu1", "--yes").returncode == 0
    file = tmp_path / "top.svg"
    done = site.run("top", "--all", "--screenshot", str(file), "--size", "100x30", "--view", "gpu1")
    assert (done.returncode, done.stderr) == (0, "")
    drawn = file.read_text()
    assert ("gpu1" in drawn, "wanted" in drawn, "url(http" in drawn) == (True, True, False)
    assert KEY not in drawn


def test_no_terminal_is_refused_with_a_hint(site: Site) -> None:
    """Without a terminal the command says what to use instead, and reaches no host."""
    began_s = time.monotonic()
    done = site.run("top", "--all")
    assert (done.returncode, "specctl status --watch" in done.stderr) == (2, True)
    assert time.monotonic() - began_s < SOON_S


def _table(screen: str) -> str:
    """Return the rows of the table: what stands under its heading, down to the first rule."""
    rows = screen.partition("HOST")[2].splitlines()[1:]
    ended = next((place for place, row in enumerate(rows) if row.lstrip().startswith("─")), len(rows))
    return "\n".join(rows[:ended])


def _require_live_figures(site: Site, terminal: Terminal) -> None:
    """Require that a request that runs is seen as one, and that its tokens are."""
    asked = site.start("ask", "--host", "gpu1", "--tokens", "1500", "def f(x):")
    try:
        until(
            lambda: any(
                row.split()[:1] == ["gpu1"] and " 1 " in row and "—" not in row.partition("proven")[2][:30]
                for row in _table(terminal.screen()).splitlines()
            ),
            within_s=SOON_S,
            what="a running request is shown",
        )
    finally:
        asked.kill()
        asked.communicate()
