"""Bring an arm of an experiment into service: a deploy's act under the experiment's own lease, with one way back for all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from specctl.errors import ConnectError, LockHeldError, NoHealthyReleaseError, SpecctlError
from specctl.fleet.types import Server
from specctl.ops import act as acts
from specctl.ops import render
from specctl.ops.act import Care
from specctl.ops.contact import Contact
from specctl.ops.deploy import aim_of, blank_record, live_server, settle
from specctl.ops.prepare import Prepared, prepare, read_release, secrets_of
from specctl.ops.reporter import Reporter
from specctl.ops.stored import prepare_stored, reach
from specctl.ops.turn import Aim, Turn
from specctl.rollout.facts import as_deployed, stored_knobs
from specctl.rollout.record import Act, Record
from specctl.rollout.release import differing

if TYPE_CHECKING:
    from specctl.adapters.templates import Templates


@dataclass(slots=True)
class Stop:
    """Whether the operator wants the experiment to end: `asked` stays set, `act` is what the act under way heeds and clears."""

    asked: threading.Event = field(default_factory=threading.Event)
    act: threading.Event = field(default_factory=threading.Event)

    def set(self) -> None:
        """Ask for the end."""
        self.asked.set()
        self.act.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where an experiment runs: the host, the server, and under which lease; `why` is kept in every record."""

    contact: Contact
    server: Server
    token: int
    reporter: Reporter
    stop: Stop
    why: str
    templates: Templates


def carried(
    bench: Bench, work: Callable[[], None], back: Callable[[], None], *, told: bool
) -> tuple[bool, SpecctlError | None]:
    """Do the work and bring back what ran before; returns whether that runs, and why the work ended before its time.

    `told`: the running engine is told what it ran before, which takes no load. What is not ours any more is left alone.
    """
    error: SpecctlError | None = None
    try:
        work()
    except SpecctlError as failed:
        error = failed
    except BaseException as left:
        # A fault of ours, or a second Ctrl-C: that one starts nothing any more, and leaves no engine in a mode that nobody chose.
        if told or isinstance(left, Exception):
            _brought(bench, back, None)
        raise
    trouble = _brought(bench, back, error)
    return trouble is None, trouble or error


def _brought(bench: Bench, back: Callable[[], None], error: SpecctlError | None) -> SpecctlError | None:
    """Bring back what ran before; returns what kept it from running. A lost connection is made anew, and its lease resumed."""
    if isinstance(error, LockHeldError | NoHealthyReleaseError):
        return error
    try:
        if isinstance(error, ConnectError):
            bench.contact.reopen(bench.contact.session)
            bench.contact.call("lease.acquire", bench.server, {"resume": bench.token})
        back()
    except SpecctlError as trouble:
        return trouble
    return None


def way_back(contact: Contact, server: Server, before: tuple[str, str]) -> Aim:
    """Return what ran before the experiment, as it lies on the host; raises RemoteCommandError where it is gone."""
    release, algo = before
    manifest, _ = read_release(contact, server, release)
    deployed = as_deployed(server, manifest)
    return Aim(release=release, algo=algo, server=deployed, knobs=stored_knobs(manifest, algo))


def ready(bench: Bench, server: Server, *releases: str | None) -> Prepared:
    """Prepare a fresh start of a server's algo: from one of these releases on the host, as long as it is what would be rendered."""
    contact = bench.contact
    host_facts = reach(contact, server, brief=True)
    values = secrets_of(server) if any(releases) else {}
    for release in dict.fromkeys(releases):
        if release is None or release not in host_facts.servers[server.name].releases:
            continue
        manifest, _ = read_release(contact, server, release)
        rendered = render.release(bench.templates, contact.host, server, release_id=release, secrets=values)
        if not differing(rendered, manifest):
            return prepare_stored(contact, server, release, server.algo, host_facts=host_facts, force=True)
    return prepare(contact, server, server.algo, templates=bench.templates, force=True)


def put(bench: Bench, item: Prepared, back: Aim) -> Record:
    """Start what is prepared and gate it; where that fails what ran before the experiment is restored, and the reason raised."""
    contact = bench.contact
    bench.stop.act.clear()
    if bench.stop.asked.is_set():
        bench.stop.act.set()
    turn = Turn(
        contact=contact,
        server=bench.server,
        live=live_server(bench.server, item.facts),
        token=bench.token,
        reporter=bench.reporter,
        interrupted=bench.stop.act,
        facts=item.facts,
        act=Act.DEPLOY if item.plan.writes else Act.SWITCH,
        back=back,
    )
    record = replace(
        blank_record(contact, bench.server, turn.act),
        previous=item.plan.running,
        digests=item.digests,
        reason=bench.why,
        weights_bytes=item.facts.weights_bytes,
    )
    aim = aim_of(item)
    ended = settle(turn, aim, acts.perform(turn, aim, record, Care()))
    if ended.error is not None:
        raise ended.error
    return ended.record


def restore(bench: Bench, back: Aim) -> bool:
    """Bring back what ran before, unless it runs already; claims that there was something to do. Raises what the act ends with."""
    host_facts = reach(bench.contact, bench.server, brief=True)
    facts = host_facts.servers[bench.server.name]
    running = facts.current is not None and (facts.current.id, facts.current.algo) == (back.release, back.algo)
    if running and facts.unit.active == "active" and facts.guard is None:
        return False
    item = prepare_stored(bench.contact, bench.server, back.release, back.algo, host_facts=host_facts, force=True)
    put(replace(bench, stop=Stop()), item, back)
    return True


def prune(bench: Bench, keep: int) -> None:
    """Remove old releases, now that what ran before runs again; one that cannot be removed is no failure of the experiment."""
    try:
        bench.contact.call("release.prune", bench.server, {"keep": keep, "token": bench.token})
    except SpecctlError as error:
        bench.reporter.final(bench.contact.host.name, "warning", f"old releases stay: {error.message}")
