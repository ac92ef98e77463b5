"""The command line as a process: what cannot be read, and a no, end with a documented code and never with a traceback."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from specctl.cli import main as command_line

SPECCTL = (sys.executable, "-m", "specctl")
FOLDER = Path(__file__).parents[3]


def run(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run specctl in a folder of its own, without an inventory of the caller's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SPECCTL_")}
    env["PYTHONPATH"] = str(FOLDER)
    return subprocess.run([*SPECCTL, *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "said", "look"),
    [
        (("deploy", "--bogus"), "no such option: --bogus", "specctl deploy --help"),
        (("nope",), "no such command 'nope'", "specctl --help"),
        (("switch", "--host", "gpu1"), "missing option '--algo'", "specctl switch --help"),
        (("logs", "-n", "many"), "invalid value for '--lines' / '-n'", "specctl logs --help"),
        (("ask",), "missing argument 'prompt'", "specctl ask --help"),
    ],
)
def test_what_cannot_be_read_is_a_usage_error(words: Sequence[str], said: str, look: str, tmp_path: Path) -> None:
    """A command line that Typer refuses ends with exit code 2, the error in our form, and where to look."""
    done = run(words, tmp_path)
    error, hint = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert error.startswith(f"error: {said}")
    assert hint == f"  try: {look}"


def test_what_cannot_be_read_is_an_object_with_json(tmp_path: Path) -> None:
    """With --json the same is one JSON object on stderr."""
    done = run(("deploy", "--bogus", "--json"), tmp_path)
    error = json.loads(done.stderr)["error"]
    assert done.returncode == 2
    assert (error["kind"], error["exit_code"], error["hint"]) == ("usage", 2, "specctl deploy --help")


def test_a_full_disk_is_no_bug(tmp_path: Path) -> None:
    """Output that goes to a disk without room ends with one clear error, and asks nobody to report anything."""
    with Path("/dev/full").open("w") as full:
        words = [*SPECCTL, "doctor", "--checks", "--json"]
        done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    error = json.loads(done.stderr)["error"]
    assert (done.returncode, error["kind"], error["hint"]) == (2, "usage", "make room: df -h")
    assert error["message"] == "the output cannot be written: No space left on device"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_bug(closed: str, tmp_path: Path) -> None:
    """A command that was given no standard input, output or error works, and nothing else gets what it says."""
    (tmp_path / "inventory.yaml").write_text("hosts: {gpu1: {}}")
    line = f'"$0" -m specctl inventory list {closed}; echo $? > code'
    env = {**os.environ, "PYTHONPATH": str(FOLDER), "SPECCTL_INVENTORY": "inventory.yaml"}
    argv = ["sh", "-c", line, sys.executable]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (tmp_path / "code").read_text() == "0\n", done.stderr
    assert done.stderr == ""
    assert ("gpu1" in done.stdout) == (closed in ("<&-", "2>&-"))


@pytest.mark.parametrize("words", [("doctor", "--checks"), ("inventory", "list", "-i", "inventory/example.yaml")])
def test_a_reader_that_leaves_is_no_bug(words: Sequence[str]) -> None:
    """Whoever pipes a listing into head sees no error, and the exit code is that of a reader that left."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*SPECCTL, *words], cwd=FOLDER, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(("encoding", "dot"), [("ascii", "?"), ("utf-8", "·")])
def test_what_an_encoding_lacks_is_no_bug(encoding: str, dot: str, tmp_path: Path) -> None:
    """Where the output takes no UTF-8, a question mark stands for what it cannot show."""
    (tmp_path / "engine.log").write_text("a line\nanother\n")
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    words = [*SPECCTL, "doctor", "--log", "engine.log"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, check=False)
    head = done.stdout.decode().splitlines()[0]
    assert (done.returncode, head) == (0, f"engine.log {dot} 2 log lines, 0 of decoding")


def test_commands_are_mounted_once() -> None:
    """Mounting again adds nothing: a program that runs many commands does not grow with each of them."""
    command_line.mount()
    before = (len(command_line.app.registered_groups), len(command_line.app.registered_commands))
    command_line.mount()
    assert (len(command_line.app.registered_groups), len(command_line.app.registered_commands)) == before


@pytest.mark.parametrize("words", [(), ("lock",), ("inventory",)])
def test_a_bare_group_shows_its_help(words: Sequence[str], tmp_path: Path) -> None:
    """A group without a command shows what it has, on stderr, with exit code 2."""
    done = run(words, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ")
    assert "Commands:" in done.stderr


def test_a_no_ends_the_command_as_interrupted(tmp_path: Path) -> None:
    """Answering no at a terminal does nothing, says so and ends with exit code 130."""
    assert run(("init", "--lab"), tmp_path).returncode == 0
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*SPECCTL, "stop", "--host", "local"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    os.write(ours, b"n\n")
    output, errors = process.communicate(timeout=30)
    os.close(ours)
    assert process.returncode == 130
    assert "Go ahead?" in output + errors
    assert errors.splitlines()[-1].endswith("interrupted")


def test_a_dry_run_with_json_prints_json(tmp_path: Path) -> None:
    """`--dry-run --json` of an act without a plan names the servers that it would touch."""
    assert run(("init", "--lab"), tmp_path).returncode == 0
    done = run(("stop", "--host", "local", "--dry-run", "--json"), tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (
        0,
        {"act": "stop", "servers": [{"host": "local", "server": "lab"}]},
    )


@pytest.mark.slow
def test_help_names_what_an_option_takes() -> None:
    """Every option's value has a word for people (N, TEXT, MODE), none a type of the language it is written in."""
    command_line.mount()
    found = []
    for words in _commands(typer.main.get_command(command_line.app)):
        shown = CliRunner().invoke(command_line.app, [*words, "--help"], env={"COLUMNS": "200"}).stdout
        found += [(words, line) for line in shown.splitlines() if re.match(r"\s+-.*<(int|float|str|path)\b", line)]
    assert found == []


def _commands(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*words, name))
