"""The hosts' base image: Debian bookworm with systemd, sshd and python3, built once and cached.

The cache is keyed by a digest of the recipe below, built under a lock in a folder of its own and renamed when whole, so that a
build that was interrupted is never used. Nothing writes to a finished image: hosts lay an overlay over it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fleet.waiting import FleetError

# Newer systemd than bookworm's 252 refuses to boot where the controllers are on cgroup v1.
SUITE = "bookworm"
PACKAGES = ("dbus", "iproute2", "openssh-server", "procps", "python3", "sudo", "systemd", "systemd-sysv")
# The host's first program. Under cgroup v1, nspawn leaves the controllers read-only; a real host counts memory and tasks.
INIT = "/usr/lib/specctl-fleet/init"
ECHO = "/usr/lib/specctl-fleet/echo"
ORDINARY_USER = "ops"

FILES = {
    INIT: """#!/bin/sh
for controller in memory pids; do
    mount -o remount,rw,bind "/sys/fs/cgroup/$controller" 2>/dev/null
done
exec /lib/systemd/systemd "$@"
""",
    # Prints what it was started with, for echo_unit.py: short lines, since the journal cuts long ones and drops trailing spaces.
    ECHO: r"""#!/usr/bin/python3 -I
import base64, json
def strings(name):
    with open("/proc/self/" + name, "rb") as file:
        return [part.decode("utf-8", "surrogateescape") for part in file.read().split(b"\0")[:-1]]
seen = {"argv": strings("cmdline")[2:], "environ": strings("environ")}
text = base64.b64encode(json.dumps(seen).encode()).decode()
for start in range(0, len(text), 4000):
    print("echo:" + text[start:start + 4000])
print("echo.", flush=True)
""",
    "/etc/ssh/sshd_config.d/fleet.conf": """HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
PrintMotd no
MaxStartups 100:30:200
MaxSessions 100
""",
    "/etc/systemd/journald.conf.d/fleet.conf": """[Journal]
Storage=persistent
RateLimitIntervalSec=0
RateLimitBurst=0
SystemMaxUse=128M
ForwardToConsole=no
""",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
EXECUTABLE = frozenset({INIT, ECHO})

# Run inside the new image. /root is passable so that services of ordinary users reach an interpreter that is mounted below it.
SETUP = f"""set -e
useradd --create-home --uid 1000 --shell /bin/bash {ORDINARY_USER}
mkdir -p -m 700 /root/.ssh /home/{ORDINARY_USER}/.ssh
chown {ORDINARY_USER}: /home/{ORDINARY_USER}/.ssh
chmod 711 /root
systemctl enable ssh.service systemd-networkd.service
systemctl mask console-getty.service getty@.service systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer \
    dpkg-db-backup.timer e2scrub_all.timer fstrim.timer systemd-networkd.socket
rm -f /etc/ssh/ssh_host_* /etc/motd
: > /etc/machine-id
"""


def cache_folder() -> Path:
    """Return the folder of finished images, by the XDG convention."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "specctl-fleet"


def digest() -> str:
    """Name the recipe: any change of it asks for another image."""
    recipe = repr((SUITE, PACKAGES, sorted(FILES.items()), sorted(EXECUTABLE), SETUP))
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def path() -> Path:
    """Return where the image of this recipe lies, built or not."""
    return cache_folder() / f"{SUITE}-{digest()}"


def is_built() -> bool:
    """Say whether the image of this recipe is in the cache."""
    return path().is_dir()


def ensure() -> Path:
    """Return the image's root folder, building it first where the cache lacks it (about half a minute, once)."""
    image = path()
    if image.is_dir():
        return image
    with _locked(cache_folder()):
        if not image.is_dir():
            _build(image)
    return image


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(image: Path) -> None:
    for leftover in image.parent.glob("building-*"):
        shutil.rmtree(leftover)
    print(f"building the test hosts' image in {image} (once, about half a minute)", file=sys.stderr)
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=image.parent))
    root = scratch / "root"
    include = f"--include={','.join(PACKAGES)}"
    try:
        _checked(["mmdebstrap", "--mode=root", "--variant=minbase", include, "--format=directory", SUITE, str(root)])
        _write_files(root)
        _checked(["chroot", str(root), "/bin/sh", "-c", SETUP])
        root.rename(image)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_files(root: Path) -> None:
    for name, text in FILES.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if name in EXECUTABLE else 0o644)


def _checked(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise FleetError(
            f"building the hosts' image: {argv[0]} failed ({done.returncode}): {done.stderr.strip()[-2000:]}"
        )
