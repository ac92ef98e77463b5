"""Plan a calibration: reach the server, see what it is and who else uses it, choose modes and concurrencies, say what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version

from specctl.adapters import runs
from specctl.control.calibration_facts import differences
from specctl.control.mode import Mode
from specctl.errors import UnhealthyError, UsageError
from specctl.fleet.types import Host, Server
from specctl.measure.calibrate import Ask, Pace, Study, TooShortError, planned
from specctl.measure.calibrate_wire import MisreadError, study_of, study_wire
from specctl.measure.load import Closed, Level, Prompt
from specctl.measure.prompts import digest
from specctl.measure.sweep import Question
from specctl.ops import calibrate_hold, calibrate_modes
from specctl.ops.calibrate_reach import Site, facts_of, knobs, reached
from specctl.ops.contact import Contact
from specctl.ops.engine_http import EngineClient, NoAnswerError
from specctl.ops.engine_live import Engine
from specctl.ops.load import run_level
from specctl.rollout.agent_moves import live_move

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
    steal: bool = False


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
    with reached(pair, steal=wish.steal) as site:
        yield _begin(site, wish, prompts)


@contextmanager
def plan_on(
    pair: tuple[Host, Server], old: Study, prompts: tuple[Prompt, ...], limit_s: float | None, *, steal: bool
) -> Iterator[Planned]:
    """Reach the server and go on with a calibration that was kept, while what it holds for still holds."""
    with reached(pair, steal=steal) as site:
        yield _go_on(site, old, prompts, limit_s)


def _begin(site: Site, wish: Wish, prompts: tuple[Prompt, ...]) -> Planned:
    current = site.facts.current
    assert current is not None, "a server without a release was refused"
    chosen = calibrate_modes.wanted(wish.modes, site.inventory, knobs(site.facts), site.was)
    refusal = calibrate_modes.live_refusal(Engine(site.contact, site.server), site.server, site.was, chosen)
    way = calibrate_modes.way_of(wish.way, refusal)
    _refuse_moved(site, way)
    load_s = _load_s(site, chosen)
    ask, question = _fitted(site, wish.ask, chosen, prompts, None if way == LIVE else load_s or ASSUMED_LOAD_S)
    study = Study(
        id=runs.new_id(KIND),
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        specctl=version("specctl-fleet"),
        host=site.contact.host.name,
        server=site.server.name,
        ask=ask,
        question=question,
        facts=facts_of(site.host_facts, site.facts, site.server, site.told, f"{ask.prompts} {digest(prompts)}"),
        way=way,
        before=(current.id, current.algo),
        was=site.was,
        max_running=site.told.max_running,
    )
    return _planned(site, study, prompts, ask.limit_s, load_s)


def _fitted(
    site: Site, ask: Ask, chosen: Sequence[Mode], prompts: tuple[Prompt, ...], restart_s: float | None
) -> tuple[Ask, Question]:
    """Return what is asked, with the range that the engine can run and a window that fits the time, and the question.

    `restart_s`: what a change of mode takes where it is a restart; one is kept free for bringing back what ran.
    """
    ask = replace(ask, high=min(ask.high, _most(site, ask)))
    switch_s = LIVE_S if restart_s is None else restart_s
    around_s = REQUESTS_AROUND * _request_s(site, prompts) * ask.tokens
    pace = Pace(around_s=around_s, switch_s=switch_s, by_mode=restart_s is not None)
    try:
        question, window_s = planned(chosen, replace(ask, limit_s=ask.limit_s - switch_s), pace)
    except TooShortError as error:
        needed_s = error.needed_s + switch_s
        raise UsageError(
            f"{len(chosen)} modes between {ask.low} and {ask.high} requests take {needed_s / 60:.1f} min at least",
            hint=f"--for {needed_s / 60 + 1:.0f}m, or fewer --mode",
        ) from error
    return replace(ask, window_s=window_s), question


def _go_on(site: Site, old: Study, prompts: tuple[Prompt, ...], limit_s: float | None) -> Planned:
    now = facts_of(site.host_facts, site.facts, site.server, site.told, f"{old.ask.prompts} {digest(prompts)}")
    strange = differences(replace(old.facts, context_tokens=None), now)
    if strange:
        raise UsageError(f"{old.id} cannot go on: {'; '.join(strange)}", hint="begin anew: specctl calibrate --host H")
    if is_spent(old, limit_s):
        raise UsageError(f"{old.id} has used its time", hint=f"specctl calibrate --resume {old.id} --for 10m")
    return _planned(site, old, prompts, _left_s(old, limit_s), _load_s(site, old.question.modes))


def is_spent(old: Study, limit_s: float | None = None) -> bool:
    """Claim that the time that is left, or that is given now, is too short for a segment."""
    return _left_s(old, limit_s) < old.question.segment_s + 2 * old.question.switch_s


def _left_s(old: Study, limit_s: float | None) -> float:
    return old.ask.limit_s - old.spent_s if limit_s is None else limit_s


def _planned(site: Site, study: Study, prompts: tuple[Prompt, ...], left_s: float, load_s: float | None) -> Planned:
    hold = calibrate_hold.acts(site.contact, site.server, reason_of(study))
    return Planned(
        contact=site.contact,
        inventory=site.inventory,
        server=site.server,
        prompts=prompts,
        study=study,
        left_s=left_s,
        hold=hold,
        load_s=load_s,
        warnings=tuple(filter(None, (_busy(site.client), calibrate_hold.SAID if hold else None))),
    )


def reason_of(study: Study) -> str:
    """Return why lease and agent are held."""
    return f"calibration {study.id}"


def _refuse_moved(site: Site, way: str) -> None:
    moved = live_move(site.facts)
    if moved is not None and way == RESTART:
        raise UsageError(
            f"{moved.who} has the running engine on {moved} live, which a start would not bring back",
            hint=f"specctl restart --host {site.contact.host.name} first",
        )


def _most(site: Site, ask: Ask) -> int:
    """Return the most requests that the engine runs at once; refuse a range that begins beyond."""
    most = site.told.max_running
    if most is None:
        return ask.high
    if ask.low >= most:
        raise UsageError(f"the engine runs at most {most} requests at once", hint=f"--concurrency 1..{most}")
    return most


def _load_s(site: Site, chosen: Sequence[Mode]) -> float | None:
    """Return the mean seconds of this host's past loads of these algos; None where none is on record."""
    loads = [load.total_s for algo in {mode.algo for mode in chosen} for load in site.facts.past_loads(algo)]
    return sum(loads) / len(loads) if loads else None


def _request_s(site: Site, prompts: tuple[Prompt, ...]) -> float:
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
