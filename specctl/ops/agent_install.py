"""Bring the agent to hosts: look, choose an interpreter and wheels, show, then carry, unpack and start; one version a host."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specctl.adapters import agent_wheels
from specctl.adapters.templates import Templates
from specctl.errors import SpecctlError, UnsupportedError, UsageError
from specctl.fleet.types import Host, ServiceManager
from specctl.ops.contact import Contact, contacts, in_parallel
from specctl.ops.reporter import Reporter
from specctl.rollout import agent_unit, reading, wheel_tags
from specctl.rollout.agent_plan import AgentPlan
from specctl.rollout.outcome import Outcome
from specctl.rollout.wheel_tags import Interpreter

PREFIX = "/opt/specctl"
LOOK_S = 60.0
PUT_S = 300.0
BUILD_S = 240.0
ACTIVATE_S = 300.0
NO_PYTHON = (
    "install Python 3.11 or newer on the host (apt-get install python3), or let an engine's environment be built on one"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for: wheels from a folder in place of an index, where metrics are served; `upgrade` wants an agent there."""

    wheelhouse: Path | None = None
    metrics: str | None = None
    upgrade: bool = False


@dataclass(slots=True)
class House:
    """The wheels of one command, in a folder on this machine; each is gathered once."""

    folder: Path
    given: Path | None
    release: str
    _own: str | None = None
    _fetched: set[tuple[object, ...]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def place(self, name: str) -> Path:
        """Return the folder that a wheel lies in."""
        return self.given if self.given is not None and (self.given / name).is_file() else self.folder

    def wheels(self, python: Interpreter) -> Mapping[str, str]:
        """Return the wheels that the agent needs under an interpreter, with their sums; raises UnsupportedError."""
        with self._lock:
            return {**self._own_wheel(), **self._libraries(python)}

    def _own_wheel(self) -> Mapping[str, str]:
        if self._own is None:
            offered = agent_wheels.sums(self.given) if self.given is not None else {}
            mine = [name for name in offered if wheel_tags.distribution(name) == (agent_wheels.NAME, self.release)]
            self._own = mine[0] if mine else agent_wheels.own(self.folder)
        return {self._own: agent_wheels.sums(self.place(self._own))[self._own]}

    def _libraries(self, python: Interpreter) -> Mapping[str, str]:
        lock = agent_wheels.lock_file()
        pins = wheel_tags.locked(lock.read_text(encoding="utf-8"))
        key = (python.version, python.machine, python.glibc)
        if self.given is None and key not in self._fetched:
            agent_wheels.download(self.folder, python)
            self._fetched.add(key)
        found, missing = wheel_tags.chosen(pins, agent_wheels.sums(self.given or self.folder), python)
        if missing:
            where = f"in {self.given}" if self.given is not None else "on the index"
            raise UnsupportedError(f"there is no {missing[0]} {where}", hint=agent_wheels.HOUSE_HINT)
        return found


@dataclass(slots=True)
class Prepared:
    """One host that was looked at: its contact and its plan."""

    contact: Contact
    plan: AgentPlan


@dataclass(slots=True)
class Installation:
    """An install under way: plans, and the hosts that could not be planned."""

    house: House
    prepared: list[Prepared] = field(default_factory=list)
    failed: list[Outcome] = field(default_factory=list)

    @property
    def to_do(self) -> list[Prepared]:
        """Return the hosts with something to do."""
        return [one for one in self.prepared if one.plan.nothing is None]

    def planned(self) -> tuple[Outcome, ...]:
        """Return the outcomes where nothing is carried out: what could be planned is well."""
        return (*self.failed, *(Outcome(host=one.plan.host) for one in self.prepared))

    def carry_out(self, reporter: Reporter) -> tuple[Outcome, ...]:
        """Install on every host that has something to do; returns an outcome for each host."""
        found = [*self.failed, *(Outcome(host=one.plan.host) for one in self.prepared if one.plan.nothing is not None)]
        in_parallel(lambda one: found.append(_outcome(one, lambda: _install(one, self.house, reporter))), self.to_do)
        return tuple(sorted(found, key=lambda outcome: outcome.host))


@contextlib.contextmanager
def installation(hosts: Sequence[Host], request: Request, templates: Templates) -> Iterator[Installation]:
    """Look at every host and plan; yields what can be carried out."""
    with tempfile.TemporaryDirectory(prefix="specctl-wheels-") as folder, contacts(hosts) as reached:
        house = House(folder=Path(folder), given=request.wheelhouse, release=agent_wheels.version())
        if request.wheelhouse is not None:
            agent_wheels.sums(request.wheelhouse)
        work = Installation(house=house)

        def one(host: Host) -> None:
            found = reached[host.name]
            try:
                if isinstance(found, SpecctlError):
                    raise found
                work.prepared.append(Prepared(contact=found, plan=_planned(found, request, house, templates)))
            except SpecctlError as error:
                error.host = error.host or host.name
                work.failed.append(Outcome(host=host.name, error=error))

        in_parallel(one, hosts)
        work.prepared.sort(key=lambda each: each.plan.host)
        yield work


def look(contact: Contact, *, interpreters: bool = False) -> Mapping[str, object]:
    """Return what of an agent is on a host (docs/host-session.md, agent.look)."""
    engines = sorted({server.python for server in contact.host.servers})
    args = {"prefix": PREFIX, "interpreters": interpreters, "engines": engines}
    return contact.session.call("agent.look", args, timeout_s=LOOK_S)


def remove(hosts: Sequence[Host], *, purge: bool, told: Callable[[str, tuple[str, ...]], None]) -> tuple[Outcome, ...]:
    """Take the agent off hosts; `purge`: its state and user too. `told`: of each host that is done, what was removed there."""
    outcomes: list[Outcome] = []

    def one(contact: Contact) -> None:
        found = contact.session.call("agent.remove", {"prefix": PREFIX, "purge": purge}, timeout_s=ACTIVATE_S)
        told(contact.host.name, reading.texts(found.get("removed")))

    with contacts(hosts) as reached:
        in_parallel(lambda host: outcomes.append(_on(host, reached[host.name], one)), list(hosts))
    return tuple(sorted(outcomes, key=lambda outcome: outcome.host))


def _on(host: Host, found: Contact | SpecctlError, work: Callable[[Contact], None]) -> Outcome:
    try:
        if isinstance(found, SpecctlError):
            raise found
        work(found)
    except SpecctlError as error:
        error.host = error.host or host.name
        return Outcome(host=host.name, error=error)
    return Outcome(host=host.name)


def _outcome(one: Prepared, work: Callable[[], None]) -> Outcome:
    return _on(one.contact.host, one.contact, lambda _contact: work())


def _planned(contact: Contact, request: Request, house: House, templates: Templates) -> AgentPlan:
    host = contact.host
    if host.manager is not ServiceManager.SYSTEMD:
        raise UnsupportedError(
            "the agent needs systemd", hint="set service_manager: systemd for the host, where it runs systemd"
        )
    seen = look(contact, interpreters=True)
    if seen.get("root") is not True:
        raise UnsupportedError("only root can install the agent", hint="set sudo: true for the host in the inventory")
    installed = reading.mapping(seen.get("installed"))
    before = reading.text(installed.get("version"))
    if request.upgrade and before is None:
        raise UsageError("there is no agent to upgrade", hint=f"specctl agent install --host {host.name}")
    python, unfit = _interpreter(seen)
    config = agent_unit.config(host, reading.mapping(seen.get("config")), request.metrics)
    units = agent_unit.units(templates, host=host, prefix=PREFIX, python=python.path)
    wheels = house.wheels(python)
    version = _version(house.release, wheels, units, config, python)
    running = reading.mapping(seen.get("unit")).get("ActiveState") == "active"
    return AgentPlan(
        host=host.name,
        version=version,
        before=before,
        python=python,
        wheels=wheels,
        units=units,
        config=config,
        unfit=unfit,
        nothing=f"version {version} runs already" if version == before and running else None,
    )


def _interpreter(seen: Mapping[str, object]) -> tuple[Interpreter, tuple[str, ...]]:
    """Choose the first interpreter that can run the agent; raises UnsupportedError that says why each of them cannot."""
    unfit: list[str] = []
    for row in reading.rows(seen.get("interpreters")):
        path, why = str(row.get("path")), row.get("why")
        if why is None:
            return _read(path, row), tuple(unfit)
        unfit.append(f"{path}: {why}")
    told = "; ".join(unfit) or "there is none"
    raise UnsupportedError(f"no Python on the host can run the agent ({told})", hint=NO_PYTHON)


def _read(path: str, row: Mapping[str, object]) -> Interpreter:
    version, libc = reading.wholes(row.get("version")), reading.texts(row.get("libc"))
    if len(version) < 2:
        raise UnsupportedError(f"{path} does not say its version", hint=NO_PYTHON)
    numbers = [int(part) for part in (libc[1] if len(libc) == 2 else "").split(".") if part.isdecimal()]
    glibc = (numbers[0], numbers[1]) if libc[:1] == ("glibc",) and len(numbers) >= 2 else None
    return Interpreter(path=path, version=(version[0], version[1]), machine=str(row.get("machine")), glibc=glibc)


def _version(
    release: str, wheels: Mapping[str, str], units: Mapping[str, str], config: Mapping[str, object], python: Interpreter
) -> str:
    """Name a version by all that it is made of: the same again is nothing to do."""
    whole = json.dumps([dict(wheels), dict(units), dict(config), python.path, python.text], sort_keys=True)
    return f"{release}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _install(one: Prepared, house: House, reporter: Reporter) -> None:
    plan, session = one.plan, one.contact.session
    for name, digest in plan.wheels.items():
        reporter.step(plan.host, "carry", name)
        content = agent_wheels.content(house.place(name), name)
        put = {"prefix": PREFIX, "name": name, "sha256": digest, "content": content}
        session.call("agent.put", put, timeout_s=PUT_S)
    reporter.step(plan.host, "unpack", plan.version)
    wheels = [{"name": name, "sha256": digest} for name, digest in plan.wheels.items()]
    build: dict[str, object] = {
        "prefix": PREFIX,
        "version": plan.version,
        "release": house.release,
        "python": plan.python.path,
        "wheels": wheels,
    }
    session.call("agent.build", build, timeout_s=BUILD_S)
    reporter.step(plan.host, "start", plan.version)
    units = [{"name": name, "content": content} for name, content in plan.units.items()]
    session.call(
        "agent.activate",
        {"prefix": PREFIX, "version": plan.version, "units": units, "config": dict(plan.config)},
        timeout_s=ACTIVATE_S,
    )
    reporter.final(plan.host, "deployed", f"agent {plan.version}, with Python {plan.python.text} at {plan.python.path}")
