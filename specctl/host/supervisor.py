"""Drive one program of supervisord: its configuration, its state, start and stop, its log. The same functions as in systemd.py.

There is no control group here: the server's processes are its main process's descendants and process group. Nothing starts
supervisord at boot.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Dict, List, Mapping, Optional, Tuple

from specctl.host import files, journal, logfile, procs
from specctl.host import supervisor_rpc as rpc
from specctl.host.daemon import STEP_S, Daemon
from specctl.host.states import State
from specctl.host.wire import REMOTE_COMMAND, Args, OpError

# supervisor's state -> systemd's ActiveState and SubState.
WORDS: Mapping[str, Tuple[str, str]] = {
    "STARTING": ("active", "running"),
    "RUNNING": ("active", "running"),
    "BACKOFF": ("activating", "auto-restart"),
    "STOPPING": ("deactivating", "stop-sigterm"),
    "STOPPED": ("inactive", "dead"),
    "EXITED": ("failed", "failed"),
    "FATAL": ("failed", "failed"),
}
NO_WAIT = False
NOT_THERE = State(active="inactive", sub="dead", loaded="not-found")


def invocation_of(pid: int) -> Optional[str]:
    """Return the id of one start: the main process's pid and start time."""
    began = procs.started(pid)
    return None if began is None else f"{pid}.{began}"


def parse_invocation(invocation: Optional[str]) -> Optional[Tuple[int, int]]:
    """Return pid and start time of an id, or None."""
    pid, dot, began = (invocation or "").partition(".")
    return (int(pid), int(began)) if dot and pid.isdigit() and began.isdigit() else None


class Supervisor:
    """One program of the supervisord of a state folder."""

    kind = "supervisor"

    def __init__(self, args: Args) -> None:
        self.root = args.path("home")
        self.program = args.text("program")
        self.daemon = Daemon(self.root, args.text_or_none("python"))
        self._note = os.path.join(self.daemon.folder, f"{self.program}.json")

    def _info(self) -> Optional[Mapping[str, object]]:
        """Return supervisord's word on the program; None: no supervisord, or it does not know it."""
        try:
            found = self.daemon.call("getProcessInfo", self.program)
        except rpc.DownError:
            return None
        except rpc.FaultError as fault:
            if fault.code == rpc.BAD_NAME:
                return None
            raise OpError(REMOTE_COMMAND, f"supervisord: {fault.text}") from fault
        return found if isinstance(found, dict) else None

    def _noted(self) -> Mapping[str, object]:
        return files.read_object(self._note) or {}

    def state(self) -> State:
        """Return what supervisord says of the program, in systemd's words."""
        info = self._info()
        if info is None:
            return NOT_THERE
        active, sub = WORDS.get(str(info.get("statename")), (None, None))
        pid = info.get("pid")
        main = pid if isinstance(pid, int) and pid > 0 else None
        noted = Args(self._noted())
        offset = noted.whole_or_none("daemon_offset")
        history = self.daemon.history(self.program, offset) if offset is not None else None
        restarts = max(0, history.spawned - 1) if history and history.spawned else None
        status = history.exit_status if history and main is None else None
        invocation = invocation_of(main) if main else (noted.text_or_none("invocation") if restarts == 0 else None)
        if active == "failed" and status == 0:
            active, sub = "inactive", "dead"
        return State(
            active=active,
            sub=sub,
            invocation=invocation,
            main_pid=main if main and invocation else None,
            restarts=restarts,
            result=None if status is None else "success" if status == 0 else "signal" if status > 128 else "exit-code",
            exit_status=status,
            loaded="loaded",
        )

    def _orphan(self) -> Optional[int]:
        """Return the pid of an engine whose supervisord died and left it running."""
        noted = parse_invocation(Args(self._noted()).text_or_none("invocation"))
        return noted[0] if noted and procs.alive(noted) else None

    def pids(self, state: State) -> List[int]:
        """Return the program's main process and its descendants."""
        main = state.main_pid or self._orphan()
        return procs.tree(main) if main else []

    def family(self, state: State) -> List[int]:
        """Return the same and its process group, by a look at every process."""
        main = state.main_pid or self._orphan()
        return procs.family(main) if main else []

    def installed(self) -> Optional[bytes]:
        """Return None: supervisord reads the release's own file."""
        return None

    def check(self) -> None:
        """Nothing stands in the way of an installation."""

    def install(self, content: bytes) -> None:
        """Nothing beside the `current` link: supervisord includes it."""

    def reload(self) -> None:
        """Let a supervisord that runs read its configuration, so that a broken one is refused now; nothing is restarted."""
        try:
            self._reread()
        except rpc.DownError:
            return

    def _reread(self) -> List[List[str]]:
        try:
            found = self.daemon.call("reloadConfig")
        except rpc.FaultError as fault:
            raise OpError(REMOTE_COMMAND, f"supervisord cannot read its configuration: {fault.text}") from fault
        assert isinstance(found, list)
        return [[str(name) for name in names] for names in found[0]]

    def _adopt(self) -> None:
        """Bring supervisord's own idea of the program up to what `current` says; the program must not run."""
        added, changed, _ = self._reread()
        try:
            if self.program in changed:
                self.daemon.call("removeProcessGroup", self.program)
            if self.program in added or self.program in changed:
                self.daemon.call("addProcessGroup", self.program)
        except rpc.FaultError as fault:
            if fault.code == rpc.STILL_RUNNING:
                raise OpError(
                    REMOTE_COMMAND,
                    f"{self.program} still runs with its old configuration",
                    hint="specctl stop --host H first",
                ) from fault
            raise OpError(REMOTE_COMMAND, f"supervisord: {fault.text}") from fault

    def start(self, timeout_s: float) -> State:
        """Start the program, and supervisord where needed; return its state as soon as it has a process."""
        self.daemon.ensure()
        before = self.state()
        if before.main_pid is not None:
            return before
        orphan = self._orphan()
        if orphan is not None:
            raise OpError(
                REMOTE_COMMAND,
                f"{self.program} still runs as pid {orphan}, left by an earlier supervisord",
                hint="specctl stop --host H first",
            )
        offset = self.daemon.log_size()
        self._adopt()
        log = self._log_path()
        note: Dict[str, object] = {"daemon_offset": offset, "log": log, **logfile.mark(log)}
        try:
            self.daemon.call("startProcess", self.program, NO_WAIT)
        except rpc.FaultError as fault:
            if fault.code != rpc.ALREADY_STARTED:
                raise OpError(
                    REMOTE_COMMAND,
                    f"supervisord cannot start {self.program}: {fault.text}",
                    hint=f"look at {self.daemon.log}",
                ) from fault
        invocation = self._await_process(timeout_s)
        files.replace(self._note, json.dumps({**note, "invocation": invocation}).encode(), 0o600)
        return self.state()

    def _await_process(self, timeout_s: float) -> str:
        """Return the id of the start once there is a process."""
        deadline = time.monotonic() + timeout_s
        while True:
            info = self._info() or {}
            pid = info.get("pid")
            invocation = invocation_of(pid) if isinstance(pid, int) and pid > 0 else None
            if invocation:
                return invocation
            if info.get("statename") in ("FATAL", "EXITED") or time.monotonic() > deadline:
                why = info.get("spawnerr") or "it has no process"
                raise OpError(REMOTE_COMMAND, f"{self.program} did not start: {why}", hint="specctl logs --host H")
            time.sleep(STEP_S)

    def _log_path(self) -> str:
        found = (self._info() or {}).get("stdout_logfile")
        return found if isinstance(found, str) and found else os.devnull

    def request_stop(self) -> None:
        """Ask for the stop without waiting for it; an engine left by a dead supervisord gets the signal from us."""
        try:
            self.daemon.call("stopProcess", self.program, NO_WAIT)
        except rpc.DownError:
            orphan = self._orphan()
            if orphan is not None:
                os.kill(orphan, signal.SIGTERM)
        except rpc.FaultError as fault:
            if fault.code not in (rpc.NOT_RUNNING, rpc.BAD_NAME):
                raise OpError(REMOTE_COMMAND, f"supervisord cannot stop {self.program}: {fault.text}") from fault

    def kill(self) -> None:
        """Send SIGKILL to the main process; the others are killed one by one by whoever stops the server."""
        try:
            self.daemon.call("signalProcess", self.program, "KILL")
        except (rpc.DownError, rpc.FaultError):
            return  # Nothing of it is left in supervisord.

    def reset_failed(self) -> None:
        """Nothing: supervisor keeps no count over a start."""

    def disable(self) -> List[str]:
        """Do nothing: no boot starts a server under supervisor."""
        return []

    def uninstall(self) -> List[str]:
        """Let supervisord forget the program (its `current` link is gone); an idle supervisord ends."""
        files.remove(self._note)
        try:
            _, _, removed = self._reread()
            if self.program in removed:
                self.daemon.call("removeProcessGroup", self.program)
            self.daemon.shut_down()
        except rpc.DownError:
            return []
        return [self.program] if self.program in removed else []

    def follow(self, invocation: Optional[str], lines: Optional[int]) -> journal.Source:
        """Return the log: so many last lines (None: all since the last start by us), then what comes."""
        del invocation
        noted = Args(self._noted())
        path = noted.text_or_none("log") or self._log_path()
        return logfile.FileSource(path, noted.fields if lines is None else logfile.mark(path, lines))

    def tail(self, lines: int, invocation: Optional[str]) -> List[str]:
        """Return the last lines of the program's log."""
        del invocation
        return logfile.tail(Args(self._noted()).text_or_none("log") or self._log_path(), lines)

    def head(self, lines: int, invocation: Optional[str]) -> List[str]:
        """Return the first lines of the log since the last start by us."""
        del invocation
        noted = Args(self._noted())
        return logfile.head(noted.text_or_none("log") or self._log_path(), noted.fields, lines)

    def details(self, state: State) -> Mapping[str, object]:
        """Return what only the manager knows."""
        return {"loaded": state.loaded, "needs_reload": None, "enabled": None}
