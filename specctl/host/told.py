"""Keep what a running engine was told last where the host's agent reads it: it must not take another's change for a fault."""

from __future__ import annotations

import json
import os
from typing import Mapping

from specctl.host import agent_note, files

NAME = "live.json"
FORMAT = 1
DONE = "done"


def keep(home: str, record: Mapping[str, object]) -> None:
    """Keep a live change that was done; nothing where the record is of another act, or no note was ever left for an agent."""
    folder = os.path.join(home, agent_note.FOLDER)
    if record.get("live") is not True or record.get("result") != DONE or not os.path.isdir(folder):
        return
    names = ("algo", "knobs", "invocation", "who", "at")
    told = {"format": FORMAT, **{name: record.get(name) for name in names}}
    files.replace(os.path.join(folder, NAME), json.dumps(told, sort_keys=True).encode("ascii"), agent_note.PLAIN_MODE)
