"""The agent's state folder: what lies where, and what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from specctl_agent.log import Log
from specctl_agent.profile_store import ProfileStore
from specctl_agent.storing import Complaints, StateFile

SERVERS = "servers"
PROFILE = "profile.json"
STATE = "state.json"
STATE_FORMAT = 1
ODD = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(slots=True)
class Keeping:
    """The folder, made where it can be; a folder that cannot be written costs memory of the past, not the present."""

    folder: Path
    log: Log
    complaints: Complaints = field(init=False)

    def __post_init__(self) -> None:
        self.complaints = Complaints(self.log)

    def file(self, name: str, form: int) -> StateFile:
        """Return a file of the whole agent."""
        return StateFile(self.folder / name, form, self.complaints, self.log)

    def profile(self, server: str) -> ProfileStore:
        """Return where the profile of a server is kept."""
        return ProfileStore(self.of_server(server) / PROFILE)

    def state(self, server: str) -> StateFile:
        """Return where counts and the policy's state of a server are kept."""
        return StateFile(self.of_server(server) / STATE, STATE_FORMAT, self.complaints, self.log)

    def of_server(self, server: str) -> Path:
        """Return a server's own folder."""
        path = self.folder / SERVERS / ODD.sub("_", server)
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o750)
        except OSError as error:
            self.complaints.trouble(SERVERS, f"{path} cannot be made: {error.strerror}")
        return path
