"""Whom specctl believes and which of our keys it offers, against a real sshd."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.adapters.conftest import Client, Sshd

LIMIT_S = 10.0


def test_known_key_is_accepted(client: Client) -> None:
    """A host whose key is in known_hosts is reached."""
    assert client.answers(client.host())


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_the_kind_of_key_that_is_known_is_asked_for(client: Client, kind: str) -> None:
    """One known key of any kind is enough, whichever kind the server would rather show."""
    client.configure(known=client.sshd.known(kind))
    assert client.answers(client.host())


def test_hashed_entry_is_found(client: Client) -> None:
    """An entry whose host name ssh-keygen hashed vouches as well."""
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", client.known_hosts], check=True, capture_output=True)
    assert client.known_hosts.read_text().startswith("|1|")
    assert client.answers(client.host())


def test_key_under_an_alias_is_found(client: Client) -> None:
    """HostKeyAlias names the entry to look for."""
    client.configure("HostKeyAlias rack7", known=client.sshd.known(name="rack7"))
    assert client.answers(client.host())


def test_key_in_the_global_file_is_found(client: Client, tmp_path: Path) -> None:
    """The system's known_hosts counts as the user's does."""
    (tmp_path / "global").write_text(client.sshd.known())
    client.configure(known="")
    text = (client.folder / "config").read_text()
    (client.folder / "config").write_text(text.replace("KnownHostsFile none", f"KnownHostsFile {tmp_path}/global"))
    assert client.answers(client.host())


def test_unknown_key_is_refused_with_the_command_that_adds_it(client: Client) -> None:
    """An unknown key is refused; the hint shows its fingerprint, and running the hint's command makes the host known."""
    client.configure("StrictHostKeyChecking no", known="# nobody\n")
    error = client.refusal(client.host())
    printed = subprocess.run(
        ["ssh-keygen", "-l", "-f", client.sshd.folder / "host_ed25519.pub"], check=True, capture_output=True, text=True
    )
    assert f"the host key of {client.sshd.name} is unknown" in error.message
    assert printed.stdout.split()[1] in error.message
    assert client.known_hosts.read_text() == "# nobody\n"
    assert error.hint is not None
    subprocess.run(error.hint.partition("then: ")[2], shell=True, check=True, capture_output=True)
    assert client.answers(client.host())


def test_hint_hashes_where_the_operator_hashes(client: Client) -> None:
    """With HashKnownHosts the hint's command writes a hashed name, and the host is known by it."""
    client.configure("HashKnownHosts yes", known="")
    hint = client.refusal(client.host()).hint or ""
    subprocess.run(hint.partition("then: ")[2], shell=True, check=True, capture_output=True)
    assert client.known_hosts.read_text().startswith("|1|")
    assert client.answers(client.host())


def test_changed_key_is_refused_with_its_place_and_the_command_that_removes_it(client: Client, ssh_keys: Path) -> None:
    """A changed key is refused, naming file and line of the other; the hint's two commands make it right."""
    stranger = " ".join((ssh_keys / "bad1.pub").read_text().split()[:2])
    client.configure(known=f"# a comment\n{client.sshd.name} {stranger}\n")
    error = client.refusal(client.host())
    assert f"the host key of {client.sshd.name} changed" in error.message
    assert f"{client.known_hosts}:2 holds ssh-ed25519 SHA256:" in error.message
    assert error.hint is not None
    removal = error.hint.partition("if it is right: ")[2].partition(", and ")[0]
    addition = error.hint.partition("then: ")[2]
    for command in (removal, addition):
        subprocess.run(command, shell=True, check=True, capture_output=True)
    assert client.answers(client.host())


def test_key_of_another_kind_alone_is_refused(client: Client) -> None:
    """A host that no longer has the kind of key that is known is unknown, and what is known is named."""
    other = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjE="
    client.configure(known=f"{client.sshd.name} {other}\n")
    error = client.refusal(client.host())
    assert "is unknown" in error.message
    assert f"{client.known_hosts}:1 holds ecdsa-sha2-nistp521" in error.message


def test_revoked_key_is_refused_though_it_is_known_too(client: Client) -> None:
    """A @revoked line wins over one that vouches."""
    client.configure(known=client.sshd.known() + client.sshd.known(name="*", marker="@revoked "))
    error = client.refusal(client.host())
    assert "is revoked" in error.message
    assert f"{client.known_hosts}:2" in error.message


def test_certificate_authority_alone_is_refused_clearly(client: Client) -> None:
    """A host known through a certificate authority only is refused as such."""
    client.configure(known=client.sshd.known(name="*", marker="@cert-authority "))
    assert "certificate authority" in client.refusal(client.host()).message


def test_nothing_of_ours_is_offered_to_an_unknown_host(client: Client) -> None:
    """The host key is judged before authentication begins: sshd has not even learned a user's name."""
    log = client.sshd.folder / "sshd.log"
    before = len(log.read_bytes())
    client.configure(known="")
    client.refusal(client.host())
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
    assert f"cannot read {client.known_hosts}" in client.refusal(client.host()).message


def test_strangers_key_is_refused_with_what_was_tried(client: Client, ssh_keys: Path) -> None:
    """When no key is accepted, each one that was offered is named."""
    client.configure(keys=(ssh_keys / "bad1", ssh_keys / "bad2"))
    error = client.refusal(client.host())
    assert f"accepts none of our keys (offered {ssh_keys}/bad1, {ssh_keys}/bad2)" in error.message
    assert "ssh-copy-id" in (error.hint or "")


def test_no_key_at_all_is_told(client: Client) -> None:
    """Without any key the hint says how to make or name one."""
    client.configure(keys=(client.folder / "nothing",))
    error = client.refusal(client.host())
    assert "no key was offered" in error.message
    assert "ssh-keygen" in (error.hint or "")


def test_locked_key_is_told_and_never_asked_for(client: Client, ssh_keys: Path) -> None:
    """A key with a passphrase is named as such; the hint is an agent."""
    client.configure(keys=(ssh_keys / "locked",))
    error = client.refusal(client.host())
    assert f"{ssh_keys}/locked (locked by a passphrase)" in error.message
    assert "ssh-add" in (error.hint or "")


def test_host_that_hangs_up_on_too_many_keys_is_told(strict_sshd: Sshd, client: Client, ssh_keys: Path) -> None:
    """MaxAuthTries in the middle of our keys is told apart from a refusal of them all."""
    client.sshd = strict_sshd
    client.configure(keys=(*(ssh_keys / f"bad{number}" for number in (1, 2, 3)), ssh_keys / "good"))
    error = client.refusal(client.host())
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
    assert client.answers(client.host())


def test_agent_of_the_environment_is_used(
    client: Client, ssh_keys: Path, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSH_AUTH_SOCK is followed where ssh_config says nothing else, for keys that no file names."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    client.configure("IdentityAgent SSH_AUTH_SOCK", keys=(ssh_keys / "bad2",))
    assert client.answers(client.host())


def test_identities_only_keeps_the_agents_other_keys_back(client: Client, ssh_keys: Path, agent: Path) -> None:
    """With IdentitiesOnly the agent's keys that no file names are not offered."""
    client.configure(f"IdentityAgent {agent}", "IdentitiesOnly yes", keys=(ssh_keys / "bad2",))
    assert f"(offered {ssh_keys}/bad2)" in client.refusal(client.host()).message
