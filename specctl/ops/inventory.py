"""Load an inventory: find its files, read, check, resolve, select; what every command that names a host begins with."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specctl.adapters.records import state_home
from specctl.errors import UsageError
from specctl.fleet.overrides import Overrides
from specctl.fleet.select import Selection, select

if TYPE_CHECKING:
    from specctl.fleet.resolve import Resolved
    from specctl.fleet.types import Fleet, Host, Server

__all__ = [
    "Overrides",
    "Selection",
    "inventory_paths",
    "load",
    "load_fleet",
    "load_selected",
    "write_starter",
]

VARIABLE = "SPECCTL_INVENTORY"
# Where the lab server of `specctl init --lab` listens, or at one of the ports after it.
LAB_PORT = 30100
LAB_PORTS = 100
DEFAULT_PATHS = ("inventory.yaml", "inventory/inventory.yaml")
# Whoever installs a pydantic plug-in did not mean this command, whose start-up it would slow down.
_PLUGINS_OFF = "PYDANTIC_DISABLE_PLUGINS"


def inventory_paths(given: Sequence[str], environ: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return the files to read: those given, else of SPECCTL_INVENTORY, else the first default that exists in the folder."""
    if "" in given:
        raise UsageError("-i is given an empty path", hint="leave -i out, or look at the variable that it was made of")
    if given:
        return tuple(given)
    named = tuple(path for path in environ.get(VARIABLE, "").split(":") if path)
    if named:
        return named
    found = next((path for path in DEFAULT_PATHS if (folder / path).exists()), None)
    if found is None:
        raise UsageError(
            "there is no inventory here", hint="specctl init writes one; -i PATH or SPECCTL_INVENTORY names another"
        )
    return (found,)


def load(paths: Sequence[str] = ()) -> Resolved:
    """Read, check and resolve an inventory; raise InventoryError with every problem of every file."""
    os.environ.setdefault(_PLUGINS_OFF, "__all__")
    from specctl.adapters import inventory_files
    from specctl.fleet import resolve

    files = inventory_paths(paths, os.environ, Path.cwd())
    readings = inventory_files.read_files(files)
    return resolve.resolve(readings, inventory_files.BuiltInProfiles())


def load_fleet(paths: Sequence[str] = ()) -> Fleet:
    """Return the fleet of an inventory, without any command line over it."""
    return load(paths).fleet


def load_selected(
    paths: Sequence[str], selection: Selection, overrides: Overrides | None = None
) -> tuple[tuple[Host, Server], ...]:
    """Return the selected servers with their hosts, the command line's values laid over these servers alone.

    Raises InventoryError, UsageError for a selection or value that cannot be meant, UnsupportedError for an algo that a
    server's engine profile lacks.
    """
    resolved = load(paths)
    selected = select(resolved.fleet, selection)
    return resolved.over(selected, overrides) if overrides else selected


def free_port(first: int = LAB_PORT) -> int:
    """Return the first port of the loopback from `first` on that nobody holds now."""
    for port in range(first, first + LAB_PORTS):
        with socket.socket() as trial, contextlib.suppress(OSError):
            trial.bind(("127.0.0.1", port))
            return port
    return first


def lab_starter() -> str:
    """Return an inventory that works at once: shipped lab models, this interpreter, a free port, a state folder of the user's."""
    folder = Path(__file__).parent
    text = (folder / "starter_lab.yaml").read_text(encoding="utf-8")
    places = {
        "@MODELS@": str(folder.parent / "lab" / "models"),
        "@STATE@": str(state_home() / "local"),
        "@PYTHON@": sys.executable,
        "@PORT@": str(free_port()),
    }
    for word, place in places.items():
        text = text.replace(word, place)
    return text


def write_starter(target: Path, *, lab: bool = False, force: bool = False) -> None:
    """Write a commented starter inventory; raise UsageError where a file stands already, unless forced."""
    text = lab_starter() if lab else (Path(__file__).parent / "starter.yaml").read_text(encoding="utf-8")
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        if target.is_dir():
            raise UsageError(f"{target} is a folder", hint=f"specctl init {target / DEFAULT_PATHS[0]}") from error
        raise UsageError(f"{target} exists already", hint=f"specctl init --force {target} writes over it") from error
    except OSError as error:
        hint = f"mkdir -p {target.parent}" if isinstance(error, FileNotFoundError) else "name another place"
        raise UsageError(f"{target} cannot be written: {error.strerror}", hint=hint) from error
