"""Find the versions of an interpreter's packages by looking at its folders, without starting it (importing torch takes seconds)."""

from __future__ import annotations

import glob
import os
import re
from typing import Dict, Iterable, List, NamedTuple, Optional

from specctl.host import files

RECORD_BYTES = 16 << 20
CONFIG = "pyvenv.cfg"
SITES = (
    "lib/python3*/site-packages",
    "lib64/python3*/site-packages",
    "local/lib/python3*/dist-packages",
    "lib/python3/dist-packages",
)


class Package(NamedTuple):
    """An installed distribution; the digest covers its list of files and its origin."""

    version: str
    digest: str


def normal(name: str) -> str:
    """Return a distribution's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _settings(prefix: str) -> Optional[Dict[str, str]]:
    text = files.read_text(os.path.join(prefix, CONFIG))
    if text is None:
        return None
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _site_folders(prefix: str) -> List[str]:
    found = [path for pattern in SITES for path in sorted(glob.glob(os.path.join(glob.escape(prefix), pattern)))]
    return list(dict.fromkeys(os.path.realpath(path) for path in found))


def folders(python: str) -> List[str]:
    """Return where an interpreter's packages lie: its virtual environment's folder, or those of the installation it links to."""
    place = python
    for _ in range(40):  # as many links as the kernel follows
        prefix = os.path.dirname(os.path.dirname(place))
        settings = _settings(prefix)
        if settings is not None:
            base = os.path.dirname(settings.get("home", ""))
            system = settings.get("include-system-site-packages", "").lower() == "true"
            return _site_folders(prefix) + (_site_folders(base) if system and base else [])
        if not os.path.islink(place):
            return _site_folders(prefix)
        place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))
    return []


def _package(folder: str, version: str) -> Package:
    parts = [files.read(os.path.join(folder, name), RECORD_BYTES) or b"" for name in ("RECORD", "direct_url.json")]
    return Package(version, files.sha256(version.encode() + b"\0".join(parts)))


def versions(python: str, names: Iterable[str]) -> Dict[str, Optional[Package]]:
    """Return the packages of these names (None: not found); the first folder that has one wins, as on import."""
    wanted = {normal(name): name for name in names}
    found: Dict[str, Optional[Package]] = dict.fromkeys(wanted.values())
    for place in folders(python):
        for entry in sorted(os.listdir(place)):
            stem, ending = os.path.splitext(entry)
            name, _, version = stem.partition("-")
            asked = wanted.get(normal(name))
            if ending == ".dist-info" and version and asked is not None and found[asked] is None:
                found[asked] = _package(os.path.join(place, entry), version)
    return found
