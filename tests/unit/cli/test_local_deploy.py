"""The main job on this machine, by the real command line: connection local, supervisor, the lab engine; no root, SSH or systemd."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import yaml

from tests.labserver import free_port, wait_until

pytestmark = pytest.mark.slow  # whole lives of real servers

ALLOW_FAULTS = {"SPECCTL_LAB_ALLOW_FAULTS": "1"}
COMMAND_LIMIT_S = 120.0
HOST = ("--host", "local")
Json = dict[str, object]


@dataclass(slots=True)
class Place:
    """A working folder with an inventory from `specctl init --lab`, a home and a state of its own, and the engine's key, if any."""

    folder: Path
    key: str | None = "sk-local-0123456789"

    @property
    def path(self) -> Path:
        """Return where the inventory lies."""
        return self.folder / "inventory.yaml"

    @property
    def env(self) -> dict[str, str]:
        """Return the operator's environment, free of the tester's own settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECCTL_", "XDG_"))}
        own = {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state"), "NO_COLOR": "1"}
        kept.pop("LAB_API_KEY", None)
        return kept | own | ({} if self.key is None else {"LAB_API_KEY": self.key})

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a specctl command to its end, with nobody at the keyboard."""
        return subprocess.run(
            [sys.executable, "-m", "specctl", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )

    def interrupted(self, *words: str, said: str = "weights", again: str | None = None) -> int:
        """Run a command that goes on, interrupt it once it has said something (and `again`), and return its exit code."""
        argv = [sys.executable, "-m", "specctl", *words]
        with subprocess.Popen(
            argv, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            assert any(said in line for line in process.stdout)
            process.send_signal(signal.SIGINT)
            if again is not None:
                assert any(again in line for line in process.stdout)
                process.send_signal(signal.SIGINT)
            try:
                return process.wait(timeout=COMMAND_LIMIT_S)
            finally:
                process.kill()

    def read(self, *words: str) -> Json:
        """Run a command that must go well with --json, and return what it printed."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return cast(Json, json.loads(done.stdout))

    def row(self) -> Json:
        """Return the server's row of `specctl status`."""
        (row,) = cast(Sequence[Json], self.read("status", *HOST)["servers"])
        return row

    def write(self, starter: Mapping[str, object]) -> None:
        """Write the starter inventory for this folder and a free port."""
        values = copy.deepcopy(dict(starter))
        cast(Json, cast(Json, values["servers"])["lab"])["port"] = free_port()
        cast(Json, cast(Json, values["hosts"])["local"])["state_dir"] = str(self.folder / "state" / "specctl" / "local")
        self.path.write_text(yaml.safe_dump(values, sort_keys=False))

    def releases(self) -> list[Path]:
        """Return the releases that lie on this machine."""
        return list((self.folder / "state" / "specctl" / "local" / "lab").glob("releases/*"))

    def describe(self, options: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None) -> None:
        """Lay options and environment over the host's launch settings in the inventory."""
        values = yaml.safe_load(self.path.read_text())
        launch = values["hosts"]["local"]["launch"]
        launch["options"] = {"load-seconds": 0, **(options or {})}
        launch["env"] = dict(env or {})
        self.path.write_text(yaml.safe_dump(values, sort_keys=False))

    def daemons(self) -> list[int]:
        """Return the pids that supervisords under the folder have written down."""
        texts = [path.read_text() for path in self.folder.rglob("supervisord.pid")]
        return [int(text) for text in texts if text.strip().isdigit()]

    def end_daemons(self) -> None:
        """End what was left running, and wait until it is gone."""
        for pid in self.daemons():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            wait_until(lambda pid=pid: not is_alive(pid), what="the end of supervisord")  # type: ignore[misc]  # bound now


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and waits for its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, object]:
    """Read what `specctl init --lab` writes."""
    made = Place(tmp_path_factory.mktemp("starter"))
    done = made.run("init", "--lab")
    assert done.returncode == 0, done.stderr
    return cast(Json, yaml.safe_load((made.folder / "inventory.yaml").read_text()))


@pytest.fixture
def place(tmp_path: Path, starter: Mapping[str, object]) -> Iterator[Place]:
    """Give a place with the starter inventory, its state there, on a free port; what still runs there afterwards is ended."""
    made = Place(tmp_path)
    made.write(starter)
    made.describe()
    try:
        yield made
    finally:
        made.end_daemons()


def acts(place: Place) -> list[tuple[object, object]]:
    """Return what was done, by the host's records, oldest first."""
    (row,) = cast(Sequence[Json], place.read("history", *HOST)["history"])
    return [(record["act"], record["result"]) for record in cast(Sequence[Json], row["records"])]


def test_a_server_lives_its_life(place: Place) -> None:
    """Deploy, ask, switch, roll back, a failure taken back and undeploy: each ends as it says, and the records tell it all."""
    done = place.run("deploy", *HOST, "--algo", "dflash", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert {event["host"] for event in events} == {"local"}
    assert [event["name"] for event in events if event["event"] == "final"][-2:] == ["proof", "deployed"]
    assert json.loads(done.stdout)["exit_code"] == 0
    row = place.row()
    assert (row["state"], row["algo"], row["release"], row["proven"]) == ("ready", "dflash", "1", True)

    assert place.interrupted("logs", *HOST, "--follow", said="") == 0
    with next(place.folder.rglob("log")).open("ab") as log:
        log.write(b"\x1b[2J cleared \xff\n")
    assert "\\x1b[2J cleared" in place.run("logs", *HOST, "--lines", "20").stdout

    answer = place.read("ask", *HOST, "--tokens", "24", "def main(")
    assert cast(Json, answer["meta_info"])["completion_tokens"] == 24

    assert place.run("switch", *HOST, "--algo", "ddtree", "--yes").returncode == 0
    assert place.row()["algo"] == "ddtree"
    assert place.read("ask", *HOST, "--tokens", "24", "def main(")["text"] == answer["text"]
    assert place.run("rollback", *HOST, "--yes").returncode == 0
    assert place.row()["algo"] == "dflash"

    place.describe({"inject": "crash:weights"}, ALLOW_FAULTS)
    failed = place.run("deploy", *HOST, "--algo", "ddtree", "--yes")
    assert failed.returncode == 6, failed.stderr
    assert "rolled back to release 1, dflash" in failed.stderr
    row = place.row()
    assert (row["state"], row["algo"], row["release"]) == ("ready", "dflash", "1")

    assert place.run("undeploy", *HOST, "--yes").returncode == 0
    assert place.row()["state"] == "not deployed"
    done = place.run("undeploy", *HOST, "--yes")
    assert (done.returncode, "nothing is deployed" in done.stderr) == (0, True), done.stderr
    assert place.releases()
    assert place.run("undeploy", *HOST, "--purge", "--yes").returncode == 0
    assert not place.releases()
    assert acts(place) == [
        ("deploy", "done"),
        ("switch", "done"),
        ("rollback", "done"),
        ("deploy", "rolled back"),
        ("undeploy", "done"),
        ("undeploy", "done"),
    ]
    wait_until(lambda: not any(map(is_alive, place.daemons())), what="the end of an idle supervisord")


def test_a_shell_without_the_key_or_with_another_touches_nothing(place: Place) -> None:
    """What would have to ask a keyed engine is refused before it begins: the server that runs, and its requests, go on."""
    assert place.run("deploy", *HOST, "--yes").returncode == 0
    for key, said in (
        (None, "the secret env:LAB_API_KEY is not set"),
        ("sk-another-0123456789", "refuses our API key"),
    ):
        place.key = key
        for words in (("switch", *HOST, "--algo", "none", "--yes"), ("restart", *HOST, "--yes"), ("health", *HOST)):
            done = place.run(*words)
            assert (done.returncode, said in done.stderr) == (2, True), done.stderr
            assert "LAB_API_KEY" in done.stderr
        assert said in place.run("ask", *HOST, "hello").stderr
    place.key = None
    assert "is not set" in place.run("rollback", *HOST, "--release", "1", "--algo", "none", "--yes").stderr
    assert acts(place) == [("deploy", "done")]
    assert place.run("logs", *HOST, "--lines", "100000").stdout.count("fired up and ready") == 1

    done = place.run("stop", *HOST, "--yes")
    assert done.returncode == 0, done.stderr
    assert "requests that still run are cut off" in done.stderr
    done = place.run("start", *HOST, "--yes")
    assert (done.returncode, "is not set" in done.stderr) == (2, True), done.stderr


def test_a_load_that_is_interrupted_is_not_waited_for(place: Place) -> None:
    """At the first Ctrl-C `health` leaves, and `start` stops what it started, long before the load would have ended."""
    place.describe({"load-seconds": 60})
    assert place.run("deploy", *HOST, "--yes", "--no-gate").returncode == 0
    began_s = time.monotonic()
    assert place.interrupted("health", *HOST) == 130
    assert place.run("stop", *HOST, "--yes").returncode == 0
    assert place.interrupted("start", *HOST, "--yes") == 8
    assert time.monotonic() - began_s < 55
    assert place.row()["state"] == "stopped"
    assert acts(place)[-1] == ("start", "stopped: no healthy release")


def test_a_second_interrupt_leaves_at_once(place: Place) -> None:
    """Who interrupts the way back too gets the terminal back, long before what ran before has loaded."""
    place.describe({"load-seconds": 60})
    assert place.run("deploy", *HOST, "--yes", "--no-gate").returncode == 0
    began_s = time.monotonic()
    assert place.interrupted("switch", *HOST, "--algo", "none", "--yes", again="restore") == 130
    assert time.monotonic() - began_s < 50


def test_a_rollback_past_a_change_of_the_key(place: Place) -> None:
    """A release with the key of then serves again, though nothing can be asked of it: it is said, and not called proven."""
    assert place.run("deploy", *HOST, "--yes").returncode == 0
    place.key = "sk-another-0123456789"
    assert place.run("deploy", *HOST, "--yes").returncode == 0

    done = place.run("rollback", *HOST, "--yes")

    assert done.returncode == 0, done.stderr
    assert "nothing is proven: this release has another API key" in done.stderr
    row = place.row()
    assert (row["release"], row["ready"], row["proven"]) == ("1", True, False)


def test_first_deploy_that_fails_leaves_it_stopped(place: Place) -> None:
    """With nothing to go back to, the server is stopped, the cause is named, and the exit code is 8."""
    place.describe({"inject": "oom:weights"}, ALLOW_FAULTS)

    done = place.run("deploy", *HOST, "--yes", "--json")

    assert done.returncode == 8, done.stderr
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert "memory" in outcome["error"]["message"]
    assert place.row()["state"] == "not deployed"
    assert acts(place) == [("deploy", "stopped: no healthy release")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("deploy", "--host", "loacl", "--yes"), "did you mean local"),
        (("deploy", "--host", "local", "--algo", "eagle", "--yes"), "eagle"),
        (("deploy", "--yes"), "--host"),
        (("deploy", "--host", "local"), "nobody can be asked"),
        (("deploy", "--host", "local", "--json"), "nobody can be asked"),
        (("undeploy", "--host", "local"), "nobody can be asked"),
        (("deploy", "-i", "missing.yaml", "--host", "local", "--yes"), "missing.yaml"),
        (("status", "-i", ".", "--host", "local"), "folder"),
    ],
)
def test_what_cannot_be_meant_is_refused(place: Place, words: tuple[str, ...], said: str) -> None:
    """Bad input ends with exit 2 and one clear error, never a traceback, and nothing is written."""
    done = place.run(*words)

    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert said in done.stderr
    assert not [found for name in ("records.jsonl", "releases") for found in place.folder.rglob(name)]


def test_unreadable_inventory_is_refused(place: Place) -> None:
    """An inventory that cannot be read as text is named, with exit 2 and JSON where JSON was asked for."""
    place.path.write_bytes(b"\xff\xfe hosts")

    done = place.run("deploy", *HOST, "--yes", "--json")

    assert done.returncode == 2, done.stderr
    error = json.loads(done.stderr)["error"]
    assert (error["kind"], "UTF-8" in error["problems"][0]["message"]) == ("inventory", True)
