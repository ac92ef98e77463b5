"""Keep a server's releases: each a folder written whole or not at all, named by `current` and `previous`, checked by its manifest.

A manifest is the operator's (specctl/rollout/release.py): `files` holds SHA-256 sums, `secrets` HMACs under `salt`, `units` the
main file of each algo.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from specctl.host import files, lease
from specctl.host.wire import REMOTE_COMMAND, USAGE, Args, Call, OpError

MANIFEST = "manifest.json"
RELEASES = "releases"
CURRENT = "current"
PREVIOUS = "previous"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
# A file of a plugin lies in folders of its own, and Python's names may begin with an underscore.
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
DEEPEST = 8
FILE_MODE = 0o644
MANIFEST_MODE = 0o600
FOLDER_MODE = 0o755


class Pointed(NamedTuple):
    """What a link names: a release's id, its algo (None: the manifest does not say) and its main file."""

    id: str
    algo: Optional[str]
    file: str


def checked(name: str) -> str:
    """Return a release's or file's name, or refuse one that could leave its folder."""
    if not NAME.match(name):
        raise OpError(USAGE, f"{name!r} is no name of a release or of its file")
    return name


def checked_path(name: str) -> str:
    """Return the path of a release's file within it, or refuse one that could leave its folder."""
    parts = name.split("/")
    if len(parts) > DEEPEST or not all(PART.match(part) for part in parts):
        raise OpError(USAGE, f"{name!r} is no name of a release's file")
    return name


def place(folder: str, release: str) -> str:
    """Return the folder of a release."""
    return os.path.join(folder, RELEASES, checked(release))


def manifest(folder: str, release: str) -> Optional[Mapping[str, object]]:
    """Return a release's manifest, or None when it is absent or cannot be read."""
    return files.read_object(os.path.join(place(folder, release), MANIFEST))


def ids(folder: str) -> List[str]:
    """Return the releases there are, in the order of their numbers and names."""
    try:
        names = os.listdir(os.path.join(folder, RELEASES))
    except FileNotFoundError:
        return []
    return sorted(
        (name for name in names if NAME.match(name)), key=lambda name: (int(name) if name.isdigit() else -1, name)
    )


def pointed(folder: str, link: str = CURRENT) -> Optional[Pointed]:
    """Return what `current` (or `previous`) names, or None where there is no such link."""
    try:
        parts = os.readlink(os.path.join(folder, link)).split("/")
    except FileNotFoundError:
        return None
    if len(parts) != 3 or parts[0] != RELEASES:
        return None
    units = (manifest(folder, parts[1]) or {}).get("units")
    algos = [str(algo) for algo, name in units.items() if name == parts[2]] if isinstance(units, dict) else []
    return Pointed(parts[1], algos[0] if algos else None, parts[2])


def address(folder: str, asked: Args) -> Tuple[Optional[int], Optional[str]]:
    """Return port and bind of what `current` names, by its manifest; those asked for where it does not say."""
    named = pointed(folder)
    said = Args((manifest(folder, named.id) if named else None) or {})
    try:
        port, bind = said.whole_or_none("port"), said.text_or_none("bind")
    except OpError:
        port, bind = None, None
    return port or asked.whole_or_none("port"), bind or asked.text_or_none("bind")


def main_file(folder: str, release: str, algo: str) -> str:
    """Return the name of an algo's main file in a release, or refuse when it has none."""
    found = manifest(folder, release)
    if found is None:
        raise OpError(
            REMOTE_COMMAND, f"there is no release {release} in {folder}", hint="specctl history --host H shows them"
        )
    units = found.get("units")
    name = units.get(algo) if isinstance(units, dict) else None
    if not isinstance(name, str):
        raise OpError(
            REMOTE_COMMAND,
            f"release {release} cannot run {algo}",
            hint="specctl deploy --host H makes a release that can",
        )
    return checked(name)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def damage(folder: str, release: str) -> List[str]:
    """Name what of a release differs from its manifest; empty: it is whole."""
    found = manifest(folder, release)
    if found is None:
        return [f"{MANIFEST} is missing or cannot be read"]
    return _differences(folder, release, found)


def _differences(folder: str, release: str, found: Mapping[str, object]) -> List[str]:
    salt = found.get("salt")
    problems = []
    for name, expected in {**_mapping(found.get("files")), **_mapping(found.get("secrets"))}.items():
        content = files.read(os.path.join(place(folder, release), checked_path(str(name))))
        if content is None:
            problems.append(f"{name} is missing")
            continue
        plain = name in _mapping(found.get("files"))
        digest = files.sha256(content) if plain else hmac.new(str(salt).encode(), content, hashlib.sha256).hexdigest()
        if digest != expected:
            problems.append(f"{name} differs from the manifest")
    return problems


def _sweep(folder: str) -> None:
    """Remove what interrupted writes left; we hold the lease, so nobody is writing."""
    home = os.path.join(folder, RELEASES)
    for name in os.listdir(home):
        if name.startswith(files.TEMPORARY):
            files.remove_tree(os.path.join(home, name))


def fill(target: str, rows: List[Args]) -> None:
    """Write files into a folder, and the folders that their names are in; durable."""
    names = [checked_path(row.text("name")).split("/") for row in rows]
    folders = sorted({"/".join(parts[:depth]) for parts in names for depth in range(1, len(parts))})
    for folder in folders:
        os.mkdir(os.path.join(target, folder), FOLDER_MODE)
    for row in rows:
        content = row.text_or_none("content") or ""
        path = os.path.join(target, row.text("name"))
        files.write_new(path, content.encode("utf-8"), row.whole("mode", FILE_MODE), row.text_or_none("owner"))
    for folder in folders:
        os.chmod(os.path.join(target, folder), FOLDER_MODE)
        files.sync_dir(os.path.join(target, folder))


def _fill(target: str, rows: List[Args], text: bytes) -> None:
    os.mkdir(target, 0o700)
    fill(target, rows)
    # The HMACs of secrets are for the operator alone: a weak secret could be guessed by whoever reads them.
    files.write_new(os.path.join(target, MANIFEST), text, MANIFEST_MODE)
    os.chmod(target, FOLDER_MODE)
    files.sync_dir(target)


def write(call: Call) -> Mapping[str, object]:
    """Write a release so that it is there whole or not at all; the same one again changes nothing."""
    args = call.args
    folder, release = args.path("dir"), checked(args.text("id"))
    rows = args.parts("files")
    if any(row.text("name") == MANIFEST for row in rows):
        raise OpError(USAGE, f"a release's file cannot be named {MANIFEST}")
    given = args.part("manifest").fields
    target = place(folder, release)
    if os.path.isdir(target):
        return _again(folder, release, given)
    home = os.path.join(folder, RELEASES)
    os.makedirs(home, mode=FOLDER_MODE, exist_ok=True)
    _sweep(folder)
    temporary = os.path.join(home, f"{files.TEMPORARY}{release}")
    try:
        _fill(temporary, rows, json.dumps(given, indent=1, sort_keys=True).encode("utf-8") + b"\n")
        with lease.fenced(folder, args.whole("token", 0)):
            os.rename(temporary, target)
            files.sync_dir(home)
    except BaseException:
        files.remove_tree(temporary)
        raise
    problems = damage(folder, release)
    if problems:
        raise OpError(USAGE, f"release {release} does not fit its own manifest: {problems[0]}")
    return {"written": True, "id": release}


def _again(folder: str, release: str, given: Mapping[str, object]) -> Mapping[str, object]:
    """Accept a release that is there already when what lies there is what was asked for."""
    found = manifest(folder, release) or {}
    if found.get("units") == given.get("units") and not _differences(folder, release, given):
        return {"written": False, "id": release}
    problems = damage(folder, release)
    if problems:
        raise OpError(
            REMOTE_COMMAND,
            f"release {release} is damaged: {problems[0]}",
            hint="specctl deploy --host H writes a new one",
        )
    raise OpError(
        REMOTE_COMMAND,
        f"release {release} is there already and is another one",
        hint="run the command again: it takes the next number",
    )


def _row(folder: str, release: str) -> Dict[str, object]:
    return {"id": release, "manifest": manifest(folder, release)}


def listing(call: Call) -> Mapping[str, object]:
    """List the releases with their manifests, and what `current` and `previous` name."""
    folder = call.args.path("dir")
    found: Dict[str, object] = {"releases": [_row(folder, release) for release in ids(folder)]}
    for link in (CURRENT, PREVIOUS):
        named = pointed(folder, link)
        found[link] = None if named is None else {"id": named.id, "algo": named.algo}
    return found


def read(call: Call) -> Mapping[str, object]:
    """Return a release's manifest and the text of its files; of secret ones only the names, of plugins nothing."""
    folder, release = call.args.path("dir"), call.args.text("id")
    found = manifest(folder, release)
    if found is None:
        raise OpError(
            REMOTE_COMMAND, f"there is no release {release} in {folder}", hint="specctl history --host H shows them"
        )
    names = [checked_path(str(name)) for name in _mapping(found.get("files")) if "/" not in str(name)]
    texts = {name: files.read_text(os.path.join(place(folder, release), name)) for name in names}
    return {"id": release, "manifest": found, "files": texts, "secrets": sorted(_mapping(found.get("secrets")))}


def verify(call: Call) -> Mapping[str, object]:
    """Compare a release with its manifest."""
    problems = damage(call.args.path("dir"), call.args.text("id"))
    return {"whole": not problems, "problems": problems}


def prune(call: Call) -> Mapping[str, object]:
    """Remove the oldest releases beyond `keep`; never the current, the previous or a pinned one."""
    args = call.args
    folder = args.path("dir")
    keep = max(0, args.whole("keep", 5))
    named = [pointed(folder, link) for link in (CURRENT, PREVIOUS)]
    safe = {found.id for found in named if found} | set(args.texts("pinned"))
    there = ids(folder)
    doomed = [release for release in there[: len(there) - keep] if release not in safe] if len(there) > keep else []
    home = os.path.join(folder, RELEASES)
    for release in doomed:
        hidden = os.path.join(home, f"{files.TEMPORARY}gone-{release}")
        with lease.fenced(folder, args.whole("token", 0)):
            os.rename(place(folder, release), hidden)
        files.remove_tree(hidden)
    if doomed:
        files.sync_dir(home)
    return {"removed": doomed, "kept": ids(folder)}
