"""`specctl top` on the command line: what it refuses before any host is reached, a picture without a terminal, how it leaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from specctl.cli import main as command_line
from specctl.errors import SpecctlError

pytestmark = pytest.mark.slow

INVENTORY = """
models:
  m: {path: /models/m}
servers:
  s: {engine: lab, target: m, port: 31999, algo: none, python: /usr/bin/python3}
hosts:
  here: {connect: {via: local}, service_manager: supervisor, state_dir: STATE, servers: [s]}
  away: {connect: {address: 127.0.0.1, port: 1, user: nobody}, servers: [s]}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Return an inventory of this machine, on which nothing is deployed, and of a host that does not answer."""
    file = tmp_path / "inventory.yaml"
    file.write_text(INVENTORY.replace("STATE", str(tmp_path / "state")))
    return file


def run(*words: str) -> Result:
    """Run the command in this process."""
    command_line.mount()
    return CliRunner().invoke(command_line.app, ["top", *words], standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "top draws on a terminal, and this is none"),
        (("--theme", "pink"), "there is no theme pink"),
        (("--screenshot", "top.png"), "a screenshot is an SVG"),
        (("--screenshot", "/nowhere/at/all/top.svg"), "there is no folder"),
        (("--screenshot", "top.svg", "--size", "10x10"), "is no size"),
        (("--screenshot", "top.svg", "--size", "wide"), "is no size"),
        (("--screenshot", "top.svg", "--view", "nobody"), "--view nobody is not among the selected servers"),
        (("--screenshot", "top.svg", "--host", "her"), "did you mean here"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], said: str, inventory: Path) -> None:
    """Bad input ends with one error and exit code 2, before any host is reached and with no file written."""
    result = run("-i", str(inventory), *words)
    error = result.exception
    assert isinstance(error, SpecctlError)
    assert (error.exit_code, said in str(error), bool(error.hint)) == (2, True, True)
    assert list(inventory.parent.glob("*.svg")) == []


@pytest.mark.slow
def test_a_picture_of_what_is_there_and_what_is_not(inventory: Path, tmp_path: Path) -> None:
    """One frame without a terminal: a host on which nothing is deployed, and one that cannot be reached, each with its state."""
    file = tmp_path / "top.svg"
    done = subprocess.run(
        [sys.executable, "-m", "specctl", "top", "-i", str(inventory), "--screenshot", str(file), "--size", "120x20"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60.0,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path), "SPECCTL_SSH_CONFIG": os.devnull},
    )
    assert (done.returncode, done.stderr) == (0, "")
    drawn = " ".join(re.sub(r"<[^>]+>", " ", file.read_text()).replace("&#160;", " ").split())
    assert [word in drawn for word in ("here", "not deployed", "away", "unreachable", "hosts 1/2 up")] == [True] * 5


def test_the_dashboard_is_not_imported_by_other_commands() -> None:
    """Textual, which takes half a second to import, is imported by no other command."""
    code = (
        "import sys; sys.argv = ['specctl', '--help']\n"
        "try:\n import specctl.cli.main as m; m.main()\n"
        "except SystemExit: pass\n"
        "print('textual' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


LEAVING = """
import threading
from specctl.cli.top import _left
from specctl.tui.app import Top
from specctl.tui.wishes import Deed, Errand, Phase, Wish
from tests.unit.tui.world import FakeFeed

class Stuck:
    def algos(self, host, server): return ()
    def perform(self, wish, talk):
        if talk.confirm([]):
            going.set()
            threading.Event().wait()
        return "nothing was changed"

going = threading.Event()
app = Top(FakeFeed())
app.errand = Errand(Wish(deed=Deed.ROLLBACK, host="ct200", server="k26"), Stuck())
app.errand.start()
while app.errand.phase is not Phase.ASKING:
    going.wait(0.01)
if ANSWER:
    app.errand.answer(yes=True)
    going.wait()
raise SystemExit(_left(app))
"""


@pytest.mark.parametrize(("answer", "code", "said"), [(True, 130, "the host's guard takes it back"), (False, 0, "")])
def test_leaving_waits_for_no_act(answer: bool, code: int, said: str) -> None:
    """Who leaves while an act runs is told who takes it back, and waits no longer; an unanswered plan is a no."""
    done = subprocess.run(
        [sys.executable, "-c", f"ANSWER = {answer}\n{LEAVING}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60.0,
        cwd=Path(__file__).parents[3],
    )
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False)
