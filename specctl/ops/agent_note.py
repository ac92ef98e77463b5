"""Tell the agent on a host what a server is and what it may do: compared before a deploy, written at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specctl.adapters.secrets import resolve_secret
from specctl.errors import SpecctlError, UsageError
from specctl.fleet.types import SecretRef, Server
from specctl.ops.contact import Contact
from specctl.rollout import reading, server_note

CALIBRATION_BYTES = 1 << 20
ORIGIN = "agent.calibration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What the agent is to be told: a server as the inventory has it, and the text of its calibration where there is one."""

    server: Server
    calibration: str | None = None


def letter(server: Server) -> Letter:
    """Write to the agent of a server; raises UsageError for a calibration file that cannot be read."""
    return Letter(server=server, calibration=_calibration(server))


def _calibration(server: Server) -> str | None:
    """Read the calibration: a path that is not absolute begins where the inventory's file lies."""
    name = server.agent.calibration
    if name is None:
        return None
    origin = server.provenance.get(ORIGIN)
    beside = Path(origin.file).parent if origin is not None and origin.file is not None else Path()
    path = beside / Path(name).expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(CALIBRATION_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"the calibration {path} of server {server.name} cannot be read: {error.strerror}",
            hint="correct agent.calibration in the inventory",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the calibration {path} is not text", hint="is that the right file?") from error
    if len(content) > CALIBRATION_BYTES:
        raise UsageError(f"the calibration {path} has over {CALIBRATION_BYTES} bytes", hint="is that the right file?")
    return text


def differs(contact: Contact, told: Letter) -> bool:
    """Claim that the host's agent was told something else."""
    changed = contact.call("agent.compare", told.server, _args(contact, told)).get("changed")
    return isinstance(changed, list) and bool(changed)


def deliver(contact: Contact, told: Letter, token: int) -> None:
    """Leave the note on the host, under the server's lease."""
    contact.call("agent.note", told.server, {**_args(contact, told), "token": token})


def _args(contact: Contact, told: Letter) -> Mapping[str, object]:
    releases = reading.rows(contact.call("release.list", told.server).get("releases"))
    manifests = {str(row.get("id")): reading.mapping(row.get("manifest")) for row in releases}
    note = server_note.make(contact.host, told.server, manifests, calibrated=told.calibration is not None)
    keys = {name: _value(ref) for name, ref in server_note.references(told.server).items()}
    return {"text": note.text(), "calibration": told.calibration, "keys": keys}


def _value(reference: SecretRef) -> str | None:
    """Return a key's value; None where it cannot be read here, so that the host keeps the one that it has."""
    try:
        return resolve_secret(reference).reveal()
    except SpecctlError:
        return None
