"""The agent's own settings: what `specctl agent install` wrote on the host, and where the agent keeps its things."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from specctl.errors import UnsupportedError, UsageError
from specctl.rollout import reading

CONFIG = Path("/etc/specctl/agent.json")
STATE = Path("/var/lib/specctl-agent")
RUN = Path("/run/specctl")
SOCKET = "agent.sock"
FORMAT = 1
FILE_BYTES = 1 << 16
HINT = "specctl agent install --host H writes it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """`servers` holds a folder for each server that was deployed; metrics are served at `address`:`port`."""

    servers: Path
    address: str
    port: int
    state: Path = STATE
    run: Path = RUN

    @property
    def socket(self) -> str:
        """Return the path of the control socket."""
        return str(self.run / SOCKET)


def load(path: Path = CONFIG, *, state: Path = STATE) -> Config:
    """Read the settings, which may name other folders as `state` and `run` (then the argument counts for nothing).

    Raises UsageError where they cannot be meant, UnsupportedError where a newer specctl wrote them.
    """
    try:
        with path.open("rb") as file:
            fields = reading.mapping(json.loads(file.read(FILE_BYTES)))
    except FileNotFoundError as error:
        raise UsageError(f"there is no {path}", hint=HINT) from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read ({error})", hint=HINT) from error
    form = reading.whole(fields.get("format"))
    if form is not None and form > FORMAT:
        raise UnsupportedError(f"{path} has format {form}, and this agent reads format {FORMAT}", hint=HINT)
    metrics = reading.mapping(fields.get("metrics"))
    servers, address, port = (
        reading.text(fields.get("servers")),
        reading.text(metrics.get("address")),
        reading.whole(metrics.get("port")),
    )
    if form is None or servers is None or address is None or port is None or not 0 <= port <= 65_535:
        raise UsageError(f"{path} does not say format, servers and metrics", hint=HINT)
    kept, run = (reading.text(fields.get(name)) for name in ("state", "run"))
    return Config(
        servers=Path(servers),
        address=address,
        port=port,
        state=Path(kept) if kept else state,
        run=Path(run) if run else RUN,
    )
