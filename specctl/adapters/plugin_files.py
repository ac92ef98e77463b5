"""The engine's plugins that specctl carries to a host: their files as a release holds them, read where specctl is installed."""

from __future__ import annotations

import functools
import importlib.util
from email.parser import HeaderParser
from pathlib import Path

from specctl.engines._command import PLUGIN_FOLDER
from specctl.errors import UnsupportedError
from specctl.rollout.release import ReleaseFile

# Inside the package, since a folder of this kind beside it would make it a distribution of this very environment.
METADATA = "dist-info"


@functools.cache
def of(package: str) -> tuple[ReleaseFile, ...]:
    """Return a plugin's files, with the metadata by which an engine finds it; the package is not imported.

    Raises UnsupportedError where it was not installed with specctl.
    """
    found = importlib.util.find_spec(package)
    places = list(found.submodule_search_locations or ()) if found is not None else []
    metadata = Path(places[0]) / METADATA if places else None
    if metadata is None or not (metadata / "METADATA").is_file():
        raise UnsupportedError(
            f"the plugin {package} is not installed with specctl",
            hint="install specctl-fleet again: its wheel holds it",
        )
    home = metadata.parent
    version = HeaderParser().parsestr((metadata / "METADATA").read_text(encoding="utf-8"))["Version"]
    modules = [(f"{package}/{path.relative_to(home).as_posix()}", path) for path in sorted(home.rglob("*.py"))]
    described = [(f"{package}-{version}.dist-info/{path.name}", path) for path in sorted(metadata.iterdir())]
    return tuple(
        ReleaseFile(name=f"{PLUGIN_FOLDER}/{name}", content=path.read_text(encoding="utf-8"))
        for name, path in (*modules, *described)
    )
