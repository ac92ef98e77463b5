"""Gather the doctor's evidence of one server over one connection: facts, log, looks at the engine, GPUs, past runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from specctl.control import wire
from specctl.control.mode import Mode
from specctl.control.sample import engine_info
from specctl.control.sample.engine import EngineInfo
from specctl.doctor import lines
from specctl.doctor.evidence import Evidence, GpuLook, Log, Observation
from specctl.errors import ConnectError, SpecctlError
from specctl.fleet.types import Server
from specctl.ops import agent, doctor_configuration, doctor_gpus, doctor_look, kept_speeds
from specctl.ops.contact import Contact
from specctl.ops.doctor_files import reader_of
from specctl.ops.doctor_look import Looks
from specctl.ops.engine_http import EngineClient
from specctl.ops.execute import run_there
from specctl.ops.stored import reach_deployed
from specctl.rollout import reading
from specctl.rollout.agent_moves import live_move
from specctl.rollout.facts import ServerFacts
from specctl.rollout.launch import engines
from specctl.rollout.observation import Port

LOG_LINES = 20_000
"""Of a busy server an hour or so; more would take longer to fetch than to read."""
LOG_S = 60.0
LOOKS = 3
APART_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to look: `live` puts a short load on the server; `since_s`: of the log only so many seconds before its newest line."""

    live: bool = False
    since_s: float | None = None
    looks: int = LOOKS
    apart_s: float = APART_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One server that was reached: as it is deployed, its facts, and the way to its engine (None: nothing of ours answers)."""

    contact: Contact
    wanted: Server
    server: Server
    facts: ServerFacts
    client: EngineClient | None


def subject(contact: Contact, wanted: Server) -> Subject:
    """Reach a server at the address of what runs there."""
    deployed, facts = reach_deployed(contact, wanted)
    client = EngineClient.of(contact, deployed) if facts.port is Port.OWN else None
    return Subject(contact=contact, wanted=wanted, server=deployed, facts=facts, client=client)


def gather(found: Subject, wish: Wish) -> Evidence:
    """Return the evidence without any load of ours; raises ConnectError where the host is lost, no error of the engine."""
    client, contact = found.client, found.contact
    looks = None if client is None else Looks(client, count=wish.looks, apart_s=wish.apart_s)
    try:
        gpus = list(doctor_gpus.look(contact))
        printed = log_lines(found)
        log = read_log(found, printed, wish.since_s)
        started_s = _started(found)
        info, said = (None, {}) if client is None else doctor_look.info(client)
        stated = doctor_configuration.configuration(contact, found.wanted, found.facts, info, said)
        speeds = kept_speeds.known(contact.host, found.wanted)
    finally:
        seen: Sequence[Observation] = () if looks is None else looks.close()
    gpus += doctor_gpus.look(contact) if gpus else ()
    watched, knows_xids = doctor_gpus.with_faults(contact, gpus) if gpus else ((), False)
    evidence = Evidence(
        host=contact.host.name,
        server=found.server.name,
        mode=_one_mode(found, info, stated.claimed or stated.deployed),
        observations=tuple(seen),
        started_s=started_s,
        steady=_steady(found, _one_mode(found, info, stated.claimed), stated.deployed) and untold(found, printed),
        same_start=_same_start(found) if seen else None,
        info=info,
        log=log,
        agent_finds=_agent_finds(found),
        speeds=speeds,
        configuration=replace(stated, serving=_serves(found, seen)),
    )
    return _with_profile(evidence, found, watched, knows_xids=knows_xids)


def _with_profile(evidence: Evidence, found: Subject, gpus: Sequence[GpuLook], *, knows_xids: bool) -> Evidence:
    profile = found.server.profile
    return replace(
        evidence,
        counts_root=profile.counts_root,
        counts_bonus=profile.counts_bonus,
        has_tree_line=profile.tree_line is not None,
        gpus=tuple(gpus),
        no_gpus=not gpus and not engines()[profile.engine].needs_gpu,
        knows_xids=knows_xids,
    )


def _agent_finds(found: Subject) -> tuple[str, ...] | None:
    """Return what the host's agent finds of this server; None where there is no agent, or it does not watch it."""
    try:
        told = agent.put(found.contact, wire.Status(server=found.server.name))
    except ConnectError:
        raise
    except SpecctlError:
        return None
    rows = [row for row in reading.rows(told.get("servers")) if row.get("server") == found.server.name]
    return reading.texts(rows[0].get("findings")) if rows else None


def _serves(found: Subject, seen: Sequence[Observation]) -> bool | None:
    if found.facts.unit.active is None and found.facts.port is None:
        return None
    return any(one.look is not None and one.look.ready for one in seen)


def _one_mode(found: Subject, info: EngineInfo | None, mode: Mode | None) -> Mode | None:
    """Return the mode; None where the engine follows a table, and so decodes in more modes than one."""
    return None if info is not None and engine_info.follows(info, found.server.profile) else mode


def _steady(found: Subject, claimed: Mode | None, deployed: Mode | None) -> bool:
    """Claim that one mode ran since the start: nobody moved it live, and the engine says what the release says."""
    if live_move(found.facts) is not None or claimed is None or deployed is None:
        return False
    return claimed.algo == deployed.algo and dict(deployed.knobs).items() <= dict(claimed.knobs).items()


def untold(found: Subject, printed: Sequence[str]) -> bool:
    """Claim that nobody told the running engine another mode and back: by its access lines, which must reach back to its start."""
    if not any(algo.live_knobs for algo in found.server.profile.algos.values()):
        return True
    return 0 < len(printed) < LOG_LINES and not any(lines.is_change(text) for text in printed)


def _same_start(found: Subject) -> bool | None:
    """Claim that the server was not started anew while we looked."""
    before = found.facts.unit.invocation
    if before is None:
        return None
    try:
        after = reach_deployed(found.contact, found.wanted)[1].unit.invocation
    except ConnectError:
        raise
    except SpecctlError:
        return None
    return None if after is None else after == before


def log_lines(found: Subject) -> Sequence[str]:
    """Return the newest LOG_LINES lines since the server's start; nothing where they cannot be read."""
    told: list[str] = []
    args = {"lines": LOG_LINES, "invocation": found.facts.unit.invocation}
    try:
        found.contact.call("logs", found.server, args, on_event=lambda event: told.extend(_of(event)), timeout_s=LOG_S)
    except ConnectError:
        raise
    except SpecctlError:
        return ()
    return told


def _of(event: Mapping[str, object]) -> tuple[str, ...]:
    return reading.texts(event.get("lines"))


def read_log(found: Subject, told: Sequence[str], since_s: float | None = None) -> Log | None:
    """Return what `log_lines` told, as far as LOG_LINES reach; None where there is no line."""
    if not told:
        return None
    whole = len(told) < LOG_LINES and since_s is None
    kept = told if since_s is None else lines.newest(told, since_s)
    log = lines.read(kept, reader_of(found.server.profile), whole=whole)
    return replace(log, text=None if log.text is None else found.contact.redactor.redact(log.text))


def _started(found: Subject) -> float | None:
    """Return when the server's process started, on our monotonic clock; None where the host does not say."""
    pid = found.facts.unit.main_pid
    if pid is None:
        return None
    printed = b""
    try:
        for name, content in run_there(found.contact.transport, ("ps", "-o", "etimes=", "-p", str(pid))):
            printed += content if name == "out" else b""
    except ConnectError:
        raise
    except (SpecctlError, TimeoutError, OSError):
        return None
    text = printed.decode("ascii", "replace").strip()
    return time.monotonic() - int(text) if text.isdigit() and len(text) < 12 else None
