"""A host as `HostSource` shows it: over its one connection, by the agent where one answers, else by the engine's own words.

A look at the agent is cheap and made each time; how servers stand on the host, and what only the driver's tool tells of GPUs, is
asked less often, and kept meanwhile with its age.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from specctl.adapters.redaction import Redactor
from specctl.adapters.secrets import resolve_secret
from specctl.adapters.transport import Transport
from specctl.control import sight_agent, sight_engine, sight_facts, sight_gpus, wire
from specctl.control.sight import Sight, State
from specctl.control.sight_engine import EngineSight
from specctl.control.sight_past import Past
from specctl.errors import ConnectError, SpecctlError, UsageError
from specctl.fleet.types import Host, Server
from specctl.ops import contact as contacts
from specctl.ops.contact import Contact
from specctl.ops.engine_http import EngineClient
from specctl.rollout import reading, unit
from specctl.rollout.facts import ServerFacts, as_deployed
from specctl.rollout.observation import Port

# The host's own limit for a look is 8 s (host/look.py).
LOOK_S = 12.0
ASK_S = 15.0
ENGINE_S = 4.0
# How servers stand costs the host a few dozen milliseconds of a CPU, and changes seldom.
STANDING_EACH_S = 10.0
LOADING_EACH_S = 2.0
ENGINE_EACH_S = 2.0
GPUS_EACH_S = 5.0

Answer = Mapping[str, object]


@dataclass(slots=True)
class _Known:
    """What was found out of one server, and when (monotonic)."""

    server: Server
    facts: ServerFacts | None = None
    standing: Sight | None = None
    standing_s: float = 0.0
    engine: EngineSight | None = None
    before: EngineSight | None = None
    client: EngineClient | None = None
    redactor: Redactor | None = None


@dataclass(slots=True)
class _Gpus:
    """What the driver's tool said last, and when (monotonic)."""

    rows: object = None
    problem: str | None = None
    at_s: float | None = None


class SessionSource:
    """One host with the servers that are asked about; `once`: for a command that looks once, and leaves nothing for later."""

    def __init__(
        self,
        host: Host,
        servers: Sequence[Server],
        *,
        once: bool = False,
        dial: Callable[[Host], Contact] = contacts.contact,
    ) -> None:
        self.host = host
        self._dial = dial
        self._once = once
        self._wanted = tuple(servers)
        self._known = {server.name: _Known(server=server) for server in servers}
        self._gpus = _Gpus()
        self._contact: Contact | None = None
        self._dialling = threading.Lock()
        self._closed = False

    @property
    def blank(self) -> tuple[Sight, ...]:
        """Return what the inventory says of each server."""
        return tuple(sight_facts.blank(self.host, server) for server in self._wanted)

    @property
    def transport(self) -> Transport:
        """Return the connection, dialled anew where it was lost; what an engine's client asks for."""
        return self._reach().transport

    def look(self) -> tuple[Sight, ...]:
        """Return a sight for every server; ages count from now. Raises the SpecctlError of a host that does not answer."""
        began_s = time.monotonic()
        answer = self._ask_host(self._due(began_s), gpus=self._gpus_due(began_s))
        answered_s = time.monotonic()
        agent, trouble = _agent_of(answer)
        silent = [known for known in self._known.values() if not sight_agent.knows(agent, known.server.name)]
        contacts.in_parallel(self._ask_engine, [known for known in silent if self._engine_due(known, began_s)])
        return tuple(self._sight(known, agent, trouble, answered_s) for known in self._known.values())

    def past(self, server: str) -> Past | None:
        """Return what the agent kept of before; None without an agent that does."""
        line = wire.encode(wire.History(server=server, points=600)).decode("ascii")
        try:
            reply = self._call("agent.ask", {"line": line}, ASK_S).get("line")
            return sight_agent.past(wire.result_of(str(reply).encode()))
        except ConnectError:
            raise
        except SpecctlError:
            return None

    def ask(self, server: str, what: str, limit: int) -> tuple[Mapping[str, object], ...]:
        """Return the newest `decisions`, `records` or log `lines` of a server, oldest first; secrets are blotted out."""
        known = self._known.get(server)
        if known is None:
            raise UsageError(f"server {server} is not watched on {self.host.name}")
        match what:
            case "decisions":
                found = self._call("agent.decisions", {"limit": limit, "server": server}, ASK_S)
                return reading.rows(found.get("decisions"))
            case "records":
                return reading.rows(self._of_server("record.read", known, {"limit": limit}).get("records"))
            case "lines":
                return self._lines(known, limit)
            case _:
                raise UsageError(f"nothing is known of {what}")

    def close(self) -> None:
        """Hang up without a word: the session on the host ends with its input."""
        self._closed = True
        found, self._contact = self._contact, None
        if found is not None:
            found.transport.close()
            found.session.close()

    def _due(self, now_s: float) -> list[_Known]:
        """Return the servers of which it is to be asked how they stand."""
        return [known for known in self._known.values() if self._once or now_s - known.standing_s >= _each_s(known)]

    def _gpus_due(self, now_s: float) -> bool:
        return self._once or self._gpus.at_s is None or now_s - self._gpus.at_s >= GPUS_EACH_S

    def _engine_due(self, known: _Known, now_s: float) -> bool:
        own = known.facts is not None and known.facts.port is Port.OWN
        if not own:
            known.engine = known.before = None
        return own and (known.engine is None or now_s - known.engine.at_s >= ENGINE_EACH_S)

    def _ask_host(self, due: Sequence[_Known], *, gpus: bool) -> Answer:
        """Look at the host, and take in what it says; a server that runs at another address is asked about once more."""
        line = wire.encode(wire.Snapshot()).decode("ascii")
        args: dict[str, object] = {"line": line, "gpus": "without agent" if gpus else None}
        answer = self._call("look", {**args, "servers": [self._row(known) for known in due]}, LOOK_S)
        if "gpus" in answer:
            self._gpus = _Gpus(
                rows=answer["gpus"], problem=reading.text(answer.get("gpu_problem")), at_s=time.monotonic()
            )
        moved = self._take(due, answer)
        if moved:
            self._take(moved, self._call("look", {"servers": [self._row(known) for known in moved]}, LOOK_S))
        return answer

    def _row(self, known: _Known) -> Mapping[str, object]:
        server = known.server
        return {
            "name": server.name,
            "dir": str(unit.server_dir(self.host, server.name)),
            "manager": contacts.manager(self.host, server),
            "port": server.port,
        }

    def _take(self, asked: Sequence[_Known], answer: Answer) -> list[_Known]:
        """Keep how servers stand; returns those whose release has another address than was asked about."""
        rows = {reading.text(row.get("name")): row for row in reading.rows(answer.get("servers"))}
        moved = []
        for known in asked:
            row = rows.get(known.server.name, {})
            known.standing_s = time.monotonic()
            known.facts = facts = ServerFacts.from_wire(row, reading.number(answer.get("at_s")))
            deployed = known.server if facts.current is None else as_deployed(known.server, facts.current.manifest)
            if (deployed.port, deployed.bind) != (known.server.port, known.server.bind):
                known.server, known.client = deployed, None
                moved.append(known)
            known.standing = self._standing(known, facts, row, reading.number(answer.get("wall_s")))
        return moved

    def _standing(self, known: _Known, facts: ServerFacts, row: Answer, wall_s: float | None) -> Sight:
        wanted = next(server for server in self._wanted if server.name == known.server.name)
        found = sight_facts.standing(self.host, wanted, replace(facts, name=wanted.name), wall_s)
        if "opening" not in row:
            return found
        # A load is seldom looked at, and the gate's fold takes a while to import.
        from specctl.control.sight_loading import loading
        from specctl.rollout.launch import engines

        grammar = engines()[wanted.profile.engine].log
        opening, began_s = reading.texts(row.get("opening")), reading.number(row.get("started_s"))
        seen = loading(grammar, known.server, facts, opening, began_s)
        redact = self._redactor(known).redact
        detail, fatal = seen.detail, seen.fatal
        return replace(
            found,
            loading=replace(seen, detail=detail and redact(detail), fatal=fatal and redact(fatal)),
        )

    def _ask_engine(self, known: _Known) -> None:
        """Ask an engine whether it is ready and what its load is; one that does not answer leaves nothing."""
        if known.client is None:
            known.client = EngineClient.of(self, known.server)
        ready = known.client.get("/ready", timeout_s=ENGINE_S).status
        loads = known.client.get("/v1/loads", timeout_s=ENGINE_S).body
        seen = sight_engine.seen(time.monotonic(), ready, loads)
        known.before, known.engine = known.engine, seen

    def _sight(self, known: _Known, agent: Answer, trouble: str | None, answered_s: float) -> Sight:
        """Lay together how a server stands, what the agent said at `answered_s`, and what the engine said itself."""
        assert known.standing is not None, "the first look asks how every server stands"
        assert known.facts is not None, "as above"
        now_s = time.monotonic()
        sight = replace(known.standing.later(answered_s - known.standing_s), age_s=0.0, agent_trouble=trouble)
        if agent:
            sight = sight_agent.laid_over(sight, agent, known.server.gpus)
        sight = sight.later(now_s - answered_s)
        if known.engine is not None and not sight_agent.knows(agent, known.server.name):
            age_s, moved = now_s - known.engine.at_s, known.standing.live_by is not None
            figures = sight_engine.figures(known.engine, known.before, age_s=age_s, moved=moved)
            sight = sight_facts.with_engine(sight, known.facts, known.engine, figures)
        if sight.gpus is None and self._gpus.at_s is not None:
            found = sight_gpus.of_facts(self._gpus.rows, known.server.gpus, now_s - self._gpus.at_s)
            sight = replace(sight, gpus=found, gpu_trouble=sight.gpu_trouble or self._gpus.problem)
        if sight.gpu_trouble is not None and not _needs_gpu(known.server):
            sight = replace(sight, gpu_trouble=None)
        return sight

    def _lines(self, known: _Known, limit: int) -> tuple[Mapping[str, object], ...]:
        found: list[str] = []

        def take(event: Mapping[str, object]) -> None:
            found.extend(reading.texts(event.get("lines")))

        self._reach().call("logs", known.server, {"lines": limit}, on_event=take, timeout_s=ASK_S)
        redact = self._redactor(known).redact
        return tuple({"line": redact(line)} for line in found)

    def _redactor(self, known: _Known) -> Redactor:
        """Return what blots out the secrets of a server that can be read here; they are read once."""
        if known.redactor is None:
            values: list[str] = []
            for ref in known.server.secrets.values():
                with contextlib.suppress(SpecctlError):
                    values.append(resolve_secret(ref).reveal())
            known.redactor = Redactor(values)
        return known.redactor

    def _of_server(self, op: str, known: _Known, args: Answer) -> Answer:
        try:
            return self._reach().call(op, known.server, args, timeout_s=ASK_S)
        except ConnectError:
            self._hang_up()
            raise

    def _call(self, op: str, args: Answer, timeout_s: float) -> Answer:
        try:
            return self._reach().session.call(op, args, timeout_s=timeout_s)
        except ConnectError:
            self._hang_up()
            raise

    def _reach(self) -> Contact:
        with self._dialling:
            if self._closed:
                raise ConnectError("the watch has ended", host=self.host.name)
            if self._contact is None:
                self._contact = self._dial(self.host)
            return self._contact

    def _hang_up(self) -> None:
        """Forget a connection that was lost, and how servers stood: the next look dials anew and asks."""
        with self._dialling:
            found, self._contact = self._contact, None
        if found is not None:
            found.close()
        for known in self._known.values():
            known.standing_s = 0.0
            known.engine = known.before = None


def _each_s(known: _Known) -> float:
    """Return how often it is to be asked how a server stands: more often while something is under way."""
    standing = known.standing
    if standing is None:
        return 0.0
    steady = (
        standing.state in (State.READY.value, State.STOPPED.value, State.NOT_DEPLOYED.value) or known.engine is not None
    )
    return STANDING_EACH_S if steady and standing.guard is None and standing.lease is None else LOADING_EACH_S


def _needs_gpu(server: Server) -> bool:
    """Claim that what keeps GPUs from being seen matters to a server; asked seldom, for engines take a while to import."""
    from specctl.rollout.launch import engines

    return engines()[server.profile.engine].needs_gpu


def _agent_of(answer: Answer) -> tuple[Answer, str | None]:
    """Return what the agent answered; empty, and why where there is an agent, when it did not."""
    told = reading.mapping(answer.get("agent"))
    line = reading.text(told.get("line"))
    if line is None:
        problem = reading.text(told.get("problem"))
        return {}, problem if told.get("installed") is not False else None
    try:
        return wire.result_of(line.encode()), None
    except SpecctlError as error:
        return {}, error.message
