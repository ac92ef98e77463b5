"""Hooks are the operator's own programs: run as argv, bounded in time, told from their exit code, and given no credentials."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specctl.fleet.types import Hooks
from specctl_agent.actuators import DoorError, Taken
from specctl_agent.actuators.hooks import HookDoor, OpenDoor


def door(pre_drain: tuple[str, ...], post_ready: tuple[str, ...] = ("/bin/true",), limit_s: float = 10.0) -> HookDoor:
    """Return a door with these hooks."""
    return HookDoor(Hooks(pre_drain=pre_drain, post_ready=post_ready, limit_s=limit_s), "lab")


def test_a_hook_is_run_after_the_mark(tmp_path: Path) -> None:
    """What is about to be done is written down first; words are passed as they are, without a shell."""
    seen: list[bool] = []
    made = tmp_path / "off; rm -rf $HOME"
    taken = door(("/usr/bin/touch", str(made))).take_off(lambda _: seen.append(made.exists()))
    assert (seen, made.exists(), taken) == ([False], True, Taken(by="hooks"))


def test_a_hook_learns_the_server_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is PATH and the server's name: the agent's own is not passed on."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials")
    said = tmp_path / "environment"
    door(("/bin/sh", "-c", f"env | sort > {said}")).take_off(lambda _: None)
    names = {line.split("=")[0] for line in said.read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "SPECCTL_SERVER"}
    assert "SPECCTL_SERVER=lab" in said.read_text()


def test_a_hook_that_fails_is_said_with_its_words() -> None:
    """The exit code and the beginning of what it printed."""
    with pytest.raises(DoorError, match=r"pre_drain ended with 7 \(/bin/sh\): the balancer is away"):
        door(("/bin/sh", "-c", "echo the balancer is away >&2; exit 7")).take_off(lambda _: None)
    with pytest.raises(DoorError, match="post_ready ended with 1"):
        door(("/bin/true",), ("/bin/false",)).bring_back(Taken(by="hooks"))


def test_a_hook_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    """After its limit the whole of it is gone."""
    pid = tmp_path / "pid"
    with pytest.raises(DoorError, match=r"pre_drain did not end within 0\.5 s"):
        door(("/bin/sh", "-c", f"sleep 60 & echo $! > {pid}; wait"), limit_s=0.5).take_off(lambda _: None)
    child = int(pid.read_text())
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split(")")[1][:3]


def test_what_a_hook_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    """A child that keeps its output open does not hold the hook up."""
    pid = tmp_path / "pid"
    door(("/bin/sh", "-c", f"sleep 30 & echo $! > {pid}"), limit_s=5.0).take_off(lambda _: None)
    os.kill(int(pid.read_text()), 9)


def test_a_hook_that_is_not_there_is_said() -> None:
    """The program and why it cannot be started."""
    with pytest.raises(DoorError, match=r"pre_drain cannot be started: No such file or directory \(/no/such\)"):
        door(("/no/such",)).take_off(lambda _: None)


def test_an_open_door_does_nothing() -> None:
    """An outage is accepted: it only says that nobody was asked."""
    assert OpenDoor().take_off(lambda _: None) == Taken(by="nobody")
    OpenDoor().bring_back(Taken(by="nobody"))
