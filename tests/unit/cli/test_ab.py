"""`specctl ab` on this machine, by the real command line: disturbed, hung up on, and given what cannot be meant."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
import yaml
from typer.testing import CliRunner

from specctl.cli import main as command_line
from specctl.ops import ab as trials
from tests.abtrials import trial
from tests.labserver import wait_until
from tests.unit.cli.test_local_deploy import HOST, Json, Place

pytestmark = pytest.mark.slow  # whole lives of real servers

ARMS = ("--a", "dflash", "--b", "ddtree:tree_budget=7,topk_cap=1")
SHORT = (*ARMS, "--live", "--tokens", "32", "--rounds", "2", "--runs", "1", "--cycles", "1", "--yes")
ENDS_S = 60.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Give a place where the lab serves the chain, from `specctl init --lab`; it is ended afterwards."""
    made = Place(tmp_path_factory.mktemp("ab"))
    assert made.run("init", "--lab").returncode == 0
    made.write(cast(Json, yaml.safe_load(made.path.read_text())))
    made.describe()
    try:
        done = made.run("deploy", *HOST, "--algo", "dflash", "--yes")
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        made.end_daemons()


def port(place: Place) -> int:
    """Return the server's port."""
    return int(yaml.safe_load(place.path.read_text())["servers"]["lab"]["port"])


@contextlib.contextmanager
def strangers(place: Place) -> Iterator[None]:
    """Keep asking the server something of one's own while the block lasts."""
    over = threading.Event()
    body = json.dumps({"text": "def", "sampling_params": {"max_new_tokens": 8, "temperature": 0, "ignore_eos": True}})
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {place.env['LAB_API_KEY']}"}

    def ask() -> None:
        while not over.is_set():
            request = urllib.request.Request(f"http://127.0.0.1:{port(place)}/generate", body.encode(), headers)
            with (
                contextlib.suppress(urllib.error.URLError, OSError),
                urllib.request.urlopen(request, timeout=30) as answer,
            ):
                answer.read()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_other_requests_are_named(place: Place) -> None:
    """Where somebody else asks the server in the middle of it, the experiment says so; its answers are equal all the same."""
    with strangers(place):
        done = place.run("ab", *HOST, *SHORT, "--json", "--report", "busy.md")
    assert done.returncode == 0, done.stderr
    told = cast(Mapping[str, object], json.loads(done.stdout)["ab"])
    standing = {each["name"]: each["standing"] for each in cast(Sequence[Mapping[str, str]], told["confounders"])}
    assert standing["other requests"] == "found"
    assert standing["lengths"] == "ruled out"
    assert told["lossless"] is True
    assert "| other requests | **found** |" in (place.folder / "busy.md").read_text()
    assert place.row()["algo"] == "dflash"


def test_the_end_of_a_terminal_is_heard(place: Place) -> None:
    """A hang-up ends it as Ctrl-C does: what ran before runs again, exit 130, and it can go on."""
    long = [word if word != "2" else "200" for word in SHORT]
    process = subprocess.Popen(
        [sys.executable, "-m", "specctl", "ab", *HOST, *long],
        cwd=place.folder,
        env=place.env,
        stdout=subprocess.PIPE,
        stderr=(place.folder / "said.txt").open("w"),
        text=True,
    )
    said = place.folder / "said.txt"
    wait_until(lambda: "A 1/4" in said.read_text(), limit_s=ENDS_S, what="the first segment")
    process.send_signal(signal.SIGHUP)
    printed, _ = process.communicate(timeout=ENDS_S)
    assert process.returncode == 130, said.read_text()
    assert "0 of 4 segments are kept; release 1, dflash, runs again" in said.read_text()
    assert "none: no segment was measured" in printed
    assert "0 of 4 segments" in place.run("ab", "--list").stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*ARMS, "--concurrency", "1,x"), "--concurrency 1,x"),
        ((*ARMS, "--concurrency", "1,1"), "each once"),
        ((*ARMS, "--report", "report.txt"), "ends in .md"),
        ((*ARMS, "--report", "nowhere/report.md"), "mkdir -p nowhere"),
        ((*ARMS, "--prompts", "missing.jsonl"), "missing.jsonl"),
        (("--a", "dflash"), "two arms"),
        (("--a", "dflash:block_size=16", "--b", "ddtree:block_size=8"), "block_size: 16 → 8"),
        ((*ARMS, "--third-arm"), "implies nothing"),
        ((*ARMS, "--live", "--b-env", "X=1", "--confounded"), "neither options nor variables"),
        (ARMS, "nobody can be asked"),
        (("--resume", "ab-nothing"), "no experiment"),
    ],
)
def test_what_cannot_be_meant_is_refused(place: Place, words: tuple[str, ...], said: str) -> None:
    """Bad input ends with exit 2 and one clear error, never a traceback, before anything is touched."""
    current = place.folder / "state" / "specctl" / "local" / "lab" / "current"
    before = current.readlink()
    done = place.run("ab", *HOST, *words)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert said in done.stderr
    assert current.readlink() == before


def test_a_damaged_experiment_is_named(place: Place) -> None:
    """A kept file that is no experiment is a warning of the list and an error of what needs it; the others are shown."""
    folder = Path(place.env["XDG_STATE_HOME"]) / "specctl" / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    bad = folder / "ab-20200101-000000-dead.json"
    bad.write_text(json.dumps({"version": 1, "id": bad.stem, "trial": {"id": "x"}}))
    listed = place.run("ab", "--list")
    assert listed.returncode == 0
    assert "warning: ab-20200101-000000-dead cannot be read" in listed.stderr
    refused = place.run("ab", "--resume", bad.stem)
    assert (refused.returncode, "cannot be read" in refused.stderr) == (2, True)


def test_where_nothing_is_kept_the_list_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty list names the command that begins an experiment, beside the output; for programs it is an empty list."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    command_line.mount()
    shown = CliRunner().invoke(command_line.app, ["ab", "--list"])
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert shown.stderr == "no experiment is kept here: specctl ab --host H --a MODE --b MODE\n"
    told = CliRunner().invoke(command_line.app, ["ab", "--list", "--json"])
    assert json.loads(told.stdout) == {"experiments": [], "faults": []}


def test_a_report_that_cannot_be_written_hides_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is printed all the same, and the error names what writes the report again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    whole = trial((100.0, 101.0), (100.3, 100.9))
    trials.keep(whole)
    command_line.mount()
    words = ["ab", "--resume", "last", "--report", str(tmp_path / f"{'x' * 300}.md")]
    shown = CliRunner().invoke(command_line.app, words, standalone_mode=False)
    assert (shown.return_value, "verdict" in shown.stdout) == (2, True), shown.output
    assert f"try: specctl ab --resume {whole.id} --report FILE.md" in shown.stderr
    told = CliRunner().invoke(command_line.app, [*words, "--json"], standalone_mode=False)
    assert (told.return_value, json.loads(told.stdout)["report"]) == (2, [])
