"""Becoming root on a host; the sudo here is a stand-in program on the host's PATH that answers as sudo does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from specctl.adapters.connect import open_transport
from specctl.adapters.exchange import Exchange, exchange
from specctl.adapters.sudo import sudo_refusal
from specctl.errors import ConnectError
from specctl.fleet.types import Host, Via

if TYPE_CHECKING:
    from tests.unit.adapters.conftest import Client

LIMIT_S = 10.0
ALLOWING = """#!/bin/sh
printf '%s\\n' "$*" >> {log}
while [ "$1" != -- ]; do shift; done
shift
AS_ROOT=yes exec "$@"
"""
# In another language than English on purpose: the words must not matter.
ASKING = """#!/bin/sh
printf '%s\\n' "$*" >> {log}
echo 'sudo: Ein Passwort ist notwendig' >&2
exit 1
"""


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest, client: Client, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Be on a host, of each kind, whose PATH begins with the sshd's own folder, and which is to be used with sudo."""
    if request.param == "ssh":
        return client.host(sudo=True)
    monkeypatch.setenv("PATH", f"{client.sshd.folder}/bin:/usr/bin:/bin")
    return Host(name="gpu1", via=Via.LOCAL, sudo=True)


@pytest.fixture
def calls(client: Client) -> Iterator[Path]:
    """Return the file to which the stand-in writes how it was called; take the stand-in away afterwards."""
    log = client.folder / "sudo.log"
    log.touch()
    yield log
    (client.sshd.folder / "bin" / "sudo").unlink(missing_ok=True)


def install(client: Client, script: str, calls: Path) -> None:
    """Put a sudo on the host."""
    path = client.sshd.folder / "bin" / "sudo"
    path.write_text(script.format(log=calls))
    path.chmod(0o755)


def test_programs_run_as_root_after_one_probe(host: Host, client: Client, calls: Path) -> None:
    """Every program goes through `sudo -n --`, and sudo is probed once a connection, without cached passwords."""
    install(client, ALLOWING, calls)
    with contextlib.closing(open_transport(host)) as transport:
        outcomes = [exchange(transport, ["sh", "-c", "echo $AS_ROOT"], timeout_s=LIMIT_S).stdout for _ in range(2)]
    assert outcomes == [b"yes\n", b"yes\n"]
    assert calls.read_text().splitlines() == ["-k -n -- true", *["-n -- sh -c echo $AS_ROOT"] * 2]


def test_sudo_that_wants_a_password_is_refused_before_anything_runs(host: Host, client: Client, calls: Path) -> None:
    """A sudo that asks is a ConnectError with the line for sudoers, in whatever language it asks, and nothing has run."""
    install(client, ASKING, calls)
    with contextlib.closing(open_transport(host)) as transport, pytest.raises(ConnectError) as caught:
        transport.open(["touch", str(client.folder / "ran")])
    assert "may not become root there without a password (sudo: Ein Passwort ist notwendig)" in caught.value.message
    assert "NOPASSWD: ALL" in (caught.value.hint or "")
    assert calls.read_text().splitlines() == ["-k -n -- true"]
    assert not (client.folder / "ran").exists()


def test_right_given_later_is_found(host: Host, client: Client, calls: Path) -> None:
    """A refusal is not remembered: once sudoers is put right, the same connection goes on."""
    install(client, ASKING, calls)
    with contextlib.closing(open_transport(host)) as transport:
        with pytest.raises(ConnectError):
            transport.open(["true"])
        install(client, ALLOWING, calls)
        assert exchange(transport, ["true"], timeout_s=LIMIT_S).status == 0


def test_missing_sudo_is_told() -> None:
    """A host without sudo is told as such, with the way around it."""
    error = sudo_refusal(
        Exchange(status=127, stdout=b"", stderr=b"sh: 1: exec: sudo: not found\n"), host="gpu1", user="bob"
    )
    assert error is not None
    assert (error.host, error.message) == ("gpu1", "sudo is not installed there")
    assert "sudo: false" in (error.hint or "")


def test_working_sudo_is_no_refusal() -> None:
    """Status 0 is all that counts."""
    assert sudo_refusal(Exchange(status=0, stdout=b"", stderr=b"noise"), host="gpu1", user="bob") is None


def test_hosts_without_sudo_never_call_it(client: Client, calls: Path) -> None:
    """A host whose inventory does not say sudo runs programs as the login user."""
    install(client, ASKING, calls)
    with contextlib.closing(open_transport(client.host())) as transport:
        assert exchange(transport, ["id", "-u"], timeout_s=LIMIT_S).stdout == f"{os.getuid()}\n".encode()
    assert calls.read_text() == ""
