"""Make a built version of the agent the one that runs, or take the agent off the host: user, folders, units, link, start."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
from typing import List, Mapping, Optional

from specctl.host import agent_note, agent_place, agent_wheels, commands, files, hello
from specctl.host.agent_place import CONFIG, CURRENT, UNIT
from specctl.host.wire import LOCK_HELD, REMOTE_COMMAND, UNSUPPORTED, USAGE, Args, Call, OpError

USER = "specctl-agent"
GROUP = "specctl"
UNIT_DIR = "/etc/systemd/system"
STATE = "/var/lib/specctl-agent"
INTENTS = "intents.jsonl"
COMMAND = "/usr/local/bin/specctl-agent"
OURS = ("specctl-agent.", "specctl-agent-actuate.")
SYSTEMCTL_S = 90.0
USERS_S = 30.0
TAIL_LINES = 12


def activate(call: Call) -> Mapping[str, object]:
    """Point `current` at a version, write its units and start it; when it does not come up, the version before does again."""
    args = call.args
    prefix, version = args.path("prefix"), args.text("version")
    _required()
    place = os.path.join(prefix, version)
    with agent_wheels.locked(prefix):
        if not agent_wheels.NAME.match(version) or not os.path.exists(os.path.join(place, agent_place.NOTE)):
            raise OpError(USAGE, f"no version {version} is built here", hint="run it again: it is built anew")
        _account()
        before = _current(prefix)
        _keep_units(place, args)
        agent_note.share_all(os.path.expanduser(args.part("config").text("servers")))
        config_before = files.read(CONFIG)
        files.replace(_made(CONFIG), _config(args), 0o644)
        try:
            _point(prefix, version)
        except OpError as error:
            if before is None or before == version:
                raise
            raise OpError(
                REMOTE_COMMAND,
                f"version {version} did not come up, and {_back(prefix, before, config_before)}: {error.message}",
                hint=error.hint,
                status=error.status,
                output=error.output,
            ) from error
        _offer_command(prefix)
        # The same version again: what ran before it is not known here, and stays.
        removed = () if before == version else agent_wheels.prune(prefix, [name for name in (version, before) if name])
    return {"previous": before, "removed": list(removed), "unit": agent_place.unit_state()}


def remove(call: Call) -> Mapping[str, object]:
    """Stop the agent and take it off; `purge` removes its state and its user as well. Servers are left as they are.

    Refused while it has taken requests off a server that it has not let in again: nobody else would.
    """
    args = call.args
    prefix = args.path("prefix")
    _required()
    removed: List[str] = []
    if os.path.isdir(prefix):
        with agent_wheels.locked(prefix):
            names = _unit_files()
            _require_nothing_off()
            commands.run(["systemctl", "disable", "--now", *names], SYSTEMCTL_S)
            removed += [os.path.join(UNIT_DIR, name) for name in names if files.remove(os.path.join(UNIT_DIR, name))]
            _systemctl("daemon-reload")
            commands.run(["systemctl", "reset-failed", *names], SYSTEMCTL_S)
            if os.path.islink(COMMAND) and os.readlink(COMMAND).startswith(prefix + "/"):
                removed += [COMMAND] if files.remove(COMMAND) else []
        shutil.rmtree(prefix)
        removed.append(prefix)
    if args.flag("purge"):
        for path in (STATE, CONFIG):
            if os.path.isdir(path):
                shutil.rmtree(path)
                removed.append(path)
            elif files.remove(path):
                removed.append(path)
        removed += [f"user {USER}"] if commands.run(["userdel", USER], USERS_S).status == 0 else []
    return {"removed": removed}


def _require_nothing_off() -> None:
    """Stop the agent, which lets requests in where it waits for the last ones; start it again, and refuse, where it did not."""
    commands.run(["systemctl", "stop", UNIT], SYSTEMCTL_S)
    off = agent_place.taken_off(files.read(os.path.join(STATE, INTENTS)) or b"")
    if off:
        commands.run(["systemctl", "start", UNIT], SYSTEMCTL_S)
        raise OpError(
            LOCK_HELD,
            f"the agent has taken requests off {', '.join(off)}, and lets them in again once its switch has ended",
            hint="wait for that: specctl agent status --host H; or let them in yourself, and remove "
            + os.path.join(STATE, INTENTS),
        )


def _required() -> None:
    if os.geteuid() != 0:
        raise OpError(
            UNSUPPORTED, "only root can install the agent", hint="set sudo: true for the host in the inventory"
        )
    if hello.systemd_version() is None:
        raise OpError(UNSUPPORTED, "the agent needs systemd, which does not run this host")


def _account() -> None:
    """Make the agent's user, and the group whose members may speak to it, where they are not there."""
    if not _there(grp.getgrnam, GROUP):
        _ran(["groupadd", "--system", GROUP])
    if not _there(pwd.getpwnam, USER):
        _ran(
            [
                "useradd",
                "--system",
                "--user-group",
                "--no-create-home",
                "--home-dir",
                STATE,
                "--shell",
                "/usr/sbin/nologin",
                USER,
            ]
        )


def _there(find: object, name: str) -> bool:
    try:
        find(name)  # type: ignore[operator]  # getpwnam or getgrnam
    except KeyError:
        return False
    return True


def _ran(argv: List[str]) -> None:
    done = commands.run(argv, USERS_S)
    if done.status != 0:
        raise OpError(REMOTE_COMMAND, f"{argv[0]} failed: {done.last_word()}", status=done.status)


def _current(prefix: str) -> Optional[str]:
    try:
        return os.readlink(os.path.join(prefix, CURRENT))
    except OSError:
        return None


def _keep_units(place: str, args: Args) -> None:
    """Keep the version's unit files beside it, so that going back to it later brings them back too."""
    folder = os.path.join(place, agent_wheels.UNITS)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    for each in args.parts("units"):
        name = each.text("name")
        if not name.startswith(OURS) or "/" in name:
            raise OpError(USAGE, f"{name!r} is no unit of the agent")
        files.replace(os.path.join(folder, name), each.text("content").encode(), 0o644)


def _config(args: Args) -> bytes:
    return json.dumps(args.part("config").fields, sort_keys=True, indent=2).encode("ascii") + b"\n"


def _made(path: str) -> str:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    return path


def _unit_files() -> List[str]:
    return sorted(
        name for name in os.listdir(UNIT_DIR) if name.startswith(OURS) and not name.endswith((".d", ".wants"))
    )


def _point(prefix: str, version: str) -> None:
    """Make one version the current one, with its units, and start it; raises OpError with the end of its log."""
    folder = os.path.join(prefix, version, agent_wheels.UNITS)
    wanted = sorted(os.listdir(folder))
    for name in _unit_files():
        if name not in wanted:
            commands.run(["systemctl", "disable", "--now", name], SYSTEMCTL_S)
            files.remove(os.path.join(UNIT_DIR, name))
    for name in wanted:
        files.replace(os.path.join(UNIT_DIR, name), files.read(os.path.join(folder, name)) or b"", 0o644)
    files.replace_link(os.path.join(prefix, CURRENT), version)
    _systemctl("daemon-reload")
    enabled = [name for name in wanted if b"[Install]" in (files.read(os.path.join(folder, name)) or b"")]
    _systemctl("enable", *enabled)
    for name in enabled:
        commands.run(["systemctl", "reset-failed", name], SYSTEMCTL_S)
        _systemctl("restart", name)


def _back(prefix: str, version: str, config: Optional[bytes]) -> str:
    """Make the version before run again, with its settings and units; say whether it does."""
    if config is not None:
        files.replace(CONFIG, config, 0o644)
    try:
        _point(prefix, version)
    except OpError:
        return f"{version} does not run either"
    return f"{version} runs again"


def _systemctl(*words: str) -> None:
    done = commands.run(["systemctl", *words], SYSTEMCTL_S)
    if done.status == 0:
        return
    unit = words[-1] if words[-1].startswith(OURS) else UNIT
    log = commands.run(
        ["journalctl", "--unit", unit, "--lines", str(TAIL_LINES), "--no-pager", "--output", "cat"], USERS_S
    )
    tail = log.stdout.decode("utf-8", "replace")
    reason = agent_place.why_not_up(unit, tail) if words[0] == "restart" else None
    hint = f"journalctl -u {unit}"
    if reason is not None and "Too many open files" in reason:
        hint = "the host has no inotify instance left: raise it, sysctl fs.inotify.max_user_instances=1024"
    raise OpError(
        REMOTE_COMMAND,
        f"systemctl {' '.join(words)}: {reason or done.last_word()}",
        hint=hint,
        status=done.status,
        output=tail[-4000:],
    )


def _offer_command(prefix: str) -> None:
    """Put `specctl-agent` on the host's PATH, unless something else has that name."""
    if os.path.lexists(COMMAND) and not os.path.islink(COMMAND):
        return
    os.makedirs(os.path.dirname(COMMAND), exist_ok=True)
    files.replace_link(COMMAND, os.path.join(prefix, CURRENT, "bin", "specctl-agent"))
