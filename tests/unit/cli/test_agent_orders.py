"""What people order agents is looked at here, before any host is asked and also where nothing is to be done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PIN = ("pin", "--algo", "dflash")
WELL = ("--for", "1h", "--reason", "a demo")
EXIT_USAGE = 2
EXIT_HOST = 3


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Give an inventory of one server on a host that answers nobody."""
    path = tmp_path / "inventory.yaml"
    path.write_text(
        "models: {m: {path: /m}}\n"
        "servers: {lab: {engine: lab, target: m, port: 30100, algo: none, python: /usr/bin/python3}}\n"
        "hosts: {gpu1: {servers: [lab], connect: {address: 127.0.0.1, port: 1}}}\n"
    )
    return path


def run(inventory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the host."""
    argv = [str(Path(sys.executable).with_name("specctl")), *words, "--inventory", str(inventory), "--host", "gpu1"]
    env = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=env)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*PIN, "--for", "0s", "--reason", "x"), "--for 0s: must be at least 1s"),
        ((*PIN, "--for", "31d", "--reason", "x"), "--for 31d: must be at most 30d"),
        ((*PIN, "--for", "soon", "--reason", "x"), "--for soon: must be a duration with its unit"),
        ((*PIN, "--for", "1h", "--reason", ""), "reason is missing"),
        ((*PIN, "--for", "1h", "--reason", "x" * 501), "reason is longer than 500 characters"),
        (("pin", "--algo", "warp", *WELL), "no algo 'warp'"),
        (("agent", "hold", "--reason", "a\nb"), "holds control characters"),
        (("agent", "mode", "destroy"), "destroy is no mode"),
    ],
)
def test_an_order_that_cannot_be_meant_reaches_no_host(inventory: Path, words: tuple[str, ...], said: str) -> None:
    """It is refused in one line that names what is wrong, by the option's own name, and nothing was said to be done."""
    done = run(inventory, *words, "--dry-run")
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    assert done.stderr.startswith("error: ")
    assert said in done.stderr.splitlines()[0]


def test_an_order_is_shown_before_it_is_given(inventory: Path) -> None:
    """A dry run says what would be told to whom, and asks no host."""
    done = run(inventory, *PIN, *WELL, "--dry-run")
    assert (done.returncode, done.stdout) == (0, "pin dflash for 1h: lab on gpu1\n"), done.stderr


def test_a_host_that_does_not_answer_has_no_decisions(inventory: Path) -> None:
    """What is not known is not called `no decision yet`."""
    done = run(inventory, "why")
    assert (done.returncode, done.stdout) == (EXIT_HOST, "")
    assert "gpu1" in done.stderr
