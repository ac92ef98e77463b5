"""Take a server off its traffic and bring it back by the operator's own programs: argv, bounded time, exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from specctl.fleet.types import Hooks
from specctl_agent.actuators import DoorError, Taken

KIND = "hooks"
SAID_BYTES = 300
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class HookDoor:
    """One server's hooks. They get a bare environment: PATH and SPECCTL_SERVER, never the agent's credentials."""

    hooks: Hooks
    server: str
    env: Mapping[str, str] = field(default_factory=dict)

    def take_off(self, mark: Callable[[Taken], None]) -> Taken:
        """Run pre_drain; what it began is taken back by post_ready, even where it failed."""
        taken = Taken(by=KIND)
        mark(taken)
        self._run("pre_drain", self.hooks.pre_drain)
        return taken

    def bring_back(self, taken: Taken) -> None:
        """Run post_ready."""
        del taken  # A hook keeps what it needs to know by itself.
        self._run("post_ready", self.hooks.post_ready)

    def _run(self, name: str, argv: Sequence[str]) -> None:
        with tempfile.TemporaryFile() as said:
            status = self._ended(name, argv, said)
            if status != 0:
                said.seek(0)
                words = said.read(SAID_BYTES).decode("utf-8", "replace").strip()
                raise DoorError(f"{name} ended with {status} ({argv[0]}){f': {words}' if words else ''}")

    def _ended(self, name: str, argv: Sequence[str], said: IO[bytes]) -> int:
        """Run a program to its end; what it leaves running in the background is not waited for."""
        env = {"PATH": PATH, "SPECCTL_SERVER": self.server, **self.env}
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=env,
            )
        except OSError as error:
            raise DoorError(f"{name} cannot be started: {error.strerror} ({argv[0]})") from error
        with process:
            try:
                return process.wait(self.hooks.limit_s)
            except subprocess.TimeoutExpired as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise DoorError(f"{name} did not end within {self.hooks.limit_s:g} s ({argv[0]})") from error


@dataclass(frozen=True, slots=True)
class OpenDoor:
    """Takes nothing off: the inventory says that an outage is accepted."""

    def take_off(self, mark: Callable[[Taken], None]) -> Taken:
        """Do nothing."""
        taken = Taken(by="nobody")
        mark(taken)
        return taken

    def bring_back(self, taken: Taken) -> None:
        """Do nothing."""
        del taken
