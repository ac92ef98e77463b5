"""Whatever stands on the command line or names a host: a documented exit code, never a traceback, nothing run or written by it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specctl import errors
from specctl.cli.main import main
from tests.examples import HOSTILE
from tests.unit.hostile.strategies import NASTY

pytestmark = pytest.mark.slow
CODES = {errors.EXIT_OK, errors.EXIT_USAGE, errors.EXIT_CONNECT, errors.EXIT_REMOTE_COMMAND, errors.EXIT_PARTIAL}
# What a program can be given as an argument: no NUL, and bytes that are no UTF-8 as Python hands them on.
VALUES = (st.sampled_from(NASTY) | st.text(max_size=20) | st.just("caf\udce9")).map(
    lambda text: (
        text.replace("\0", "")
        .encode("utf-8", "surrogateescape" if "\udce9" in text else "replace")
        .decode("utf-8", "surrogateescape")
    )
)
COMMANDS = st.sampled_from(
    [
        ("inventory", "list"),
        ("inventory", "check"),
        ("inventory", "show"),
        ("lint",),
        ("render",),
        ("deploy", "--dry-run"),
        ("switch", "--dry-run"),
        ("rollback", "--dry-run"),
        ("status",),
        ("history",),
        ("lock", "status"),
        ("preflight",),
        ("facts",),
    ]
)
OPTIONS = st.sampled_from(
    [
        "--host",
        "--group",
        "--exclude",
        "--server",
        "--algo",
        "--knob",
        "--skip-check",
        "--reason",
        "--release",
        "-i",
        "--templates",
        "-n",
        "",
    ]
)
WORDS = st.lists(st.tuples(OPTIONS, VALUES), max_size=3).map(
    lambda pairs: [word for option, value in pairs for word in (option, value) if word != ""]
)
MODEL = {"path": "/models/big"}


def inventory(host: str = "gpu1", address: str = "127.0.0.1", user: str = "ops", **server: object) -> dict[str, object]:
    """Return an inventory of one host on whose SSH port nobody listens."""
    chat = {
        "engine": "sglang-0.5.23",
        "target": "big",
        "port": 30001,
        "python": "/opt/venv/bin/python",
        "algo": "none",
        **server,
    }
    row = {"servers": ["chat"], "connect": {"address": address, "port": 1, "user": user}}
    return {"models": {"big": MODEL}, "servers": {"chat": chat}, "hosts": {host: row}}


class Shell:
    """The command line in this process, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write(inventory())

    def write(self, content: object) -> None:
        """Write the inventory."""
        (self.folder / "inventory.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")

    def run(self, words: Sequence[str]) -> tuple[int, str]:
        """Run a command and return its exit code and all that it said; its output takes what a terminal of UTF-8 takes."""
        printed, complained = io.BytesIO(), io.BytesIO()
        out = io.TextIOWrapper(printed, encoding="utf-8", errors="strict", write_through=True)
        said = io.TextIOWrapper(complained, encoding="utf-8", errors="backslashreplace", write_through=True)
        before = sys.argv
        sys.argv = ["specctl", *words]
        code: object = None
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
                main()
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.argv = before
        assert isinstance(code, int)
        return code, (printed.getvalue() + complained.getvalue()).decode()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Give a folder with an inventory, a home without SSH settings, and the command line in it."""
    folder = tmp_path_factory.mktemp("hostile")
    changes = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1", "SSH_AUTH_SOCK": ""}
    before, place = dict(os.environ), Path.cwd()
    os.environ.update(changes)
    os.chdir(folder)
    try:
        yield Shell(folder)
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)


def require_sound(shell: Shell, words: Sequence[str]) -> str:
    """Require of a command that it ended as documented and left nothing behind; return what it said."""
    code, said = shell.run(words)
    assert code in CODES, (words, code, said)
    assert "Traceback" not in said
    assert not any(sign in said for sign in ("\x1b", "\x07", "\u202e")), (words, said)
    assert {path.name for path in shell.folder.iterdir()} <= {"inventory.yaml", "state", ".ssh"}
    assert not (shell.folder / "state" / "specctl" / "crashes").exists()
    assert not Path("/tmp/owned").exists()
    return said


@settings(max_examples=HOSTILE, deadline=None)
@given(COMMANDS, WORDS, st.booleans())
@example(("inventory", "list"), ["--host", "\x1b[2J"], False)
@example(("status",), ["--host", "caf\udce9"], False)
@example(("lint",), ["-i", "caf\udce9.yaml"], True)
@example(("inventory", "check"), ["-i", "caf\udce9"], True)
@example(("deploy", "--dry-run"), ["--reason", "caf\udce9"], True)
def test_values(shell: Shell, command: tuple[str, ...], words: list[str], as_json: bool) -> None:
    """Any option values are refused in words or select something; with --json what is printed is JSON."""
    shell.write(inventory())
    asked = [*command, *words, *(["--json"] if as_json else [])]
    require_sound(shell, asked)


@settings(max_examples=HOSTILE, deadline=None)
@given(
    VALUES,
    VALUES,
    st.sampled_from([("inventory", "list"), ("inventory", "check"), ("render", "--all"), ("lint", "--all")]),
)
def test_host_names(shell: Shell, host: str, address: str, command: tuple[str, ...]) -> None:
    """A host of any name and address is refused by the inventory, or is what it says."""
    clean = [text.encode("utf-8", "replace").decode() for text in (host, address)]
    shell.write(inventory(*clean))
    require_sound(shell, command)


@pytest.mark.parametrize(
    "word", ["-oProxyCommand=touch /tmp/owned", "$(touch /tmp/owned)", "`touch /tmp/owned`", "a;touch /tmp/owned"]
)
def test_no_host_is_a_command(shell: Shell, word: str) -> None:
    """A name, an address or a user that would be an option or a command elsewhere is never run."""
    for content in (inventory(word), inventory(address=word), inventory(user=word)):
        shell.write(content)
        require_sound(shell, ("status", "--all"))


@settings(max_examples=HOSTILE, deadline=None)
@given(st.dictionaries(VALUES, VALUES, max_size=2), VALUES, VALUES)
def test_units(shell: Shell, env: dict[str, str], option: str, path: str) -> None:
    """Values of an inventory become words of one unit line each, or are refused: no line of a unit is theirs."""
    clean = {str(key): value.encode("utf-8", "replace").decode() for key, value in env.items()}
    shell.write(
        inventory(env=clean, options={"chat-template": option.encode("utf-8", "replace").decode()}, python=path)
    )
    said = require_sound(shell, ["render", "--all"])
    assert not any(line.startswith("ExecStart=/bin/true") for line in said.splitlines())


def test_json_stays_json(shell: Shell) -> None:
    """Errors about hostile words are one JSON object."""
    for word in NASTY:
        shell.write(inventory())
        code, said = shell.run(
            ["status", "--json", "--host", word.replace("\0", "").encode("utf-8", "replace").decode()]
        )
        assert code in CODES
        json.loads(said)
