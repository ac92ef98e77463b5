"""Drive one unit of systemd: its file, its state, start and stop, its journal. The same functions as in supervisor.py."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Optional

from specctl.host import cgroups, commands, files, hello, journal
from specctl.host.states import State
from specctl.host.wire import GOING_DOWN, REMOTE_COMMAND, UNSUPPORTED, Args, OpError

UNIT_DIR = "/etc/systemd/system"
UNIT_MODE = 0o644
SHOW_S = 10.0
RELOAD_S = 60.0
REQUEST_S = 30.0
KILLED_CODES = ("2", "3")  # CLD_KILLED and CLD_DUMPED: the status is a signal
PROPERTIES = (
    "LoadState,ActiveState,SubState,InvocationID,MainPID,NRestarts,Result,ExecMainCode,ExecMainStatus,ControlGroup,"
    "NeedDaemonReload,UnitFileState"
)


def parse_state(text: str) -> State:
    """Build the state from what `systemctl show` printed."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        found[key] = value
    status = found.get("ExecMainStatus", "")
    code = found.get("ExecMainCode", "0")
    exit_status = int(status) if status.isdigit() and code != "0" else None
    if exit_status is not None and code in KILLED_CODES:
        exit_status += 128
    pid = found.get("MainPID", "0")
    restarts = found.get("NRestarts", "")
    return State(
        active=found.get("ActiveState") or None,
        sub=found.get("SubState") or None,
        invocation=found.get("InvocationID") or None,
        main_pid=int(pid) if pid.isdigit() and pid != "0" else None,
        restarts=int(restarts) if restarts.isdigit() else None,
        result=found.get("Result") or None,
        exit_status=exit_status,
        loaded=found.get("LoadState") or None,
        needs_reload={"yes": True, "no": False}.get(found.get("NeedDaemonReload", "")),
        enabled=found.get("UnitFileState") or None,
        group=found.get("ControlGroup") or None,
    )


def wanted_by(text: str) -> List[str]:
    """Return the targets that a unit's text wants to be started with."""
    lines = [line.partition("=")[2] for line in text.splitlines() if line.replace(" ", "").startswith("WantedBy=")]
    return [target for line in lines for target in line.split()]


def going_down() -> bool:
    """Claim that the host is shutting down: what systemd refuses or ends then says nothing about the server."""
    return commands.run(["systemctl", "is-system-running"], REQUEST_S).stdout.strip() == b"stopping"


class Systemd:
    """One unit of the system's service manager."""

    kind = "systemd"

    def __init__(self, args: Args) -> None:
        self.unit = args.text("unit")
        self.unit_dir = args.text_or_none("unit_dir") or UNIT_DIR
        if not self.unit.endswith(".service") or "/" in self.unit:
            raise OpError(UNSUPPORTED, f"{self.unit} is no name of a service unit")

    @property
    def unit_file(self) -> str:
        """Where systemd reads the unit from."""
        return os.path.join(self.unit_dir, self.unit)

    def _ask(self, *words: str, timeout_s: float = REQUEST_S) -> str:
        done = commands.run(["systemctl", *words], timeout_s)
        if done.status == 0:
            return done.stdout.decode("utf-8", "replace")
        if done.status == commands.NOT_FOUND or not os.path.isdir(hello.SYSTEMD_BOOTED):
            raise OpError(
                UNSUPPORTED,
                "systemd does not run this host",
                hint="set service_manager: supervisor for the host in the inventory",
            )
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().split("\n")[0]
        late = f"did not answer within {timeout_s:.0f} s" if done.status is None else said
        raise OpError(
            GOING_DOWN if going_down() else REMOTE_COMMAND,
            f"systemctl {words[0]} {self.unit}: {late}",
            hint=f"systemctl status {self.unit}",
            status=done.status,
            output=done.stderr.decode("utf-8", "replace")[-4000:],
        )

    def state(self) -> State:
        """Return what systemd says of the unit."""
        return parse_state(self._ask("show", self.unit, "--property", PROPERTIES, timeout_s=SHOW_S))

    def pids(self, state: State) -> List[int]:
        """Return the processes of the unit's control group."""
        return cgroups.members(state.group) if state.group else []

    def family(self, state: State) -> List[int]:
        """Return the same: a control group is not escaped by a fork."""
        return self.pids(state)

    def installed(self) -> Optional[bytes]:
        """Return the unit file as systemd would read it, or None."""
        return files.read(self.unit_file)

    def check(self) -> None:
        """Refuse to install over a masked unit."""
        if os.path.islink(self.unit_file) and os.readlink(self.unit_file) == os.devnull:
            raise OpError(REMOTE_COMMAND, f"{self.unit} is masked", hint=f"systemctl unmask {self.unit}")

    def install(self, content: bytes) -> None:
        """Put the unit file and the links that start it at boot in place; systemd learns of it by `reload`."""
        files.replace(self.unit_file, content, UNIT_MODE)
        for target in wanted_by(content.decode("utf-8", "replace")):
            folder = os.path.join(self.unit_dir, f"{target}.wants")
            os.makedirs(folder, mode=0o755, exist_ok=True)
            link = os.path.join(folder, self.unit)
            if not os.path.islink(link) or os.readlink(link) != self.unit_file:
                files.replace_link(link, self.unit_file)

    def reload(self) -> None:
        """Make systemd read its units again."""
        self._ask("daemon-reload", timeout_s=RELOAD_S)

    def start(self, timeout_s: float) -> State:
        """Start the unit and return its state as soon as systemd has executed the program.

        The count of starts is forgotten first: an operator's start must not meet the limit that is meant for crashes.
        """
        commands.run(["systemctl", "reset-failed", self.unit], REQUEST_S)
        self._ask("start", self.unit, timeout_s=timeout_s)
        return self.state()

    def request_stop(self) -> None:
        """Ask for the stop without waiting for it; a unit that systemd does not know needs none."""
        if self.state().loaded == "not-found":
            return
        self._ask("stop", "--no-block", self.unit)

    def kill(self) -> None:
        """Send SIGKILL to all that is left in the unit."""
        done = commands.run(["systemctl", "kill", "--signal=KILL", self.unit], REQUEST_S)
        if done.status not in (0, 1):
            raise OpError(REMOTE_COMMAND, f"systemctl kill {self.unit}: {done.last_word()}")

    def reset_failed(self) -> None:
        """Forget a failure and the count of starts; a unit that systemd has not loaded has none."""
        state = self.state()
        if state.loaded == "loaded" or state.active == "failed":
            self._ask("reset-failed", self.unit)

    def _unlink(self) -> List[str]:
        """Remove every link that starts the unit; return what was removed."""
        removed = []
        for folder in sorted(os.listdir(self.unit_dir)) if os.path.isdir(self.unit_dir) else []:
            link = os.path.join(self.unit_dir, folder, self.unit)
            if folder.endswith((".wants", ".requires")) and files.remove(link):
                removed.append(link)
        return removed

    def disable(self) -> List[str]:
        """Keep a boot from starting the unit, which stays installed; return what was removed."""
        removed = self._unlink()
        self.reload()
        return removed

    def uninstall(self) -> List[str]:
        """Remove the unit file and every link that starts it; return what was removed."""
        removed = self._unlink()
        if files.remove(self.unit_file):
            removed.append(self.unit_file)
        self.reload()
        self.reset_failed()
        return removed

    def follow(self, invocation: Optional[str], lines: Optional[int]) -> journal.Source:
        """Return the log of one start (None: of the unit): so many last lines (None: all of that start), then what comes."""
        return journal.JournalSource(self.unit, invocation, lines if lines is not None or invocation else 0)

    def tail(self, lines: int, invocation: Optional[str]) -> List[str]:
        """Return the last lines of the unit's log."""
        return journal.journal_tail(self.unit, lines, invocation)

    def head(self, lines: int, invocation: Optional[str]) -> List[str]:
        """Return the first lines of one start's log."""
        return journal.journal_head(self.unit, lines, invocation)

    def details(self, state: State) -> Mapping[str, object]:
        """Return what only systemd knows."""
        return {"loaded": state.loaded, "needs_reload": state.needs_reload, "enabled": state.enabled}
