"""What hosts share, read-only and at the same paths: the checkout, its interpreter, and what a fleet asks for beside these."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from tests.fleet.enclosure import CHECKOUT

# Mounting these over a host's own would replace its operating system. An environment that stands on the system's Python runs on the
# host's own one then, where both are the same version; fleet.py proves that the interpreter runs before it hands hosts out.
SYSTEM_FOLDERS = frozenset({Path("/"), Path("/usr")})


def folders(extra: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Return the folders to mount, the extra ones among them, outermost only."""
    wanted = {
        CHECKOUT,
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.executable).resolve().parents[1],
        *extra,
    } - SYSTEM_FOLDERS
    return tuple(sorted(path for path in wanted if not any(other in path.parents for other in wanted)))


def nspawn_arguments(extra: Iterable[Path] = ()) -> list[str]:
    """Return the arguments of systemd-nspawn that mount them."""
    return [f"--bind-ro={folder}" for folder in folders(extra)]
