"""The agent as a process: it tells systemd how it is, ends when asked, is alone on its host, and comes back from a kill."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl_agent.main import main

WITHIN_S = 20.0


class Agent:
    """An agent in a folder of its own, as systemd would start it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("state", "run", "servers"):
            (folder / name).mkdir(exist_ok=True)
        self.config = folder / "agent.json"
        fields = {"format": 1, "servers": str(folder / "servers"), "metrics": {"address": "127.0.0.1", "port": 0}}
        self.config.write_text(json.dumps({**fields, "state": str(folder / "state"), "run": str(folder / "run")}))
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.bind(str(folder / "notify"))
        self.notified.settimeout(WITHIN_S)
        self.process: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Return what systemd sets."""
        return {**os.environ, "NOTIFY_SOCKET": str(self.folder / "notify"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(self) -> subprocess.Popen[str]:
        """Start it and wait until it calls itself ready."""
        argv = [sys.executable, "-m", "specctl_agent", "run", "--config", str(self.config)]
        self.process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=self.environment)
        assert self.heard("READY=1").startswith("READY=1\nSTATUS=no server deployed")
        return self.process

    def heard(self, begin: str) -> str:
        """Return the first message to systemd that begins so."""
        while True:
            message = self.notified.recv(4096).decode()
            if message.startswith(begin):
                return message

    def ctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Speak with it as a person on the host."""
        argv = [
            sys.executable,
            "-m",
            "specctl_agent",
            "ctl",
            "--socket",
            str(self.folder / "run" / "agent.sock"),
            *words,
        ]
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=self.environment, timeout=WITHIN_S)

    def close(self) -> None:
        """End it, however it is."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process is not None and self.process.stderr is not None:
            self.process.stderr.close()
        self.notified.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Give an agent's folder."""
    made = Agent(tmp_path)
    yield made
    made.close()


def test_a_life(agent: Agent) -> None:
    """Ready, alive once a second, answering; asked to end, it says so, ends with 0 within seconds and leaves nobody behind."""
    process = agent.start()
    assert agent.heard("WATCHDOG=1").startswith("WATCHDOG=1\nSTATUS=")
    status = agent.ctl("status")
    assert (status.returncode, json.loads(status.stdout)["servers"]) == (0, [])
    left = [
        pid
        for thread in Path(f"/proc/{process.pid}/task").iterdir()
        for pid in (thread / "children").read_text().split()
    ]
    process.send_signal(signal.SIGTERM)
    assert agent.heard("STOPPING=1")
    assert process.wait(WITHIN_S) == 0
    assert process.stderr is not None
    said = process.stderr.read()
    assert said.startswith("<6>event=started ")
    assert said.endswith("<6>event=stopped\n")
    assert not (agent.folder / "run" / "agent.sock").exists()
    deadline = time.monotonic() + WITHIN_S
    while any(Path(f"/proc/{pid}").exists() for pid in left):
        assert time.monotonic() < deadline, "a child of the agent outlives it"


@pytest.mark.slow
def test_the_second_is_refused_and_the_first_not_disturbed(agent: Agent) -> None:
    """Two agents on one host: the second says whose host it is and ends with 5; the first still answers."""
    first = agent.start()
    second = subprocess.run(
        [sys.executable, "-m", "specctl_agent", "run", "--config", str(agent.config)],
        capture_output=True, text=True, check=False, env=agent.environment, timeout=WITHIN_S,
    )  # fmt: skip
    assert second.returncode == 5
    assert f'event=refused reason="another agent runs on this host (process {first.pid})"' in second.stderr
    assert agent.ctl("status").returncode == 0


@pytest.mark.slow
def test_a_killed_one_is_replaced_without_a_trace(agent: Agent) -> None:
    """After kill -9 the next one takes lock, socket and state over at once."""
    agent.start().kill()
    assert agent.process is not None
    agent.process.wait()
    assert agent.process.stderr is not None
    agent.process.stderr.close()
    again = agent.start()
    assert json.loads(agent.ctl("status").stdout)["troubles"] == {}
    assert again.poll() is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no"),
        ("{", "cannot be read"),
        ('{"format": 1}', "does not say format, servers and metrics"),
        ('{"format": 9, "servers": "/x"}', "has format 9, and this agent reads format 1"),
        ('{"format": 1, "servers": "/x", "metrics": {"address": "127.0.0.1", "port": 70000}}', "does not say"),
    ],
)
def test_settings_that_cannot_be_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, reason: str
) -> None:
    """Without settings, or with such, it does not begin: it says what is wrong and what to do, and ends with 2."""
    path = tmp_path / "agent.json"
    if content is not None:
        path.write_text(content)
    before = (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    try:
        assert main(["run", "--config", str(path)]) == 2
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    said = capsys.readouterr().err
    assert re.match(r"<3>event=refused reason=", said)
    assert reason in said
    assert "specctl agent install" in said


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (["--version"], 0, "specctl-agent "),
        (["--help"], 0, "usage: "),
        (["ctl", "--help"], 0, "usage: "),
        (["fly"], 2, ""),
    ],
)
def test_words(capsys: pytest.CaptureFixture[str], words: list[str], code: int, shown: str) -> None:
    """The program says its version and its usage; what it does not know is usage, 2."""
    assert main(words) == code
    assert capsys.readouterr().out.startswith(shown)


def test_every_module_can_be_imported() -> None:
    """`check` imports all of the agent in a process of its own, and ends with 0."""
    done = subprocess.run(
        [sys.executable, "-m", "specctl_agent", "check"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
