"""A calibration of the lab engine on this machine by the real command line: measured, read by all who read one, and put back."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from specctl.control import calibration, mode
from specctl.control.replay import service
from tests.labserver import wait_until
from tests.unit.cli.test_local_deploy import ALLOW_FAULTS, HOST, Json, Place, starter

__all__ = ["starter"]
pytestmark = pytest.mark.slow  # real servers, real seconds

LIMIT_S = 45.0
WORDS = ("calibrate", *HOST, "-c", "1..4", "--tokens", "32", "--mode", "none", "--mode", "dflash", "--yes")
CHAIN = mode.mode("dflash", {"block_size": 8})


@contextlib.contextmanager
def serving(
    folder: Path, starter: Mapping[str, object], options: Mapping[str, object] | None = None
) -> Iterator[Place]:
    """Keep a place with a chain in service; `options` are laid over the engine's, faults among them."""
    made = Place(folder)
    made.write(starter)
    made.describe(options, ALLOW_FAULTS)
    try:
        assert made.run("deploy", *HOST, "--algo", "dflash", "--yes").returncode == 0
        yield made
    finally:
        made.end_daemons()


@pytest.fixture
def place(tmp_path: Path, starter: Mapping[str, object]) -> Iterator[Place]:
    """Give a place with a chain in service."""
    with serving(tmp_path, starter) as made:
        yield made


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory, starter: Mapping[str, object]) -> Iterator[Place]:
    """Give one such place to all tests that do nothing to it."""
    with serving(tmp_path_factory.mktemp("untouched"), starter) as made:
        yield made


def serves(place: Place) -> tuple[object, object, object]:
    """Return what the server runs, and who holds it."""
    row = place.row()
    (lock,) = cast(Sequence[Json], place.read("lock", "status", *HOST)["locks"])
    return row["algo"], row["knobs"], lock["lease"]


def test_a_calibration_is_measured_written_and_put_back(place: Place) -> None:
    """Within its time, by telling the engine; the file is read by the agent's model and by simulate; the chain runs again."""
    planned = json.loads(place.run(*WORDS, "--for", "45s", "--dry-run", "--json").stdout)["plan"]
    assert (planned["way"], planned["was"], planned["modes"]) == ("live", str(CHAIN), ["none", str(CHAIN)])
    assert not (place.folder / "calibration-local-lab.json").exists()
    began_s = time.monotonic()
    done = place.run(*WORDS, "--for", "45s", "--plot", "c.svg", "--json")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began_s < LIMIT_S + 30.0
    told = json.loads(done.stdout)["calibration"]
    content = json.loads((place.folder / "calibration-local-lab.json").read_text())
    assert told["file"] == content
    read = calibration.parse(content)
    assert set(read.table.modes) == {mode.mode("none"), CHAIN}
    assert read.table.tokens_s(CHAIN, 2.0) is not None
    assert read.table.tokens_s(CHAIN, 5.0) is None
    assert (read.holds_for.target, read.holds_for.draft, read.holds_for.profile) == ("lab-target", "lab-draft", "lab")
    assert read.holds_for.context_tokens is not None
    assert service.parse(content).max_running == read.max_running
    lengths = content["accept_lengths"]
    assert all(1.0 < length <= 8.0 for length in lengths[str(CHAIN)].values())
    assert "none" not in lengths
    assert {each["concurrency"] for each in told["segments"]} <= {1, 2, 3, 4}
    assert "<svg" in (place.folder / "c.svg").read_text()
    assert serves(place) == ("dflash", {"block_size": 8}, None)
    _require_that_it_is_told_again(place, content)


def _require_that_it_is_told_again(place: Place, content: object) -> None:
    """Require that one that has used its time is told and written again, also where the first place could not be written."""
    again = place.run("calibrate", "--resume", "last", "--output", "again.json")
    assert (again.returncode, "has used its time" in again.stderr) == (0, True), again.stderr
    assert json.loads((place.folder / "again.json").read_text()) == content
    full = place.run("calibrate", "--resume", "last", "--output", "x" * 250)
    assert (full.returncode, "cannot be written" in full.stderr, "--output FILE.json" in full.stderr) == (2, True, True)
    assert "AT ONCE" in full.stdout


def test_one_that_is_interrupted_goes_on(place: Place) -> None:
    """Ctrl-C puts the chain back, keeps what was measured, and gives up no file of before for it; --resume measures on."""
    file = place.folder / "calibration-local-lab.json"
    file.write_text("whole")
    process = subprocess.Popen(
        [sys.executable, "-m", "specctl", *WORDS, "--for", "5m"],
        cwd=place.folder,
        env=place.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    kept = place.folder / "state" / "specctl" / "runs"
    wait_until(lambda: _segments(kept) >= 2, limit_s=90.0, what="two segments")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "goes on" in output
    assert serves(place) == ("dflash", {"block_size": 8}, None)
    assert (file.read_text(), "stays as it was" in output) == ("whole", True)
    before = _segments(kept)
    done = place.run("calibrate", "--resume", "last", "--for", "30s", "--yes")
    assert done.returncode == 0, done.stderr
    assert _segments(kept) > before
    assert file.read_text() != "whole"


def test_restarts_bring_back_the_release(place: Place) -> None:
    """By restarts the server ends on the release and algo that it began with, whatever the modes were."""
    done = place.run(
        "calibrate", *HOST, "--restart", "-c", "1..2", "--tokens", "32", "--mode", "dflash", "--mode", "ddtree:tree_budget=4",
        "--for", "55s", "--yes",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert serves(place) == ("dflash", {"block_size": 8}, None)
    assert place.row()["release"] == "1"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--for", "5s"), 2, "min at least"),
        (("--for", "soon"), 2, "must be a duration"),
        (("-c", "4..1"), 2, "rising"),
        (("-c", "64..99"), 2, "at most 8 requests"),
        (("--live", "--restart"), 2, "exclude each other"),
        (("--mode", "warp"), 2, "no algo 'warp'"),
        (("--prompts", "poems"), 2, "there is no prompt set poems"),
        (("--output", "gone/c.json"), 2, "there is no folder gone"),
        (("--plot", "c.pdf"), 2, "ends in .png or .svg"),
    ],
)
def test_what_cannot_be_measured_is_refused(untouched: Place, words: tuple[str, ...], code: int, said: str) -> None:
    """With one error and a hint, and the server is as it was."""
    done = untouched.run("calibrate", *HOST, *words, "--yes")
    assert (done.returncode, said in done.stderr, "try:" in done.stderr) == (code, True, True), done.stderr


def _segments(folder: Path) -> int:
    """Return how many segments are kept."""
    found = [json.loads(path.read_text()) for path in folder.glob("calibrate-*.json")] if folder.is_dir() else []
    return sum(len(each["study"]["segments"]) for each in found)
