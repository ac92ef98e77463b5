"""What a machine needs to run test hosts. Says what is missing and how to get it; changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fleet import image

PACKAGE_OF = {
    "systemd-nspawn": "systemd-container",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mount": "mount",
}
BUILD_PACKAGE_OF = {"mmdebstrap": "mmdebstrap"}


def missing() -> tuple[str, ...]:
    """Return why this machine cannot run test hosts, one sentence a reason; nothing when it can."""
    if not sys.platform.startswith("linux"):
        return ("test hosts need Linux",)
    if os.geteuid() != 0:
        return ("test hosts need root (systemd-nspawn, namespaces)",)
    return (*_missing_programs(), *_missing_rights())


def _missing_programs() -> tuple[str, ...]:
    wanted = dict(PACKAGE_OF)
    if not image.is_built():
        wanted |= BUILD_PACKAGE_OF
    packages = sorted({package for program, package in wanted.items() if shutil.which(program) is None})
    if not packages:
        return ()
    return (f"programs are missing: apt-get install {' '.join(packages)}",)


def _missing_rights() -> tuple[str, ...]:
    reasons = []
    if "overlay" not in Path("/proc/filesystems").read_text().split():
        loaded = shutil.which("modprobe") and subprocess.run(["modprobe", "overlay"], capture_output=True, check=False)
        if not loaded or loaded.returncode != 0:
            reasons.append("the kernel has no overlay file system")
    if shutil.which("unshare"):
        probe = ["unshare", "--net", "--mount", "--pid", "--fork", "true"]
        attempt = subprocess.run(probe, capture_output=True, text=True, check=False)
        if attempt.returncode != 0:
            reasons.append(f"namespaces cannot be made here: {attempt.stderr.strip()}")
    return tuple(reasons)
