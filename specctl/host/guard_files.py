"""The guard's files on the host: its program and state in the server's folder, and the systemd unit and timer that run it.

The state is written before the timer runs and says "confirmed" before any file goes, so that whoever dies in between, the next
tick of the timer ends the work.
"""

from __future__ import annotations

import os
import shutil
from typing import List, Mapping

from specctl.host import commands, files, guard_state, systemd
from specctl.host.wire import GOING_DOWN, REMOTE_COMMAND, OpError

PROGRAM = "guard.py"
PROGRAM_MODE = 0o755
UNIT_MODE = 0o644
FIRST_S = 1
PERIOD_S = 3
TIMERS = "timers.target.wants"
ASK_S = 60.0

SERVICE = """\
# Written by specctl while a deploy is not confirmed; it removes itself. See `specctl status`.
[Unit]
Description=specctl guard of server {server}: takes back a deploy that nobody confirms
RequiresMountsFor={folder}
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart={python} -I -S {program} {folder} {server} {unit_dir}
Slice=system.slice
TimeoutStartSec=infinity
LogLevelMax=notice
"""
TIMER = """\
# Written by specctl while a deploy is not confirmed; it removes itself. See `specctl status`.
[Unit]
Description=specctl guard of server {server}

[Timer]
OnActiveSec={first}s
OnUnitInactiveSec={period}s
AccuracySec=1s

[Install]
WantedBy=timers.target
"""


def stem(server: str) -> str:
    """Return the name of the guard's units without their kind; no server's own unit can have it."""
    return f"specctl-guard@{server}"


def quoted(word: str) -> str:
    """Return a word as systemd reads it in a command line."""
    for special, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(special, written)
    return f'"{word}"'


def program(folder: str) -> str:
    """Return where the guard's program lies."""
    return os.path.join(guard_state.place(folder), PROGRAM)


def texts(folder: str, server: str, unit_dir: str, python: str) -> Mapping[str, str]:
    """Return the units by file name."""
    words = {
        "server": server,
        "python": quoted(python),
        "program": quoted(program(folder)),
        "folder": quoted(folder),
        "unit_dir": quoted(unit_dir),
        "first": FIRST_S,
        "period": PERIOD_S,
    }
    return {f"{stem(server)}.service": SERVICE.format(**words), f"{stem(server)}.timer": TIMER.format(**words)}


def _systemctl(*words: str) -> None:
    done = commands.run(["systemctl", *words], ASK_S)
    if done.status != 0:
        late = f"did not answer within {ASK_S:.0f} s" if done.status is None else done.last_word()
        raise OpError(
            GOING_DOWN if systemd.going_down() else REMOTE_COMMAND,
            f"the guard cannot be armed: systemctl {words[0]}: {late}",
            hint="nothing was changed; make systemd work there, then run the command again",
            status=done.status,
            output=done.stderr.decode("utf-8", "replace")[-4000:],
        )


def write_program(folder: str, text: str) -> None:
    """Put the guard's program in place."""
    os.makedirs(guard_state.place(folder), mode=0o700, exist_ok=True)
    content = text.encode("utf-8")
    if files.read(program(folder), len(content) + 1) != content:
        files.replace(program(folder), content, PROGRAM_MODE)


def install(folder: str, server: str, unit_dir: str, python: str) -> None:
    """Write the units, enable the timer for every boot, and start it; what is there already is left alone."""
    changed = False
    for name, text in texts(folder, server, unit_dir, python).items():
        path = os.path.join(unit_dir, name)
        if files.read(path) != text.encode("utf-8"):
            files.replace(path, text.encode("utf-8"), UNIT_MODE)
            changed = True
    wants, timer = os.path.join(unit_dir, TIMERS), f"{stem(server)}.timer"
    os.makedirs(wants, mode=0o755, exist_ok=True)
    link = os.path.join(wants, timer)
    if not os.path.islink(link):
        files.replace_link(link, os.path.join(unit_dir, timer))
        changed = True
    if changed:
        _systemctl("daemon-reload")
    _systemctl("start", timer)


def present(folder: str, server: str, unit_dir: str) -> bool:
    """Say whether anything of a guard is left on the host."""
    paths = [os.path.join(unit_dir, name) for name in _names(server)]
    return any(os.path.lexists(path) for path in [*paths, guard_state.place(folder)])


def _names(server: str) -> List[str]:
    return [os.path.join(TIMERS, f"{stem(server)}.timer"), f"{stem(server)}.timer", f"{stem(server)}.service"]


def remove(folder: str, server: str, unit_dir: str, *, from_within: bool) -> None:
    """Stop the guard and remove all of it; `from_within`: the caller is the guard's own service, which ends by itself."""
    timer, service = f"{stem(server)}.timer", f"{stem(server)}.service"
    commands.run(["systemctl", "stop", timer, *([] if from_within else [service])], ASK_S)
    removed = [name for name in _names(server) if files.remove(os.path.join(unit_dir, name))]
    if removed:
        commands.run(["systemctl", "daemon-reload"], ASK_S)
        commands.run(["systemctl", "reset-failed", timer, service], ASK_S)
    shutil.rmtree(guard_state.place(folder), ignore_errors=True)
    if os.path.isdir(folder):
        files.sync_dir(folder)
