"""Plan to switch a server's algo while it runs: what its engine must be told, and whether it takes that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specctl.control import mode as modes
from specctl.control.live_plan import LivePlan
from specctl.control.mode import Mode
from specctl.control.sight import mode_of
from specctl.errors import NoHealthyReleaseError, UnsupportedError, UsageError
from specctl.fleet.types import Server
from specctl.ops import calibrate_hold
from specctl.ops.contact import Contact
from specctl.ops.engine_live import CannotError, Change, Engine, change, differing, fields
from specctl.ops.prepare import Prepared
from specctl.ops.stored import current_of, demand_accepted_key, reach_deployed
from specctl.rollout.agent_moves import live_move
from specctl.rollout.facts import CurrentRelease, ServerFacts, stored_knobs, stored_units

COLD = "without --live it is started anew for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for: an algo, the knobs that are said, and how."""

    algo: str
    knobs: Mapping[str, int] = field(default_factory=dict)
    force: bool = False
    steal: bool = False
    canary: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A plan, and where it is carried out: `server` is at the address of what runs, `facts` are those that it was made by."""

    contact: Contact
    server: Server
    facts: ServerFacts
    plan: LivePlan


def has_way(item: Prepared) -> bool:
    """Claim that by the profile a planned switch can be had without a start; the engine itself was not asked."""
    current = item.facts.current
    if current is None or item.facts.unit.active != "active" or item.plan.nothing is not None:
        return False
    try:
        change(item.server.profile, _running(current, item.facts), mode_of(item.plan.algo, item.plan.knobs))
    except CannotError:
        return False
    return True


def _running(current: CurrentRelease, facts: ServerFacts) -> Mode:
    """Return what runs by the records: what was started, or told to the running engine since."""
    moved = live_move(facts)
    return mode_of(current.algo, current.knobs()) if moved is None else mode_of(moved.algo, moved.knobs)


def plan(contact: Contact, wanted: Server, wish: Wish) -> Telling:
    """Find out what a running engine must be told for a mode; raises the SpecctlError of what stands in the way."""
    server, facts = reach_deployed(contact, wanted)
    current = current_of(contact, facts)
    host = contact.host.name
    if facts.unit.active != "active":
        words = f"server {server.name} is not running ({facts.unit.active or 'state unknown'})"
        raise NoHealthyReleaseError(words, hint=f"specctl start --host {host}")
    demand_accepted_key(contact, server, facts)
    if facts.guard is not None:
        words = "an act on this server is not confirmed yet: what it runs may be taken back at any moment"
        raise UnsupportedError(words, hint=f"specctl status --host {host}, once it is over")
    starts, old, new = mode_of(current.algo, current.knobs()), _running(current, facts), wished(wish, server, current)
    base = _base(old.algo, server, current)
    said = {name: value for name, value in old.knobs if base.get(name) != value}
    found = LivePlan(host=host, server=server.name, old=old, new=new, starts=starts, said=said)
    telling = Telling(contact=contact, server=server, facts=facts, plan=found)
    if old == new and not wish.force:
        return telling
    if calibrate_hold.acts(contact, server, ""):
        words = "the agent on this host decides its algo, and would take the change back"
        hint = f"specctl pin --host {host} --algo {wish.algo} --for 6h --reason TEXT has the agent do it, and keep it"
        raise UnsupportedError(words, hint=hint)
    return replace(telling, plan=replace(found, tell=_asked(telling, wish).tell))


def _base(algo: str, server: Server, current: CurrentRelease) -> Mapping[str, int]:
    """Return the knobs of an algo that nobody says: the release's, else the inventory's."""
    rendered = stored_knobs(current.manifest, algo) if algo in stored_units(current.manifest) else {}
    return {**server.knobs.get(algo, {}), **rendered}


def wished(wish: Wish, server: Server, current: CurrentRelease) -> Mode:
    """Return the mode that is asked for; raises UsageError for a knob that the algo has not, or that is out of its bounds."""
    try:
        return modes.mode(wish.algo, {**_base(wish.algo, server, current), **wish.knobs})
    except ValueError as error:
        raise UsageError(str(error), hint="specctl switch --live --algo ddtree --knob tree_budget=16") from error


def _asked(telling: Telling, wish: Wish) -> Change:
    """Ask the profile, then the engine, whether it takes such a change; it must also say that it runs what is on record."""
    profile, old, new = telling.server.profile, telling.plan.old, telling.plan.new
    engine = Engine(telling.contact, telling.server)
    try:
        before = fields(profile, old)
        wanted = Change(tell=before) if old == new else change(profile, old, new)
    except CannotError as cannot:
        raise UnsupportedError(f"a running engine cannot be told: {cannot}", hint=COLD) from cannot
    if engine.follows_table():
        words = "the engine follows a table of modes, which telling it one would end"
        raise UnsupportedError(words, hint="take agent.table out of the inventory, or specctl pin")
    other = differing(engine.info(), before)
    if other and not wish.force:
        words = f"the engine was told something that is not on record: {'; '.join(other[:3])}"
        raise UnsupportedError(
            words, hint="--force tells it all the same; a failure then goes back to what is on record"
        )
    reason = engine.takes(wanted).reason
    if reason is not None:
        raise UnsupportedError(f"the engine takes no change while it runs: {reason}", hint=COLD)
    return wanted
