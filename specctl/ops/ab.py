"""The decisive experiment: plan it, run it under one lease, keep every segment, bring back what ran before; never prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING

from specctl.adapters import runs
from specctl.doctor.evidence import Speed
from specctl.errors import SpecctlError, UsageError
from specctl.fleet.types import Server
from specctl.measure import ab_design
from specctl.measure.ab_trial import Ask, Trial, changed
from specctl.measure.ab_wire import MisreadError, trial_of, trial_wire
from specctl.measure.load import Prompt
from specctl.measure.prompts import digest
from specctl.ops import ab_arms, ab_segment, ab_switch, ab_ways, kept_speeds
from specctl.ops.ab_arms import Arms
from specctl.ops.ab_segment import Measuring
from specctl.ops.ab_switch import Bench, Stop
from specctl.ops.contact import Contact, contacts
from specctl.ops.lease import leased
from specctl.ops.prepare import checked, prepare, refused
from specctl.ops.reporter import Reporter
from specctl.ops.stored import reach
from specctl.rollout.agent_moves import live_move
from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.launch import engines
from specctl.rollout.plan import Plan

if TYPE_CHECKING:
    from specctl.adapters.templates import Templates

KIND = "ab"
# What is assumed of an engine that nobody has measured, to say beforehand about how long an experiment takes.
ASSUMED_TOKENS_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an experiment takes: how many loads are left, what one takes by this host's past (None: no load is on record).

    `assumed`: how fast a request is was never measured here, so that `measuring_s` is a guess.
    """

    loads: int
    load_s: float | None
    measuring_s: float
    assumed: bool = False

    @property
    def total_s(self) -> float | None:
        """Return the seconds in all."""
        return None if self.load_s is None else self.loads * self.load_s + self.measuring_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An experiment that can begin, or go on."""

    contact: Contact
    server: Server
    arms: Arms
    trial: Trial
    prompts: tuple[Prompt, ...]
    cost: Cost
    plans: tuple[Plan, ...]
    templates: Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an experiment ended. `error`: why before its time; `restored`: what ran before runs again."""

    trial: Trial
    restored: bool
    error: SpecctlError | None = None
    interrupted: bool = False


def kept(name: str) -> Trial:
    """Return an experiment that was kept; raises UsageError where there is none of that name, or it cannot be read."""
    return _read(runs.read(KIND, name))


def listing() -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """Return all experiments that are kept, oldest first, and a sentence for each that cannot be read."""
    found = runs.listing(KIND)
    trials, faults = [], list(found.faults)
    for each in found.runs:
        try:
            trials.append(_read(each))
        except UsageError as error:
            faults.append(error.message)
    return tuple(trials), tuple(faults)


def _read(found: runs.Kept) -> Trial:
    row = found.content.get("trial")
    try:
        return trial_of(row if isinstance(row, Mapping) else {})
    except MisreadError as error:
        raise UsageError(f"{found.id} cannot be read: {error}", hint="begin anew: specctl ab --a … --b …") from error


def keep(trial: Trial) -> None:
    """Keep an experiment as far as it is."""
    runs.keep(trial.id, {"trial": trial_wire(trial)})


@contextmanager
def planned(
    ask: Ask,
    prompts: tuple[Prompt, ...],
    choose: ab_arms.Choose,
    templates: Templates,
    *,
    old: Trial | None = None,
    skipped: Mapping[str, str] | None = None,
) -> Iterator[Planned]:
    """Reach the host and plan; yields with the connection open. `old`: an experiment to go on with, as long as nothing changed."""
    host, pair = ab_arms.servers_of(ask, choose)
    with contacts([host]) as reached:
        contact = reached[host.name]
        if isinstance(contact, SpecctlError):
            raise contact
        try:
            yield _plan(contact, pair, ask, prompts, templates, old, skipped or {})
        except SpecctlError as error:
            error.host = error.host or host.name
            raise


def _plan(
    contact: Contact,
    pair: tuple[Server, Server],
    ask: Ask,
    prompts: tuple[Prompt, ...],
    templates: Templates,
    old: Trial | None,
    skipped: Mapping[str, str],
) -> Planned:
    host_facts = reach(contact, pair[0])
    facts = host_facts.servers[pair[0].name]
    before = _before(contact, facts, old)
    arms = ab_arms.resolve(contact.host, pair, ask, facts.package_digests)
    trial = _trial(arms, ask, host_facts, facts, digest(prompts), before)
    if old is not None:
        trial = _resumed(old, trial)
    if ask.live:
        ab_ways.refuse_cold(arms.servers, ask)
    plans = () if ask.live else _checked(contact, arms.servers, templates, skipped)
    return Planned(
        contact=contact,
        server=arms.servers[0],
        arms=arms,
        trial=trial,
        prompts=prompts,
        cost=cost(
            trial,
            [load.total_s for server in arms.servers for load in facts.past_loads(server.algo)],
            kept_speeds.known(contact.host, pair[0]),
        ),
        plans=plans,
        templates=templates,
    )


def _before(contact: Contact, facts: ServerFacts, old: Trial | None) -> tuple[str, str]:
    """Return release and algo that are brought back at the end; raises UsageError where nothing sound serves."""
    host = contact.host.name
    if facts.current is None or facts.unit.active != "active":
        hint = f"specctl {'deploy' if facts.current is None else 'start'} --host {host} --server {facts.name}"
        raise UsageError(f"server {facts.name} does not run: an experiment brings back what ran before it", hint=hint)
    if facts.guard is not None:
        raise UsageError(f"server {facts.name}: {facts.guard.words()}", hint="wait for its end: specctl status")
    moved = live_move(facts)
    if moved is not None and old is None:
        raise UsageError(
            f"{moved.who} has the running engine on {moved} live, which a start would not bring back",
            hint=f"specctl pin, then specctl restart --host {host}",
        )
    return old.before if old is not None else (facts.current.id, facts.current.algo)


def _trial(
    arms: Arms, ask: Ask, host_facts: HostFacts, facts: ServerFacts, prompts: str, before: tuple[str, str]
) -> Trial:
    server = arms.servers[0]
    engine = engines()[server.profile.engine]
    gpus = {f"GPU {gpu.index}": gpu.model or "" for gpu in host_facts.graphics.gpus or ()}
    packages = {f"package {name}": found for name, found in facts.package_digests.items()}
    versions = {f"version of {name}": found for name, found in facts.packages.items()}
    driver = {"driver": host_facts.graphics.driver} if host_facts.graphics.driver else {}
    return Trial(
        id=runs.new_id(KIND),
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        specctl=version("specctl-fleet"),
        host=arms.host.name,
        server=server.name,
        ask=ask,
        arms=arms.arms,
        order=ab_design.order(len(arms.arms), ask.cycles, ask.seed),
        pairs=arms.pairs,
        before=before,
        named=arms.contrast.named,
        beside=arms.contrast.beside,
        facts={**gpus, **driver, **versions, **packages, "prompts": prompts},
        exact=not engine.needs_gpu,
        gpu=engine.needs_gpu,
    )


def _resumed(old: Trial, now: Trial) -> Trial:
    """Return the experiment to go on with; raises UsageError where it would be another one."""
    differences = changed(old, now)
    if (old.host, old.server) != (now.host, now.server):
        differences = (f"it ran on {old.server} of {old.host}, not on {now.server} of {now.host}", *differences)
    if differences:
        raise UsageError(
            f"{old.id} cannot go on, its segments would be of two experiments: {'; '.join(differences)}",
            hint="begin anew with the same words, or put back what changed",
        )
    return replace(old, resumed=old.resumed + 1)


def _checked(
    contact: Contact, servers: Sequence[Server], templates: Templates, skipped: Mapping[str, str]
) -> tuple[Plan, ...]:
    """Plan every arm as a deploy would, with its checks; raises what keeps one from being touched."""
    plans = []
    for server in servers:
        item = checked(prepare(contact, server, server.algo, templates=templates, force=True), skipped, served=False)
        error = refused(item)
        if error is not None:
            raise error
        plans.append(item.plan)
    return tuple(plans)


def cost(trial: Trial, loads_s: Sequence[float], speeds: Sequence[Speed] = ()) -> Cost:
    """Say what is left of an experiment: a load a segment and one to bring back what ran (a live one has none), and measuring.

    A request is taken to be as fast as in the segments so far or, before the first, as in what this machine kept of the server.
    """
    left = len(trial.order) - len(trial.segments)
    known = [segment.load_s for segment in trial.segments if segment.load_s is not None] or list(loads_s)
    ask = trial.ask
    tokens_s = _request_tokens_s(trial, speeds)
    request_s = ask.tokens / (tokens_s or ASSUMED_TOKENS_S)
    run_s = max(ask.seconds, ask.rounds * request_s) + (ask.warmup + 1) * request_s
    return Cost(
        loads=0 if ask.live else left + 1,
        load_s=sum(known) / len(known) if known else None,
        measuring_s=left * len(ask.concurrency) * ask.runs * run_s,
        assumed=tokens_s is None,
    )


def _request_tokens_s(trial: Trial, speeds: Sequence[Speed]) -> float | None:
    """Return tokens a second of one request, as far as they were ever measured."""
    own = [
        found / level
        for segment in trial.segments
        for level in trial.ask.concurrency
        if (found := segment.value(level, "tokens_s"))
    ]
    kept = [speed.tokens_s / speed.concurrency for speed in speeds if speed.concurrency]
    return median(own or kept) if own or kept else None


def carry_out(plan: Planned, reporter: Reporter, stop: Stop, *, steal: bool = False) -> Ended:
    """Run what is left of an experiment and bring back what ran before; keeps every segment. Raises LockHeldError at the start."""
    contact, server, trial = plan.contact, plan.server, plan.trial
    keep(trial)
    why = f"experiment {trial.id}"
    with leased(contact, server, why, steal=steal) as token:
        bench = Bench(
            contact=contact, server=server, token=token, reporter=reporter, stop=stop, why=why, templates=plan.templates
        )  # fmt: skip
        way = ab_ways.way_of(bench, trial, plan.arms.servers)
        work = Measuring(bench=bench, prompts=plan.prompts)
        restored, error = ab_switch.carried(bench, lambda: _measure(work, trial, way), way.back, told=trial.ask.live)
    return Ended(trial=kept(trial.id), restored=restored, error=error, interrupted=stop.asked.is_set())


def _measure(work: Measuring, trial: Trial, way: ab_ways.Way) -> None:
    """Measure one segment after another, and keep each when it is done."""
    while not trial.done:
        place = len(trial.segments)
        arm = trial.order[place]
        work.heed()
        work.say(trial, place, trial.arms[arm].mode)
        begun = way.to(arm)
        trial = replace(trial, releases=dict(way.releases))
        keep(trial)
        segment = ab_segment.measure(work, trial, begun.server, begun.load_s)
        trial = replace(trial, segments=(*trial.segments, segment))
        keep(trial)
        work.bench.reporter.final(trial.host, ab_segment.name_of(trial, place), seen(trial))


def seen(trial: Trial) -> str:
    """Say what the newest segment showed."""
    segment = trial.segments[-1]
    values = [(c, segment.value(c, "tokens_s")) for c in trial.ask.concurrency]
    words = ", ".join(f"{value:.1f} at {c}" for c, value in values if value is not None)
    return f"{trial.arms[segment.arm].mode}: tok/s {words}"
