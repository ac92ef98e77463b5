"""Plan a calibration: reach the server, see what it is and who else uses it, choose modes and concurrencies, say what it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version

from specctl.adapters import runs
from specctl.control import wire
from specctl.control.calibration_facts import Facts, differences
from specctl.control.mode import Mode
from specctl.control.sample import engine_info
from specctl.control.sample.engine import EngineInfo
from specctl.errors import LockHeldError, SpecctlError, UnhealthyError, UnsupportedError, UsageError
from specctl.fleet.types import AgentMode, Host, Server
from specctl.measure.calibrate import Ask, Pace, Study, TooShortError, planned
from specctl.measure.calibrate_wire import MisreadError, study_of, study_wire
from specctl.measure.load import Closed, Level, Prompt
from specctl.measure.prompts import digest
from specctl.ops import agent, calibrate_modes
from specctl.ops.contact import Contact, contacts
from specctl.ops.engine_http import EngineClient, NoAnswerError
from specctl.ops.engine_live import Engine
from specctl.ops.load import run_level
from specctl.ops.load_counters import info
from specctl.ops.stored import reach
from specctl.rollout import reading
from specctl.rollout.agent_moves import live_move
from specctl.rollout.facts import HostFacts, ServerFacts, as_deployed, stored_knobs, stored_units

KIND = "calibrate"
LIVE, RESTART = "live", "restart"
# A live change is two calls through the connection.
LIVE_S = 0.5
# Where no load of this host is on record; what the field's own server takes.
ASSUMED_LOAD_S = 480.0
PROBE_TOKENS = 32
# A segment's warm-up and end: two requests, less what overlaps with its window.
REQUESTS_AROUND = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line says; `way`: live, restart or None (live where the engine takes it)."""

    ask: Ask
    modes: tuple[str, ...] = ()
    way: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A calibration that can begin, or go on. `inventory`: the server as the inventory has it; `server`: as it is deployed.

    `hold`: the agent acts and is to be held; `load_s`: what a restart takes by this host's past, None where none is on record.
    """

    contact: Contact
    inventory: Server
    server: Server
    prompts: tuple[Prompt, ...]
    study: Study
    left_s: float
    hold: bool = False
    load_s: float | None = None
    warnings: tuple[str, ...] = ()


def kept(name: str) -> Study:
    """Return a calibration that was kept; raises UsageError where there is none of that name, or it cannot be read."""
    found = runs.read(KIND, name)
    row = found.content.get("study")
    try:
        return study_of(row if isinstance(row, Mapping) else {})
    except MisreadError as error:
        raise UsageError(
            f"{found.id} cannot be read: {error}", hint="begin anew: specctl calibrate --host H"
        ) from error


def keep(study: Study) -> None:
    """Keep a calibration as far as it is."""
    runs.keep(study.id, {"study": study_wire(study)})


@contextmanager
def plan(pair: tuple[Host, Server], wish: Wish, prompts: tuple[Prompt, ...]) -> Iterator[Planned]:
    """Reach the server and plan a new calibration; yields with the connection open."""
    with _reached(pair) as site:
        yield _begin(site, wish, prompts)


@contextmanager
def plan_on(
    pair: tuple[Host, Server], old: Study, prompts: tuple[Prompt, ...], limit_s: float | None
) -> Iterator[Planned]:
    """Reach the server and go on with a calibration that was kept, while what it holds for still holds."""
    with _reached(pair) as site:
        yield _go_on(site, old, prompts, limit_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """A server that was reached and serves."""

    contact: Contact
    inventory: Server
    server: Server
    host_facts: HostFacts
    facts: ServerFacts
    client: EngineClient
    told: EngineInfo
    was: Mode


@contextmanager
def _reached(pair: tuple[Host, Server]) -> Iterator[_Site]:
    host, server = pair
    with contacts([host]) as found:
        contact = found[host.name]
        if isinstance(contact, SpecctlError):
            raise contact
        try:
            yield _site(contact, server)
        except SpecctlError as error:
            error.host = error.host or host.name
            raise


def _site(contact: Contact, server: Server) -> _Site:
    host_facts = reach(contact, server)
    facts = host_facts.servers[server.name]
    host = contact.host.name
    if facts.current is None or facts.unit.active != "active":
        raise UsageError(
            f"server {server.name} does not run, and what ran before is brought back at the end",
            hint=f"specctl {'deploy' if facts.current is None else 'start'} --host {host} --server {server.name}",
        )
    if facts.guard is not None:
        raise UsageError(f"server {server.name}: {facts.guard.words()}", hint="wait for its end: specctl status")
    if facts.lease is not None:
        raise LockHeldError(
            f"{facts.lease.owner} acts on server {server.name}", hint=f"specctl lock status --host {host}"
        )
    deployed = as_deployed(server, facts.current.manifest)
    client = EngineClient.of(contact, deployed)
    told = info(client)
    if client.get("/ready").status != 200 or told is None:
        raise UnhealthyError(f"server {server.name} does not serve now", hint=f"specctl health --host {host}")
    was = engine_info.claimed(told, server.profile, _knobs(facts))
    if was is None:
        raise UnsupportedError("the engine does not tell which mode it runs", hint="specctl ab compares two modes")
    return _Site(
        contact=contact,
        inventory=server,
        server=deployed,
        host_facts=host_facts,
        facts=facts,
        client=client,
        told=told,
        was=was,
    )


def _knobs(facts: ServerFacts) -> Mapping[str, Mapping[str, int]]:
    """Return the knobs of each algo that the release on the host can run."""
    manifest = facts.current.manifest if facts.current is not None else {}
    return {algo: stored_knobs(manifest, algo) for algo in stored_units(manifest)}


def _begin(site: _Site, wish: Wish, prompts: tuple[Prompt, ...]) -> Planned:
    ask, current = wish.ask, site.facts.current
    assert current is not None, "a server without a release was refused"
    chosen = calibrate_modes.wanted(wish.modes, site.inventory, _knobs(site.facts), site.was)
    engine = Engine(site.contact, site.server)
    refusal = calibrate_modes.live_refusal(engine, site.server, site.was, chosen)
    way = calibrate_modes.way_of(wish.way, refusal)
    _refuse_moved(site, way)
    ask = replace(ask, high=min(ask.high, _most(site, ask)))
    load_s = _load_s(site, chosen)
    request_s = _request_s(site, prompts) * ask.tokens
    pace = Pace(
        around_s=REQUESTS_AROUND * request_s,
        switch_s=LIVE_S if way == LIVE else load_s or ASSUMED_LOAD_S,
        by_mode=way == RESTART,
    )
    try:
        question, window_s = planned(chosen, replace(ask, limit_s=ask.limit_s - _after_s(way, pace.switch_s)), pace)
    except TooShortError as error:
        needed = error.needed_s + _after_s(way, pace.switch_s)
        raise UsageError(
            f"{len(chosen)} modes between {ask.low} and {ask.high} requests take {needed / 60:.0f} min at least",
            hint=f"--for {needed / 60 + 1:.0f}m, or fewer --mode",
        ) from error
    study = Study(
        id=runs.new_id(KIND),
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        specctl=version("specctl-fleet"),
        host=site.contact.host.name,
        server=site.server.name,
        ask=replace(ask, window_s=window_s),
        question=question,
        facts=facts_of(site.host_facts, site.facts, site.server, site.told, f"{ask.prompts} {digest(prompts)}"),
        way=way,
        before=(current.id, current.algo),
        was=site.was,
        max_running=site.told.max_running,
    )
    return _planned(site, study, prompts, ask.limit_s, load_s)


def _go_on(site: _Site, old: Study, prompts: tuple[Prompt, ...], limit_s: float | None) -> Planned:
    now = facts_of(site.host_facts, site.facts, site.server, site.told, f"{old.ask.prompts} {digest(prompts)}")
    strange = differences(replace(old.facts, context_tokens=None), now)
    if strange:
        raise UsageError(f"{old.id} cannot go on: {'; '.join(strange)}", hint="begin anew: specctl calibrate --host H")
    left_s = old.ask.limit_s - old.spent_s if limit_s is None else limit_s
    least_s = old.question.segment_s + 2 * old.question.switch_s
    if left_s < least_s:
        raise UsageError(f"{old.id} has used its time", hint=f"specctl calibrate --resume {old.id} --for 10m")
    return _planned(site, old, prompts, left_s, _load_s(site, old.question.modes))


def _planned(site: _Site, study: Study, prompts: tuple[Prompt, ...], left_s: float, load_s: float | None) -> Planned:
    hold, words = _agent(site.contact, site.server)
    return Planned(
        contact=site.contact,
        inventory=site.inventory,
        server=site.server,
        prompts=prompts,
        study=study,
        left_s=left_s,
        hold=hold,
        load_s=load_s,
        warnings=tuple(filter(None, (_busy(site.client), *words))),
    )


def _refuse_moved(site: _Site, way: str) -> None:
    moved = live_move(site.facts)
    if moved is not None and way == RESTART:
        raise UsageError(
            f"{moved.who} has the running engine on {moved} live, which a start would not bring back",
            hint=f"specctl restart --host {site.contact.host.name} first",
        )


def _most(site: _Site, ask: Ask) -> int:
    """Return the most requests that the engine runs at once; refuse a range that begins beyond."""
    most = site.told.max_running
    if most is None:
        return ask.high
    if ask.low >= most:
        raise UsageError(f"the engine runs at most {most} requests at once", hint=f"--concurrency 1..{most}")
    return most


def _after_s(way: str, switch_s: float) -> float:
    """Return the seconds that are kept for bringing back what ran before."""
    return switch_s if way == RESTART else LIVE_S


def _load_s(site: _Site, chosen: Sequence[Mode]) -> float | None:
    """Return the mean seconds of this host's past loads of these algos; None where none is on record."""
    loads = [load.total_s for algo in {mode.algo for mode in chosen} for load in site.facts.past_loads(algo)]
    return sum(loads) / len(loads) if loads else None


def _request_s(site: _Site, prompts: tuple[Prompt, ...]) -> float:
    """Return the seconds a token that a request alone takes: two short ones are sent. Raises UnhealthyError where they fail."""
    level = Level(pace=Closed(concurrency=1), tokens=PROBE_TOKENS, warmup=1, rounds=1, limit_s=60.0)
    run = run_level(site.client, level, prompts)
    whole = [each for each in run.timings if each.whole]
    if not whole:
        failures = [each.failure for each in run.timings if each.failure is not None]
        raise UnhealthyError(
            f"a first request failed: {failures[0] if failures else run.stopped}",
            hint=f"specctl health --host {site.contact.host.name}",
        )
    return sum(each.ended_s - each.sent_s for each in whole) / sum(each.output_tokens or 1 for each in whole)


def _busy(client: EngineClient) -> str | None:
    try:
        running = client.running_requests()
    except NoAnswerError:
        return None
    if not running:
        return None
    return f"{running} requests of others run: what they disturb is not counted, so quiet hours measure more"


def _agent(contact: Contact, server: Server) -> tuple[bool, tuple[str, ...]]:
    """Return whether the host's agent acts on the server and is not held yet, and what is to be said of it."""
    try:
        told = agent.put(contact, wire.Status(server=server.name))
    except SpecctlError:
        return False, ()  # no agent answers: nobody acts
    rows = [row for row in reading.rows(told.get("servers")) if row.get("server") == server.name]
    acts = any(row.get("conduct") == AgentMode.ACT.value for row in rows)
    held = any(row.get("held") is not None for row in rows)
    if not acts or held:
        return False, ()
    return True, ("the agent is in mode act: it is held meanwhile, and resumed at the end",)


def facts_of(host_facts: HostFacts, facts: ServerFacts, server: Server, told: EngineInfo | None, prompts: str) -> Facts:
    """Return what a calibration holds for; the context is known once something was measured."""
    gpus = [gpu for gpu in host_facts.graphics.gpus or () if not server.gpus or gpu.index in server.gpus]
    models = sorted({gpu.model for gpu in gpus if gpu.model is not None})
    whole = bool(gpus) and all(gpu.model is not None for gpu in gpus)
    rows = "\n".join(f"{name} {found}" for name, found in sorted(facts.package_digests.items()))
    return Facts(
        gpu=", ".join(models) if whole else None,
        gpu_count=len(gpus) if whole else None,
        driver=host_facts.graphics.driver,
        profile=server.profile.name,
        engine_version=None if told is None else told.version,
        packages=hashlib.sha256(rows.encode()).hexdigest()[:12] if rows else None,
        target=server.target.name,
        draft=None if server.draft is None else server.draft.name,
        tensor_parallel=server.tp,
        prompts=prompts,
    )
