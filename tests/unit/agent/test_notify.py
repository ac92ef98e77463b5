"""What systemd is told, on a socket as systemd makes one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl_agent.notify import Notify


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """Listen where NOTIFY_SOCKET points."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(path)
        sock.settimeout(5)
        yield path, sock


def test_messages_are_systemds(systemd: tuple[str, socket.socket]) -> None:
    """Ready, alive and stopping are said in systemd's words, a status on one bounded line."""
    path, sock = systemd
    notify = Notify({"NOTIFY_SOCKET": path})
    notify.ready("starting\nup")
    notify.alive("x" * 1000)
    notify.stopping()
    assert [sock.recv(2000) for _ in range(3)] == [
        b"READY=1\nSTATUS=starting up",
        b"WATCHDOG=1\nSTATUS=" + b"x" * 200,
        b"STOPPING=1",
    ]


def test_abstract_sockets_are_reached() -> None:
    """An address that begins with @ is an abstract one, as containers have it."""
    name = f"specctl-agent-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{name}")
        sock.settimeout(5)
        Notify({"NOTIFY_SOCKET": f"@{name}"}).stopping()
        assert sock.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_nobody_listening_is_no_error(environ: dict[str, str]) -> None:
    """Outside systemd, or with its socket gone, the agent goes on."""
    Notify(environ).alive("fine")


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_watchdog_is_read(environ: dict[str, str], wanted: float | None) -> None:
    """The watchdog's time counts when it is meant for this process."""
    assert Notify(environ).watchdog_s == wanted
