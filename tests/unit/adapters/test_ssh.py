"""How hosts are reached, refused and lost, against a real sshd."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from specctl.adapters import ssh
from specctl.adapters.exchange import exchange
from specctl.errors import ConnectError
from specctl.fleet.types import Host, Via

if TYPE_CHECKING:
    from tests.unit.adapters.conftest import Client, Sshd

LIMIT_S = 10.0


def hops(client: Client) -> str:
    """Return ssh_config blocks: `far` through `near`, both the same sshd, known under names of their own."""
    place = f"HostName 127.0.0.1\n  Port {client.sshd.port}\n"
    return (
        f"Host near\n  {place}  HostKeyAlias near\nHost mid\n  {place}  HostKeyAlias mid\n"
        f"Host far\n  {place}  HostKeyAlias far\n  ProxyJump near,mid\n"
    )


def test_jumps_are_gone_through(client: Client) -> None:
    """A host behind two jumps of ssh_config is reached, each under its own known key."""
    known = "".join(client.sshd.known(name=name) for name in ("near", "mid", "far"))
    client.configure(hosts=hops(client), known=known)
    assert client.answers(client.host(address="far"))


@pytest.mark.parametrize("missing", ["near", "mid", "far"])
def test_every_hop_is_verified(client: Client, missing: str) -> None:
    """One unknown key on the way is enough to refuse; a jump host is called one, and the hint scans through the hop before."""
    names = [name for name in ("near", "mid", "far") if name != missing]
    client.configure(hosts=hops(client), known="".join(client.sshd.known(name=name) for name in names))
    error = client.refusal(client.host(address="far"))
    assert f"the host key of {missing} is unknown" in error.message
    before = {"near": "then: ssh-keyscan", "mid": "then: ssh near ssh-keyscan", "far": "then: ssh mid ssh-keyscan"}
    assert before[missing] in (error.hint or "")


def test_jump_that_cannot_reach_the_host_is_told(client: Client, free: int) -> None:
    """A port that refuses the jump host's connection is told with both ends."""
    client.configure(
        hosts=f"Host far\n  HostName 127.0.0.1\n  Port {free}\n  ProxyJump near\n"
        f"Host near\n  HostName 127.0.0.1\n  Port {client.sshd.port}\n"
    )
    message = client.refusal(client.host(address="far")).message
    assert f"127.0.0.1:{free} cannot be reached from" in message
    assert f"127.0.0.1:{client.sshd.port}: " in message


def test_circle_of_jumps_is_told(client: Client) -> None:
    """Two hosts that jump through each other are a clear error."""
    client.configure(hosts="Host far\n  ProxyJump near\nHost near\n  ProxyJump far\n")
    assert "circle: far → near → far" in client.refusal(client.host(address="far")).message


def test_proxy_command_is_used(client: Client) -> None:
    """A host behind a ProxyCommand is reached through it."""
    jump = f"ssh -F {client.folder}/config -W 127.0.0.1:%p near"
    client.configure(
        hosts=f"Host far\n  HostName nowhere.invalid\n  Port {client.sshd.port}\n  HostKeyAlias far\n  ProxyCommand {jump}\n"
        f"Host near\n  HostName 127.0.0.1\n  Port {client.sshd.port}\n",
        known=client.sshd.known() + client.sshd.known(name="far"),
    )
    assert client.answers(client.host(address="far"))


def test_proxy_command_that_fails_is_told_in_its_own_words(client: Client) -> None:
    """What a failing ProxyCommand wrote to standard error is in the message."""
    client.configure("ProxyCommand sh -c 'echo no way to %h >&2; exit 3'")
    assert "ProxyCommand" in (error := client.refusal(client.host())).message
    assert "no way to 127.0.0.1" in error.message


def test_configuration_that_ssh_refuses_is_told(client: Client) -> None:
    """A broken ssh_config is an error with ssh's own reason."""
    client.configure("NoSuchOption 1")
    assert "ssh refuses its own configuration" in client.refusal(client.host()).message


def test_missing_ssh_client_is_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an ssh client there is a clear error with the way to install it."""
    monkeypatch.setenv("PATH", str(client.folder))
    assert "apt-get install openssh-client" in (client.refusal(client.host()).hint or "")


def test_missing_identity_file_is_told(client: Client) -> None:
    """A key file that the inventory names and that is not there is an error, not a silent fallback."""
    host = Host(name="gpu1", via=Via.SSH, address="127.0.0.1", identity_file="/nonexistent/key")
    assert "/nonexistent/key does not exist, or may not be read" in client.refusal(host).message


def test_fabric_and_invoke_files_are_not_read(client: Client) -> None:
    """Configuration files of Fabric and Invoke, even broken ones, have no effect."""
    for name in (".fabric.yaml", ".invoke.yaml"):
        (client.folder / name).write_text("user: nobody\nport: [broken\n")
    assert client.answers(client.host())


# Doors that do not open


@pytest.fixture
def free() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def door(greeting: bytes | None) -> Iterator[int]:
    """Listen on a port; greet and hang up, or (None) accept and say nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = server.accept()
                except OSError:
                    return
                accepted.sendall(greeting or b"")
                accepted.shutdown(socket.SHUT_WR)
                accepted.recv(100)
                accepted.close()

        if greeting is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_refused_connection_is_told(client: Client, free: int) -> None:
    """A port that nobody listens on is named."""
    error = client.refusal(client.host(port=free))
    assert f"127.0.0.1:{free} refuses the connection" in error.message


@pytest.mark.parametrize("address", ["a..b", "::1"])
def test_name_that_does_not_resolve_is_told(client: Client, address: str) -> None:
    """A name that has no address (of the family asked for) is named."""
    client.configure("AddressFamily inet")
    assert f"the name {address} does not resolve" in client.refusal(client.host(address=address)).message


def test_silent_port_is_told(client: Client) -> None:
    """Something that accepts and says nothing is told after ConnectTimeout."""
    client.configure("ConnectTimeout 1")
    with door(None) as port:
        assert "says nothing for 1 s" in client.refusal(client.host(port=port)).message


def test_port_that_closes_at_once_is_told(client: Client) -> None:
    """An sshd out of slots accepts and hangs up: told apart from a refusal."""
    with door(b"") as port:
        error = client.refusal(client.host(port=port))
    assert "closes it at once" in error.message
    assert "MaxStartups" in (error.hint or "")


def test_port_of_another_service_is_told(client: Client) -> None:
    """Something that speaks another protocol is told as such."""
    with door(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        assert "cannot agree" in client.refusal(client.host(port=port)).message


# In the middle of something


def session_process(transport: ssh.SshTransport) -> int:
    """Return the process id of the sshd that serves this connection."""
    return int(exchange(transport, ["sh", "-c", "echo $PPID"], timeout_s=LIMIT_S).stdout)


def test_connection_cut_in_the_middle_is_told(client: Client) -> None:
    """When sshd dies under a running program, reading and waiting are ConnectErrors, not an end of file or a status."""
    with contextlib.closing(ssh.dial(client.host())) as transport:
        process = session_process(transport)
        stream = transport.open(["cat"])
        stream.write(b"x")
        assert stream.read(1, timeout_s=LIMIT_S) == b"x"
        os.kill(process, signal.SIGKILL)
        with pytest.raises(ConnectError, match="gpu1: the connection was lost"):
            stream.read(1, timeout_s=LIMIT_S)
        with pytest.raises(ConnectError, match="the connection was lost"):
            stream.wait(timeout_s=LIMIT_S)
        with pytest.raises(ConnectError, match="the connection was lost"):
            transport.open(["true"])
        with pytest.raises(ConnectError, match="the connection was lost"):
            transport.connect("127.0.0.1", 1, timeout_s=LIMIT_S)


def test_host_that_stops_answering_is_noticed(client: Client) -> None:
    """A host that freezes without closing anything is given up after ServerAliveInterval times ServerAliveCountMax."""
    client.configure("ServerAliveInterval 1", "ServerAliveCountMax 1")
    with contextlib.closing(ssh.dial(client.host())) as transport:
        process = session_process(transport)
        stream = transport.open(["cat"])
        os.kill(process, signal.SIGSTOP)
        try:
            with pytest.raises(ConnectError, match="the connection was lost"):
                stream.read(1, timeout_s=LIMIT_S)
        finally:
            os.kill(process, signal.SIGKILL)


def test_forbidden_forwarding_is_told(strict_sshd: Sshd, client: Client) -> None:
    """An sshd that forbids forwarding is told with the line that allows it."""
    client.sshd = strict_sshd
    client.configure()
    with contextlib.closing(ssh.dial(client.host())) as transport, pytest.raises(ConnectError) as caught:
        transport.connect("127.0.0.1", strict_sshd.port, timeout_s=LIMIT_S)
    assert "AllowTcpForwarding" in (caught.value.hint or "")


def test_forbidden_jump_is_told(strict_sshd: Sshd, client: Client) -> None:
    """A jump host that forbids forwarding is named with the line that allows it."""
    client.sshd = strict_sshd
    client.configure(
        hosts=f"Host far\n  HostName 127.0.0.1\n  ProxyJump near\nHost near\n  HostName 127.0.0.1\n  Port {strict_sshd.port}\n"
    )
    error = client.refusal(client.host(address="far"))
    assert f"127.0.0.1:{strict_sshd.port} forbids forwarding" in error.message


def test_exhausted_sessions_are_told(strict_sshd: Sshd, client: Client) -> None:
    """A second program where sshd allows one session at a time is told with MaxSessions; the first goes on."""
    client.sshd = strict_sshd
    client.configure()
    with contextlib.closing(ssh.dial(client.host())) as transport:
        first = transport.open(["cat"])
        with pytest.raises(ConnectError) as caught:
            transport.open(["true"])
        assert "MaxSessions" in (caught.value.hint or "")
        first.write(b"still here")
        assert first.read(100, timeout_s=LIMIT_S) == b"still here"


def test_nothing_is_left_running(client: Client) -> None:
    """Hanging up ends every thread of a connection, its jumps too."""
    client.configure(hosts=hops(client), known="".join(client.sshd.known(name=name) for name in ("near", "mid", "far")))
    before = set(threading.enumerate())
    transport = ssh.dial(client.host(address="far"))
    transport.connect("127.0.0.1", client.sshd.port, timeout_s=LIMIT_S).close()
    assert set(threading.enumerate()) - before
    transport.close()
    deadline = time.monotonic() + LIMIT_S
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        for thread in left:
            thread.join(0.1)
    assert left == set()
