"""Make a release and algo the one that runs next: unit file, `current` link and the service manager's knowledge of them.

Order, so that every crash leaves a whole release named: unit file, note of the activation, `previous`, `current`, reload. A
difference between unit file and `current` is an interrupted activation: facts call it drift, the next one mends it.
"""

from __future__ import annotations

import json
import os
from typing import Dict, List, Mapping, Optional

from specctl.host import clock, files, lease, procs, releases, services
from specctl.host.states import State
from specctl.host.wire import REMOTE_COMMAND, Call, OpError

NOTE = "activated.json"
LINK = "{releases}/{id}/{file}"


def _content(folder: str, release: str, name: str) -> bytes:
    """Return the main file of a release that is whole."""
    problems = releases.damage(folder, release)
    if problems:
        raise OpError(
            REMOTE_COMMAND,
            f"release {release} is damaged: {problems[0]}",
            hint="specctl deploy --host H writes a new one",
        )
    content = files.read(os.path.join(releases.place(folder, release), name))
    assert content is not None, "a release that is whole has its main file"
    return content


def _target(named: releases.Pointed) -> str:
    return LINK.format(releases=releases.RELEASES, id=named.id, file=named.file)


def activate(call: Call) -> Mapping[str, object]:
    """Point `current` at a release's algo and tell the service manager; nothing is started or stopped."""
    args = call.args
    folder, release, algo = args.path("dir"), args.text("id"), args.text("algo")
    service = services.of(args)
    name = releases.main_file(folder, release, algo)
    content = _content(folder, release, name)
    service.check()
    before = releases.pointed(folder)
    after = releases.Pointed(release, algo, name)
    same = before == after and service.installed() in (None, content)
    with lease.fenced(folder, args.whole("token", 0)):
        service.install(content)
        if not same:
            note = {"boot": clock.boot_id(), "at_s": clock.boottime_s(), "id": release, "algo": algo}
            files.replace(os.path.join(folder, NOTE), json.dumps(note).encode("ascii"), 0o644)
        if before is not None and before != after:
            files.replace_link(os.path.join(folder, releases.PREVIOUS), _target(before))
        files.replace_link(os.path.join(folder, releases.CURRENT), _target(after))
    service.reload()
    was: Optional[Dict[str, object]] = None if before is None else {"id": before.id, "algo": before.algo}
    return {"changed": not same, "previous": was}


def older(folder: str, named: releases.Pointed, state: State) -> Optional[str]:
    """Say so when the running process began before the current release was activated."""
    note = files.read_object(os.path.join(folder, NOTE))
    if note is None or state.main_pid is None or note.get("boot") != clock.boot_id():
        return None
    if (note.get("id"), note.get("algo")) != (named.id, named.algo):
        return None  # It speaks of an activation that did not come to its end.
    began, at_s = procs.started(state.main_pid), note.get("at_s")
    if began is None or not isinstance(at_s, (int, float)) or began * procs.TICK_S >= at_s - procs.TICK_S:
        return None
    return "the running process began before the current release was activated"


def drift(folder: str, service: services.Service, state: State) -> List[str]:
    """Say in which ways the host differs from what its `current` release says; empty: in none."""
    named = releases.pointed(folder)
    if named is None:
        return ["a unit is installed without a release"] if service.installed() is not None else []
    found = releases.damage(folder, named.id)
    content = files.read(os.path.join(releases.place(folder, named.id), named.file))
    installed = service.installed()
    if service.kind == services.SYSTEMD and installed != content:
        found.append(
            "the unit file is missing" if installed is None else "the unit file differs from the current release"
        )
    if state.needs_reload:
        found.append("systemd has not read the unit file's last change")
    stale = older(folder, named, state)
    return [*found, stale] if stale else found
