"""What hosts share, read-only and at the same paths: the checkout, the virtual environment, its base interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fleet.enclosure import CHECKOUT
from tests.fleet.waiting import FleetError

# Mounting these over a host's own would replace its operating system.
SYSTEM_FOLDERS = frozenset({Path("/"), Path("/usr"), Path("/usr/local")})


def folders() -> tuple[Path, ...]:
    """Return the folders to mount, outermost only."""
    interpreter = Path(sys.base_prefix)
    if interpreter in SYSTEM_FOLDERS:
        raise FleetError(
            f"the virtual environment stands on the system's Python in {interpreter}, which hosts cannot share: "
            "make it with a Python of its own folder (uv venv --managed-python, pyenv)"
        )
    wanted = {CHECKOUT, Path(sys.prefix), interpreter, Path(sys.executable).resolve().parents[1]}
    return tuple(sorted(path for path in wanted if not any(other in path.parents for other in wanted)))


def nspawn_arguments() -> list[str]:
    """Return the arguments of systemd-nspawn that mount them."""
    return [f"--bind-ro={folder}" for folder in folders()]
