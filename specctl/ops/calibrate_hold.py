"""Hold a host's agent while its server is measured: a switch in the middle would spoil the figures, and be no one's fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from specctl.control import wire
from specctl.errors import ConnectError, SpecctlError
from specctl.fleet.types import AgentMode, Server
from specctl.ops import agent
from specctl.ops.contact import Contact
from specctl.rollout import reading

SAID = "the agent is in mode act: it is held meanwhile, and resumed at the end"


def acts(contact: Contact, server: Server, reason: str) -> bool:
    """Claim that the host's agent acts on the server, and that nobody holds it, or an end by force left it held for this."""
    try:
        told = agent.put(contact, wire.Status(server=server.name))
    except SpecctlError:
        return False  # no agent answers: nobody acts
    rows = [row for row in reading.rows(told.get("servers")) if row.get("server") == server.name]
    return any(row.get("conduct") == AgentMode.ACT.value and row.get("held") in (None, reason) for row in rows)


@contextmanager
def held(contact: Contact, name: str, reason: str, *, wanted: bool) -> Iterator[None]:
    """Hold the host's agent where that is wanted, and resume it whatever happens."""
    if not wanted:
        yield
        return
    agent.put(contact, wire.Hold(server=name, who=contact.who, reason=reason))
    try:
        yield
    finally:
        _resume(contact, name)


def _resume(contact: Contact, name: str) -> None:
    try:
        agent.put(contact, wire.Resume(server=name, who=contact.who))
    except ConnectError:
        contact.reopen(contact.session)
        agent.put(contact, wire.Resume(server=name, who=contact.who))
