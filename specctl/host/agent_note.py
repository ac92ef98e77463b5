"""Keep what the agent is told of a server: its note, a calibration, and the keys that it needs, readable by its group alone."""

from __future__ import annotations

import grp
import os
import shutil
from typing import Dict, List, Mapping, Optional

from specctl.host import files, lease
from specctl.host.releases import checked
from specctl.host.wire import Args, Call

FOLDER = "agent"
KEYS = "keys"
NOTE = "server.json"
CALIBRATION = "calibration.json"
GROUP = "specctl-agent"
PLAIN_MODE = 0o644
FOLDER_MODE = 0o755


def _group() -> Optional[int]:
    """Return the agent's group; None where no agent was installed yet."""
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return None


def _texts(args: Args) -> Dict[str, Optional[str]]:
    return {NOTE: args.text("text"), CALIBRATION: args.text_or_none("calibration")}


def _keys(args: Args) -> Dict[str, Optional[str]]:
    """Return the keys by name; None: it could not be read on the operator's machine, so that what is here stays."""
    given = args.part("keys")
    return {checked(name): given.text_or_none(name) for name in given.fields}


def _changes(folder: str, args: Args) -> List[str]:
    """Name what would be different."""
    found = [
        name
        for name, text in _texts(args).items()
        if files.read(os.path.join(folder, name)) != (None if text is None else text.encode("utf-8"))
    ]
    keys = _keys(args)
    there = _there(folder)
    changed = [
        name
        for name, value in keys.items()
        if value is not None and files.read_text(os.path.join(folder, KEYS, name)) != value
    ]
    if changed or [name for name in there if name not in keys]:
        found.append(KEYS)
    return found


def _there(folder: str) -> List[str]:
    try:
        return [name for name in os.listdir(os.path.join(folder, KEYS)) if not name.startswith(files.TEMPORARY)]
    except FileNotFoundError:
        return []


def compare(call: Call) -> Mapping[str, object]:
    """Name what a note would change; changes nothing."""
    return {"changed": _changes(os.path.join(call.args.path("dir"), FOLDER), call.args)}


def write(call: Call) -> Mapping[str, object]:
    """Write the note, the keys first: who finds a new note finds its keys too."""
    args = call.args
    home = args.path("dir")
    folder = os.path.join(home, FOLDER)
    with lease.fenced(home, args.whole("token", 0)):
        changed = _changes(folder, args)
        os.makedirs(os.path.join(folder, KEYS), mode=0o700, exist_ok=True)
        os.chmod(folder, FOLDER_MODE)
        _write_keys(folder, _keys(args))
        share(folder)
        for name, text in _texts(args).items():
            path = os.path.join(folder, name)
            if text is None:
                files.remove(path)
            elif name in changed:
                files.replace(path, text.encode("utf-8"), PLAIN_MODE)
        files.sync_dir(folder)
    return {"changed": changed}


def _write_keys(folder: str, keys: Mapping[str, Optional[str]]) -> None:
    for name, value in keys.items():
        if value is not None:
            files.replace(os.path.join(folder, KEYS, name), value.encode("utf-8"), 0o600)
    for name in _there(folder):
        if name not in keys:
            files.remove(os.path.join(folder, KEYS, name))


def share(folder: str) -> None:
    """Let the agent's group read the keys in a server's agent folder; without that group they stay root's alone."""
    group = _group()
    keys = os.path.join(folder, KEYS)
    if group is None or os.geteuid() != 0 or not os.path.isdir(keys):
        return
    os.chown(keys, 0, group)
    os.chmod(keys, 0o750)  # noqa: S103  # its group is the agent's alone, which has to read them
    for name in _there(folder):
        os.chown(os.path.join(keys, name), 0, group, follow_symlinks=False)
        os.chmod(os.path.join(keys, name), 0o640)


def share_all(state_dir: str) -> None:
    """Do so for every server there is; called when the agent is installed after its servers were deployed."""
    try:
        names = os.listdir(state_dir)
    except FileNotFoundError:
        return
    for name in names:
        share(os.path.join(state_dir, name, FOLDER))


def forget(home: str) -> List[str]:
    """Remove what the agent was told of a server that is taken off the host."""
    folder = os.path.join(home, FOLDER)
    if not os.path.isdir(folder):
        return []
    shutil.rmtree(folder)
    return [FOLDER]
