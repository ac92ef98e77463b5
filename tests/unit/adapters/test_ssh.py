"""How hosts are reached, refused and lost, against a real sshd."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from specctl.adapters import ssh
from specctl.adapters.exchange import exchange
from specctl.errors import EXIT_CONNECT, ConnectError
from specctl.fleet.types import Host, Via

if TYPE_CHECKING:
    from tests.unit.adapters.conftest import Client, Sshd

LIMIT_S = 10.0


def answers(host: Host) -> bool:
    """Tell whether a command on the host gives its output."""
    with contextlib.closing(ssh.dial(host)) as transport:
        return exchange(transport, ["echo", "here"], timeout_s=LIMIT_S).stdout == b"here\n"


def refusal(host: Host) -> ConnectError:
    """Return the error that dialling ends with."""
    with pytest.raises(ConnectError) as caught:
        ssh.dial(host)
    assert caught.value.host == "gpu1"
    assert caught.value.exit_code == EXIT_CONNECT
    assert caught.value.hint
    return caught.value


# Host keys


def test_known_key_is_accepted(client: Client) -> None:
    """A host whose key is in known_hosts is reached."""
    assert answers(client.host())


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_the_kind_of_key_that_is_known_is_asked_for(client: Client, kind: str) -> None:
    """One known key of any kind is enough, whichever kind the server would rather show."""
    client.configure(known=client.sshd.known(kind))
    assert answers(client.host())


def test_hashed_entry_is_found(client: Client) -> None:
    """An entry whose host name ssh-keygen hashed vouches as well."""
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", client.known_hosts], check=True, capture_output=True)
    assert client.known_hosts.read_text().startswith("|1|")
    assert answers(client.host())


def test_key_under_an_alias_is_found(client: Client) -> None:
    """HostKeyAlias names the entry to look for."""
    client.configure("HostKeyAlias rack7", known=client.sshd.known(name="rack7"))
    assert answers(client.host())


def test_key_in_the_global_file_is_found(client: Client, tmp_path: Path) -> None:
    """The system's known_hosts counts as the user's does."""
    (tmp_path / "global").write_text(client.sshd.known())
    client.configure(known="")
    text = (client.folder / "config").read_text()
    (client.folder / "config").write_text(text.replace("KnownHostsFile none", f"KnownHostsFile {tmp_path}/global"))
    assert answers(client.host())


def test_unknown_key_is_refused_with_the_command_that_adds_it(client: Client) -> None:
    """An unknown key is refused; the hint shows its fingerprint, and running the hint's command makes the host known."""
    client.configure("StrictHostKeyChecking no", known="# nobody\n")
    error = refusal(client.host())
    printed = subprocess.run(
        ["ssh-keygen", "-l", "-f", client.sshd.folder / "host_ed25519.pub"], check=True, capture_output=True, text=True
    )
    assert f"the host key of {client.sshd.name} is unknown" in error.message
    assert printed.stdout.split()[1] in error.message
    assert client.known_hosts.read_text() == "# nobody\n"
    assert error.hint is not None
    subprocess.run(error.hint.partition("then: ")[2], shell=True, check=True, capture_output=True)
    assert answers(client.host())


def test_hint_hashes_where_the_operator_hashes(client: Client) -> None:
    """With HashKnownHosts the hint's command writes a hashed name, and the host is known by it."""
    client.configure("HashKnownHosts yes", known="")
    hint = refusal(client.host()).hint or ""
    subprocess.run(hint.partition("then: ")[2], shell=True, check=True, capture_output=True)
    assert client.known_hosts.read_text().startswith("|1|")
    assert answers(client.host())


def test_changed_key_is_refused_with_its_place_and_the_command_that_removes_it(client: Client, ssh_keys: Path) -> None:
    """A changed key is refused, naming file and line of the other; the hint's two commands make it right."""
    stranger = " ".join((ssh_keys / "bad1.pub").read_text().split()[:2])
    client.configure(known=f"# a comment\n{client.sshd.name} {stranger}\n")
    error = refusal(client.host())
    assert f"the host key of {client.sshd.name} changed" in error.message
    assert f"{client.known_hosts}:2 holds ssh-ed25519 SHA256:" in error.message
    assert error.hint is not None
    removal = error.hint.partition("if it is right: ")[2].partition(", and ")[0]
    addition = error.hint.partition("then: ")[2]
    for command in (removal, addition):
        subprocess.run(command, shell=True, check=True, capture_output=True)
    assert answers(client.host())


def test_key_of_another_kind_alone_is_refused(client: Client) -> None:
    """A host that no longer has the kind of key that is known is unknown, and what is known is named."""
    other = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjE="
    client.configure(known=f"{client.sshd.name} {other}\n")
    error = refusal(client.host())
    assert "is unknown" in error.message
    assert f"{client.known_hosts}:1 holds ecdsa-sha2-nistp521" in error.message


def test_revoked_key_is_refused_though_it_is_known_too(client: Client) -> None:
    """A @revoked line wins over one that vouches."""
    client.configure(known=client.sshd.known() + client.sshd.known(name="*", marker="@revoked "))
    error = refusal(client.host())
    assert "is revoked" in error.message
    assert f"{client.known_hosts}:2" in error.message


def test_certificate_authority_alone_is_refused_clearly(client: Client) -> None:
    """A host known through a certificate authority only is refused as such."""
    client.configure(known=client.sshd.known(name="*", marker="@cert-authority "))
    assert "certificate authority" in refusal(client.host()).message


def test_nothing_of_ours_is_offered_to_an_unknown_host(client: Client) -> None:
    """The host key is judged before authentication begins: sshd has not even learned a user's name."""
    log = client.sshd.folder / "sshd.log"
    before = len(log.read_bytes())
    client.configure(known="")
    refusal(client.host())
    deadline = time.monotonic() + LIMIT_S
    while b"[preauth]" not in log.read_bytes()[before:] and time.monotonic() < deadline:
        time.sleep(0.01)
    told = log.read_bytes()[before:].decode()
    assert "by 127.0.0.1 port" in told
    assert "user" not in told


def test_unreadable_known_hosts_is_told(client: Client) -> None:
    """A known_hosts that is a folder is an error of its own, not an unknown key."""
    client.known_hosts.unlink()
    client.known_hosts.mkdir()
    assert f"cannot read {client.known_hosts}" in refusal(client.host()).message


# The way there


def hops(client: Client, *, key_of_target: str | None = None) -> str:
    """Return ssh_config blocks: `far` through `near`, both the same sshd, known under names of their own."""
    place = f"HostName 127.0.0.1\n  Port {client.sshd.port}\n"
    return (
        f"Host near\n  {place}  HostKeyAlias near\nHost mid\n  {place}  HostKeyAlias mid\n"
        f"Host far\n  {place}  HostKeyAlias {key_of_target or 'far'}\n  ProxyJump near,mid\n"
    )


def test_jumps_are_gone_through(client: Client) -> None:
    """A host behind two jumps of ssh_config is reached, each under its own known key."""
    known = "".join(client.sshd.known(name=name) for name in ("near", "mid", "far"))
    client.configure(hosts=hops(client), known=known)
    assert answers(client.host(address="far"))


@pytest.mark.parametrize("missing", ["near", "mid", "far"])
def test_every_hop_is_verified(client: Client, missing: str) -> None:
    """One unknown key on the way is enough to refuse; a jump host is called one, and the hint scans through the hop before."""
    names = [name for name in ("near", "mid", "far") if name != missing]
    client.configure(hosts=hops(client), known="".join(client.sshd.known(name=name) for name in names))
    error = refusal(client.host(address="far"))
    assert f"the host key of {missing} is unknown" in error.message
    before = {"near": "then: ssh-keyscan", "mid": "then: ssh near ssh-keyscan", "far": "then: ssh mid ssh-keyscan"}
    assert before[missing] in (error.hint or "")


def test_jump_that_cannot_reach_the_host_is_told(client: Client, free: int) -> None:
    """A port that refuses the jump host's connection is told with both ends."""
    client.configure(
        hosts=f"Host far\n  HostName 127.0.0.1\n  Port {free}\n  ProxyJump near\n"
        f"Host near\n  HostName 127.0.0.1\n  Port {client.sshd.port}\n"
    )
    message = refusal(client.host(address="far")).message
    assert f"127.0.0.1:{free} cannot be reached from" in message
    assert f"127.0.0.1:{client.sshd.port}: " in message


def test_circle_of_jumps_is_told(client: Client) -> None:
    """Two hosts that jump through each other are a clear error."""
    client.configure(hosts="Host far\n  ProxyJump near\nHost near\n  ProxyJump far\n")
    assert "circle: far → near → far" in refusal(client.host(address="far")).message


def test_proxy_command_is_used(client: Client) -> None:
    """A host behind a ProxyCommand is reached through it."""
    jump = f"ssh -F {client.folder}/config -W 127.0.0.1:%p near"
    client.configure(
        hosts=f"Host far\n  HostName nowhere.invalid\n  Port {client.sshd.port}\n  HostKeyAlias far\n  ProxyCommand {jump}\n"
        f"Host near\n  HostName 127.0.0.1\n  Port {client.sshd.port}\n",
        known=client.sshd.known() + client.sshd.known(name="far"),
    )
    assert answers(client.host(address="far"))


def test_proxy_command_that_fails_is_told_in_its_own_words(client: Client) -> None:
    """What a failing ProxyCommand wrote to standard error is in the message."""
    client.configure("ProxyCommand sh -c 'echo no way to %h >&2; exit 3'")
    assert "ProxyCommand" in (error := refusal(client.host())).message
    assert "no way to 127.0.0.1" in error.message


def test_configuration_that_ssh_refuses_is_told(client: Client) -> None:
    """A broken ssh_config is an error with ssh's own reason."""
    client.configure("NoSuchOption 1")
    assert "ssh refuses its own configuration" in refusal(client.host()).message


def test_missing_ssh_client_is_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an ssh client there is a clear error with the way to install it."""
    monkeypatch.setenv("PATH", str(client.folder))
    assert "apt-get install openssh-client" in (refusal(client.host()).hint or "")


def test_missing_identity_file_is_told(client: Client) -> None:
    """A key file that the inventory names and that is not there is an error, not a silent fallback."""
    host = Host(name="gpu1", via=Via.SSH, address="127.0.0.1", identity_file="/nonexistent/key")
    assert "/nonexistent/key does not exist" in refusal(host).message


def test_fabric_and_invoke_files_are_not_read(client: Client) -> None:
    """Configuration files of Fabric and Invoke, even broken ones, have no effect."""
    for name in (".fabric.yaml", ".invoke.yaml"):
        (client.folder / name).write_text("user: nobody\nport: [broken\n")
    assert answers(client.host())


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
    error = refusal(client.host(port=free))
    assert f"127.0.0.1:{free} refuses the connection" in error.message


@pytest.mark.parametrize("address", ["a..b", "::1"])
def test_name_that_does_not_resolve_is_told(client: Client, address: str) -> None:
    """A name that has no address (of the family asked for) is named."""
    client.configure("AddressFamily inet")
    assert f"the name {address} does not resolve" in refusal(client.host(address=address)).message


def test_silent_port_is_told(client: Client) -> None:
    """Something that accepts and says nothing is told after ConnectTimeout."""
    client.configure("ConnectTimeout 1")
    with door(None) as port:
        assert "says nothing for 1 s" in refusal(client.host(port=port)).message


def test_port_that_closes_at_once_is_told(client: Client) -> None:
    """An sshd out of slots accepts and hangs up: told apart from a refusal."""
    with door(b"") as port:
        error = refusal(client.host(port=port))
    assert "closes it at once" in error.message
    assert "MaxStartups" in (error.hint or "")


def test_port_of_another_service_is_told(client: Client) -> None:
    """Something that speaks another protocol is told as such."""
    with door(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        assert "cannot agree" in refusal(client.host(port=port)).message


# Our keys


def test_strangers_key_is_refused_with_what_was_tried(client: Client, ssh_keys: Path) -> None:
    """When no key is accepted, each one that was offered is named."""
    client.configure(keys=(ssh_keys / "bad1", ssh_keys / "bad2"))
    error = refusal(client.host())
    assert f"accepts none of our keys (offered {ssh_keys}/bad1, {ssh_keys}/bad2)" in error.message
    assert "ssh-copy-id" in (error.hint or "")


def test_no_key_at_all_is_told(client: Client) -> None:
    """Without any key the hint says how to make or name one."""
    client.configure(keys=(client.folder / "nothing",))
    error = refusal(client.host())
    assert "no key was offered" in error.message
    assert "ssh-keygen" in (error.hint or "")


def test_locked_key_is_told_and_never_asked_for(client: Client, ssh_keys: Path) -> None:
    """A key with a passphrase is named as such; the hint is an agent."""
    client.configure(keys=(ssh_keys / "locked",))
    error = refusal(client.host())
    assert f"{ssh_keys}/locked (locked by a passphrase)" in error.message
    assert "ssh-add" in (error.hint or "")


def test_host_that_hangs_up_on_too_many_keys_is_told(strict_sshd: Sshd, client: Client, ssh_keys: Path) -> None:
    """MaxAuthTries in the middle of our keys is told apart from a refusal of them all."""
    client.sshd = strict_sshd
    client.configure(keys=(*(ssh_keys / f"bad{number}" for number in (1, 2, 3)), ssh_keys / "good"))
    error = refusal(client.host())
    assert "hung up after 2 keys" in error.message
    assert "IdentitiesOnly yes" in (error.hint or "")


@pytest.fixture
def agent(ssh_keys: Path, tmp_path: Path) -> Iterator[Path]:
    """Run an agent that holds the locked key and a stranger's; return its socket."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT_S
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        answer = tmp_path / "askpass"
        answer.write_text("#!/bin/sh\necho 'open sesame'\n")
        answer.chmod(0o700)
        env = {**os.environ, "SSH_AUTH_SOCK": str(path), "SSH_ASKPASS": str(answer), "SSH_ASKPASS_REQUIRE": "force"}
        for name in ("bad1", "locked"):
            subprocess.run(["ssh-add", "-q", ssh_keys / name], check=True, env=env, stdin=subprocess.DEVNULL)
        yield path
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def test_agent_unlocks_a_locked_key(client: Client, ssh_keys: Path, agent: Path) -> None:
    """A key with a passphrase works through the agent that IdentityAgent names."""
    client.configure(f"IdentityAgent {agent}", "IdentitiesOnly yes", keys=(ssh_keys / "locked",))
    assert answers(client.host())


def test_agent_of_the_environment_is_used(
    client: Client, ssh_keys: Path, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSH_AUTH_SOCK is followed where ssh_config says nothing else, for keys that no file names."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    client.configure("IdentityAgent SSH_AUTH_SOCK", keys=(ssh_keys / "bad2",))
    assert answers(client.host())


def test_identities_only_keeps_the_agents_other_keys_back(client: Client, ssh_keys: Path, agent: Path) -> None:
    """With IdentitiesOnly the agent's keys that no file names are not offered."""
    client.configure(f"IdentityAgent {agent}", "IdentitiesOnly yes", keys=(ssh_keys / "bad2",))
    assert f"(offered {ssh_keys}/bad2)" in refusal(client.host()).message


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
    error = refusal(client.host(address="far"))
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
