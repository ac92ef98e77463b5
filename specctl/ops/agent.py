"""Speak with the agents on hosts: status, decisions, orders; through each host's session, by specctl.control.wire."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from specctl.control import wire
from specctl.errors import ConnectError, RemoteCommandError, SpecctlError, UsageError, for_host
from specctl.fleet.types import Host, Server
from specctl.ops import agent_install
from specctl.ops.contact import Contact, contacts, each, in_parallel, operator
from specctl.rollout import reading
from specctl.rollout.agent_plan import AgentRow

ASK_S = 30.0
UNIT = "specctl-agent.service"

Pair = tuple[Host, Server]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of asking one host's agent, about a server where there is one: its answer, or the error."""

    host: str
    server: str | None = None
    result: Mapping[str, object] = field(default_factory=dict)
    error: SpecctlError | None = None

    def as_wire(self) -> dict[str, object]:
        """Return the JSON object of the answer (docs/json.md)."""
        error = dict(self.error.as_json()) if self.error else None
        return {"host": self.host, "server": self.server, **self.result, "error": error}


def tell(pairs: Sequence[Pair], make: Callable[[str, str], wire.Request]) -> tuple[Answer, ...]:
    """Put a request for every server to its host's agent, in our name; returns an answer for each, in order."""
    return _each(pairs, lambda contact, server: put(contact, make(operator(), server.name)))


def put(contact: Contact, request: wire.Request) -> Mapping[str, object]:
    """Put one request to a host's agent; raises what it refuses with, or RemoteCommandError where it does not answer."""
    line = wire.encode(request).decode("ascii")
    reply = contact.session.call("agent.ask", {"line": line}, timeout_s=ASK_S).get("line")
    return wire.result_of(str(reply).encode())


def status(hosts: Sequence[Host]) -> tuple[AgentRow, ...]:
    """Return a row for every host; one that cannot be reached is a row with its reason."""
    rows: dict[str, AgentRow] = {}

    def one(host: Host) -> None:
        found = reached[host.name]
        try:
            if isinstance(found, SpecctlError):
                raise found
            rows[host.name] = _row(found)
        except SpecctlError as error:
            state = "unreachable" if isinstance(error, ConnectError) else "unknown"
            rows[host.name] = AgentRow(host=host.name, state=state, error=_placed(error, host.name))

    with contacts(hosts) as reached:
        in_parallel(one, list(hosts))
    return tuple(rows[host.name] for host in hosts)


def _row(contact: Contact) -> AgentRow:
    seen = agent_install.look(contact)
    installed, unit = reading.mapping(seen.get("installed")), reading.mapping(seen.get("unit"))
    version = reading.text(installed.get("version"))
    if version is None:
        return AgentRow(host=contact.host.name)
    told: Mapping[str, object] = {}
    error: SpecctlError | None = None
    state = reading.text(unit.get("ActiveState")) or "unknown"
    if state == "active":
        try:
            told = put(contact, wire.Status())
        except SpecctlError as refused:
            error = refused
    python = reading.text(installed.get("python"))
    return AgentRow(host=contact.host.name, version=version, python=python, state=state, told=told, error=error)


def why(pairs: Sequence[Pair], limit: int) -> tuple[Answer, ...]:
    """Return the newest decisions about each server, oldest first, from the agent's journal: also where the agent does not run."""

    def one(contact: Contact, server: Server) -> Mapping[str, object]:
        args = {"limit": limit, "server": server.name}
        found = contact.session.call("agent.decisions", args, timeout_s=ASK_S)
        if found.get("there") is not True:
            hint = f"specctl agent install --host {contact.host.name}"
            raise RemoteCommandError("no agent has decided anything on this host", hint=hint)
        return {"decisions": list(reading.rows(found.get("decisions"))), "now": _now(contact, server)}

    return _each(pairs, one)


def _now(contact: Contact, server: Server) -> Mapping[str, object] | None:
    """Return the present decision with the figures of now; None where the agent does not run, or does not watch the server."""
    try:
        told = put(contact, wire.Why(server=server.name))
    except (RemoteCommandError, UsageError):
        return None
    return reading.mapping(reading.mapping(told.get("now")).get(server.name)) or None


def logs(host: Host, *, lines: int, follow: bool, show: Callable[[str], None], done: threading.Event) -> None:
    """Show the agent's log on one host."""

    def take(event: Mapping[str, object]) -> None:
        for line in reading.texts(event.get("lines")):
            show(line)

    args = {"manager": {"kind": "systemd", "unit": UNIT}, "lines": lines, "follow": follow}
    with contacts([host]) as reached:
        found = reached[host.name]
        if isinstance(found, SpecctlError):
            raise found
        found.session.call("logs", args, on_event=take, timeout_s=None if follow else 60.0, cancel=done)


def _each(pairs: Sequence[Pair], work: Callable[[Contact, Server], Mapping[str, object]]) -> tuple[Answer, ...]:
    answers = []
    for (host, server), found in each(pairs, work).items():
        if isinstance(found, SpecctlError):
            answers.append(Answer(host=host, server=server, error=_placed(found, host)))
        elif isinstance(found, Mapping):
            answers.append(Answer(host=host, server=server, result=found))
    return tuple(answers)


def _placed(error: SpecctlError, host: str) -> SpecctlError:
    """Name the host in an error, and in the hint that an agent gave, which does not know what we call its host."""
    error.host = error.host or host
    error.hint = for_host(error.hint, host) if error.hint else None
    return error
