"""A host's disk: a small file system laid over the shared base image. It outlives reboots and power cuts, not the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.fleet import image, network
from tests.fleet.enclosure import Enclosure
from tests.fleet.keys import KeyPair

SIZE = "2g"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"


@dataclass(frozen=True, slots=True)
class Disk:
    """Where a host's files lie in the room."""

    folder: Path

    @property
    def root(self) -> Path:
        """Return the host's root folder, as systemd-nspawn takes it."""
        return self.folder / "root"


def make(enclosure: Enclosure, folder: Path, base: Path, first_files: dict[str, str]) -> Disk:
    """Make a host's disk with these files on it beside the base image's; names of private keys get mode 0600."""
    disk = Disk(folder)
    enclosure.in_room(["mkdir", "-p", str(folder)])
    enclosure.in_room(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)])
    enclosure.in_room(["mkdir", *(str(folder / part) for part in ("upper", "work", "root"))])
    options = f"lowerdir={base},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    enclosure.in_room(["mount", "-t", "overlay", "-o", options, "overlay", str(disk.root)])
    root = enclosure.room_path(disk.root)
    for name, text in first_files.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600 if name == HOST_KEY else 0o644)
    return disk


def first_files(host: str, hosts: tuple[str, ...], host_key: KeyPair, operator_key: str) -> dict[str, str]:
    """Return what makes a host this one: its name, address, key and who may enter."""
    return {
        "/etc/hostname": f"{host}\n",
        "/etc/hosts": network.hosts_file(hosts),
        "/etc/systemd/network/10-fleet.network": network.networkd_file(host),
        HOST_KEY: host_key.private,
        f"{HOST_KEY}.pub": host_key.public,
        "/root/.ssh/authorized_keys": operator_key,
        f"/home/{image.ORDINARY_USER}/.ssh/authorized_keys": operator_key,
    }
