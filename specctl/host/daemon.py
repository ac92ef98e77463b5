"""The supervisord that keeps the servers of one state folder: its configuration, its start, its log. Needs no root."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from typing import Optional

from specctl.host import commands, files
from specctl.host import supervisor_rpc as rpc
from specctl.host.wire import REMOTE_COMMAND, UNSUPPORTED, OpError

FOLDER = ".supervisor"
SOCKET = "supervisor.sock"
CONFIG = "supervisord.conf"
LOG = "supervisord.log"
START_S = 15.0
STEP_S = 0.05
# Paths are relative to the folder: supervisord is started there, and stays there. It makes paths absolute, and a long state folder
# would outgrow a socket's address (107 bytes), so the socket's goes through the working folder.
BARE_TEXT = f"""\
; Written by specctl: servers are included by their `current` links.
[supervisord]
logfile={LOG}
logfile_maxbytes=10MB
logfile_backups=2
pidfile=supervisord.pid
childlogdir=.
identifier=specctl
nodaemon=false

[unix_http_server]
file=/proc/self/cwd/{SOCKET}
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
CONFIG_TEXT = f"{BARE_TEXT}\n[include]\nfiles=../*/current\n"


@dataclass(frozen=True)
class History:
    """What supervisord's log tells of a program since some point of it; `exit_status` counts a signal as 128 + its number."""

    spawned: int
    exit_status: Optional[int]


def read_history(text: str, program: str) -> History:
    """Count the starts of a program and find how it last ended."""
    name = re.escape(program)
    spawned = len(re.findall(rf"INFO spawned: '{name}' with pid \d+", text))
    ends = re.findall(rf"(?:exited|stopped): {name} \((?:exit status (\d+)|terminated by (SIG\w+))", text)
    if not ends:
        return History(spawned, None)
    status, name_of_signal = ends[-1]
    if status:
        return History(spawned, int(status))
    number = getattr(signal, name_of_signal, None)
    return History(spawned, 128 + int(number) if number is not None else None)


class Daemon:
    """The supervisord of a state folder.

    `python` is an interpreter that has the supervisor package; None: the session's own, else a supervisord on the PATH.
    """

    def __init__(self, root: str, python: Optional[str]) -> None:
        self.folder = os.path.join(root, FOLDER)
        self._python = python

    @property
    def log(self) -> str:
        """Its own log."""
        return os.path.join(self.folder, LOG)

    def call(self, method: str, *arguments: object) -> object:
        """Call a method; raises Down and Fault."""
        return rpc.call(self.folder, SOCKET, f"supervisor.{method}", *arguments)

    def pid(self) -> Optional[int]:
        """Return its pid, or None when it does not run."""
        return rpc.reachable(self.folder, SOCKET)

    def ensure(self) -> None:
        """Start it unless it runs, without any program; only one session at a time tries."""
        if self.pid() is not None:
            self._include()
            return
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        os.chmod(self.folder, 0o700)
        lock = os.open(os.path.join(self.folder, "start.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.pid() is None:
                self._start()
            self._include()
        finally:
            os.close(lock)

    def _include(self) -> None:
        """Name the servers in the configuration, for the next time that it is read."""
        path = os.path.join(self.folder, CONFIG)
        if files.read_text(path) != CONFIG_TEXT:
            files.replace(path, CONFIG_TEXT.encode(), 0o600)

    def _start(self) -> None:
        # With the servers in it, supervisord would start every one of them, also those that somebody stopped.
        files.replace(os.path.join(self.folder, CONFIG), BARE_TEXT.encode(), 0o600)
        python = self._python or sys.executable
        done = commands.run([python, "-m", "supervisor.supervisord", "-c", CONFIG], START_S, folder=self.folder)
        if done.status != 0 and not self._has_package(python):
            done = commands.run([self._other(python), "-c", CONFIG], START_S, folder=self.folder)
        if done.status != 0:
            words = done.last_word("Error: ")
            raise OpError(REMOTE_COMMAND, f"supervisord did not start: {words}", hint=f"look at {self.log}")
        deadline = time.monotonic() + START_S
        while self.pid() is None:
            if time.monotonic() > deadline:
                raise OpError(REMOTE_COMMAND, "supervisord started and does not answer", hint=f"look at {self.log}")
            time.sleep(STEP_S)

    @staticmethod
    def _has_package(python: str) -> bool:
        return commands.run([python, "-c", "import supervisor.supervisord"], START_S).status == 0

    def _other(self, python: str) -> str:
        """Return a supervisord on the PATH where no interpreter was named; refuse where there is none."""
        found = shutil.which("supervisord", path=commands.PATH) if self._python is None else None
        if found:
            return found
        raise OpError(
            UNSUPPORTED,
            f"{python} has no supervisor package",
            hint=f"{python} -m pip install supervisor, or set service_manager: systemd for the host",
        )

    def shut_down(self) -> None:
        """End it when no program is left in it; returns when it has gone."""
        if self.call("getAllProcessInfo"):
            return
        self.call("shutdown")
        deadline = time.monotonic() + START_S
        while self.pid() is not None and time.monotonic() < deadline:
            time.sleep(STEP_S)

    def log_size(self) -> int:
        """Return how long its log is now."""
        try:
            return os.stat(self.log).st_size
        except FileNotFoundError:
            return 0

    def history(self, program: str, offset: int) -> Optional[History]:
        """Return what its log tells of a program since an offset; None when the log was rotated meanwhile."""
        if self.log_size() < offset:
            return None
        try:
            with open(self.log, "rb") as file:
                file.seek(offset)
                text = file.read(files.SMALL_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        return read_history(text, program)
