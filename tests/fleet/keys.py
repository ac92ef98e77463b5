"""SSH as an operator would have it: a key, a config that knows the hosts, a known_hosts with their keys.

The config is a plain person's: it sets no StrictHostKeyChecking, so that a program under test must refuse unknown keys by itself.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.fleet import network


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key's text and its public half, one line."""

    private: str
    public: str


@dataclass(frozen=True, slots=True)
class Operator:
    """The folder that stands for the operator's home, and the SSH files in it."""

    home: Path

    @property
    def identity(self) -> Path:
        """Return the private key that every host knows."""
        return self.home / ".ssh" / "id_ed25519"

    @property
    def config(self) -> Path:
        """Return the client's configuration."""
        return self.home / ".ssh" / "config"

    @property
    def known_hosts(self) -> Path:
        """Return the file of known host keys."""
        return self.home / ".ssh" / "known_hosts"

    def trust(self, host_keys: dict[str, KeyPair]) -> None:
        """Write known_hosts anew, with exactly these hosts, by name and by address."""
        lines = [f"{host},{network.address(host)} {_bare(pair.public)}\n" for host, pair in host_keys.items()]
        self.known_hosts.write_text("".join(lines))


def make_operator(home: Path, hosts: tuple[str, ...]) -> tuple[Operator, str]:
    """Make the operator's home with a new key; return it and the public key."""
    operator = Operator(home)
    operator.identity.parent.mkdir(parents=True, mode=0o700)
    pair = generate(operator.identity, comment="operator")
    known = f"UserKnownHostsFile {operator.known_hosts}"
    blocks = [f"Host {host}\n    HostName {network.address(host)}\n    User root\n" for host in hosts]
    operator.config.write_text("".join([*blocks, f"Host *\n    IdentityFile {operator.identity}\n    {known}\n"]))
    return operator, pair.public


def generate(path: Path, *, comment: str) -> KeyPair:
    """Make a key pair at the path and return it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)], check=True)
    return read(path)


def read(path: Path) -> KeyPair:
    """Return the key pair at the path."""
    return KeyPair(path.read_text(), path.with_name(f"{path.name}.pub").read_text())


def passwd_of(home: Path) -> str:
    """Return the machine's passwd with root living in `home`: OpenSSH finds ~/.ssh there, whatever $HOME says."""
    lines = []
    for line in Path("/etc/passwd").read_text().splitlines():
        fields = line.split(":")
        if len(fields) == 7 and fields[2] == "0":
            fields[5] = str(home)
        lines.append(":".join(fields))
    return "\n".join(lines) + "\n"


def _bare(public: str) -> str:
    return " ".join(public.split()[:2])
