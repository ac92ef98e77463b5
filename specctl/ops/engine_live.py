"""Tell a running engine another mode, and ask what it can take and what it says that it runs; every word of it is a peer's.

The agent does so on its own host, `specctl calibrate` through the connection to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.control.sample import engine_info
from specctl.control.table import Table
from specctl.engines.types import AlgoProfile, EngineProfile, Term
from specctl.fleet.types import Server
from specctl.ops.engine_http import KEY_REFUSED, EngineClient, NoAnswerError, Reached, Reply

SET = "/set_internal_state"
SET_S = 10.0
INFO_S = 10.0
ALGO = "algo"


class CannotError(Exception):
    """A running engine cannot be brought from one mode to another; carries why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a running engine must be told, and what it must say already for that to be enough."""

    tell: Mapping[str, object]
    needs: Mapping[str, object] = field(default_factory=dict)


def fields(profile: EngineProfile, mode: Mode) -> Mapping[str, object]:
    """Return the arguments that tell a running engine a mode: its `live_fields`, where the profile has such.

    Else what selects its algo, null for what selects another, and its knobs, each by the field of its flag. Raises CannotError
    where a knob of the mode is not known.
    """
    wanted = profile.algos[mode.algo]
    if wanted.live_fields:
        return _terms(wanted.live_fields, mode)
    chosen: dict[str, object] = {}
    for algo in profile.algos.values():
        for flag in algo.select:
            chosen[engine_info.field_of(flag)] = wanted.select.get(flag)
    knobs = {engine_info.field_of(wanted.knobs[name]): value for name, value in mode.knobs if name in wanted.knobs}
    return {**chosen, **knobs}


def _terms(terms: Mapping[str, Term], mode: Mode) -> Mapping[str, object]:
    knobs = dict(mode.knobs)
    found = {name: term.value(knobs) for name, term in terms.items()}
    unknown = sorted({str(terms[name].knob) for name, value in found.items() if value is None})
    if unknown:
        raise CannotError(f"{', '.join(unknown)} of {mode.algo} is not known")
    return found


def change(profile: EngineProfile, old: Mode, new: Mode) -> Change:
    """Return what it takes that a running engine changes its mode; raises CannotError where its profile has no such way."""
    wanted = profile.algos.get(new.algo)
    if wanted is None:
        raise CannotError(f"{profile.name} has no {new.algo}")
    before = dict(old.knobs) if old.algo == new.algo else {}
    changed = {name: value for name, value in new.knobs if before.get(name) != value}
    needed = [*([ALGO] if old.algo != new.algo else []), *changed]
    needs = _terms(wanted.live_needs, new)
    # What the engine must say already is looked for there; it may be so whatever ran before.
    said = {term.knob for term in wanted.live_needs.values()} if old.algo != new.algo else set()
    cold = [name for name in needed if name not in said and not _is_live(wanted, name)]
    if cold:
        raise CannotError(f"{profile.name} takes {', '.join(cold)} of {new.algo} only at its start")
    if not needed:
        raise CannotError(f"there is nothing to change between {old} and {new}")
    if wanted.live_fields or old.algo != new.algo:
        return Change(tell=fields(profile, new), needs=needs)
    return Change(tell={engine_info.field_of(wanted.knobs[name]): value for name, value in changed.items()})


def table_fields(profile: EngineProfile, table: Table) -> Mapping[str, object]:
    """Return the arguments that give a running engine a table; raises CannotError where its profile has no such way."""
    if profile.live_table is None:
        raise CannotError(f"{profile.name} follows no table")
    suffix = profile.live_table.suffix
    return {
        f"{name}{suffix.replace('{n}', str(start))}": value
        for start, mode in table.rows
        for name, value in fields(profile, mode).items()
    }


def unlike(profile: EngineProfile, info: Mapping[str, object] | None, table: Table | None) -> tuple[str, ...] | None:
    """Name what of a table (None: of none) the ranks do not say that they follow; None where the engine does not say."""
    states, known = states_of(info), profile.live_table
    if not states or known is None:
        return None
    rows_of = () if table is None else table.rows
    wanted = [{known.at: start, **fields(profile, mode)} for start, mode in rows_of]
    found = []
    for state in states:
        told = state.get(known.told)
        rows = told if isinstance(told, list) else []
        if len(rows) != len(wanted):
            found.append(f"{known.told} has {len(rows)} rows, not {len(wanted)}")
        found += [
            f"{known.told} says {row!r}, not {each}"
            for row, each in zip(rows, wanted, strict=False)
            if not isinstance(row, Mapping) or any(row.get(name) != value for name, value in each.items())
        ]
    return tuple(found)


def _is_live(algo: AlgoProfile, name: str) -> bool:
    told = {term.knob for term in algo.live_fields.values()} or set(algo.knobs)
    return name in algo.live_knobs and (name == ALGO or name in told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an engine answered to the question whether it takes a change: why not, and whether it would say so again."""

    reason: str | None = None
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Engine:
    """One server's engine, by the way to its host; keys are read anew for every call."""

    here: Reached
    server: Server

    def set(self, changes: Mapping[str, object]) -> Reply:
        """Tell a running engine new arguments."""
        client = EngineClient.admin(self.here, self.server)
        return client.post(SET, {"server_args": dict(changes)}, timeout_s=SET_S)

    def info(self) -> Mapping[str, object] | None:
        """Return the body of /server_info; None where none came."""
        reply = self._info()
        return reply.fields if reply.status == 200 else None

    def follows_table(self) -> bool:
        """Claim that it follows a table of modes."""
        known = self.server.profile.live_table
        return known is not None and any(state.get(known.told) for state in states_of(self.info()))

    def _info(self) -> Reply:
        return EngineClient.of(self.here, self.server).get("/server_info", timeout_s=INFO_S)

    def is_ready(self) -> bool:
        """Claim that it takes requests."""
        return EngineClient.of(self.here, self.server).get("/ready").status == 200

    def running_requests(self) -> int | None:
        """Return running plus waiting requests; None when the engine cannot say, or does not answer."""
        try:
            return EngineClient.of(self.here, self.server).running_requests()
        except NoAnswerError:
            return None

    def takes(self, wanted: Change) -> Asked:
        """Ask whether the engine takes such arguments at all, by telling it those that it has.

        What nobody can set is answered [false] with status 200 (SGLang 0.5.23, engine facts 3.2), or refused as no number.
        An engine that follows a table of modes has taken such arguments, and is told nothing: that would end the table.
        """
        info = self._info()
        if info.status != 200:
            return Asked(reason=refusal(info))
        states = states_of(info.fields)
        if not states:
            return Asked(reason="/server_info tells no internal state")
        changes = wanted.tell
        unfit = differing(info.fields, wanted.needs)
        if unfit:
            return Asked(reason="; ".join(unfit[:3]))
        table = self.server.profile.live_table
        if table is not None and any(state.get(table.told) for state in states):
            return Asked()
        untold = [name for name in changes if any(name not in state for state in states)]
        if untold:
            return Asked(reason=f"/server_info does not tell {', '.join(untold)}")
        # A knob of an algo that does not run has no value; what selects the algo has one, and null means none.
        present = {name: states[0][name] for name, value in changes.items() if isinstance(value, str | None)}
        present |= {name: states[0][name] for name in changes if states[0][name] is not None}
        if not present:
            return Asked(reason=f"/server_info tells no value of {', '.join(changes)}")
        reply = self.set(present)
        if accepted(reply):
            return Asked(lasting=True)
        return Asked(reason=refusal(reply), lasting=untouched(reply) and reply.status not in KEY_REFUSED)


def states_of(info: Mapping[str, object] | None) -> tuple[Mapping[str, object], ...]:
    """Return the internal states of all ranks."""
    states = (info or {}).get("internal_states")
    found = tuple(state for state in states if isinstance(state, Mapping)) if isinstance(states, list) else ()
    return found if isinstance(states, list) and len(found) == len(states) else ()


def accepted(reply: Reply) -> bool:
    """Claim that every rank took a change."""
    return (
        reply.status == 200 and isinstance(reply.body, list) and bool(reply.body) and all(x is True for x in reply.body)
    )


def untouched(reply: Reply) -> bool:
    """Claim that no rank took a change: all said so, or the call was turned away before it reached any."""
    if reply.status == 200:
        return isinstance(reply.body, list) and bool(reply.body) and all(item is False for item in reply.body)
    return reply.status is not None and 400 <= reply.status < 500


def refusal(reply: Reply) -> str:
    """Say how a change was turned away."""
    if reply.status is None:
        return f"the engine gave no answer: {reply.failure}"
    if reply.status in KEY_REFUSED:
        return f"the engine refuses the key (status {reply.status})"
    if reply.status == 200:
        said = "[false]" if untouched(reply) else "half a yes" if isinstance(reply.body, list) else "no list"
        return f"the engine answers {said}"
    return f"the engine answers status {reply.status}"


def differing(info: Mapping[str, object] | None, changes: Mapping[str, object]) -> tuple[str, ...] | None:
    """Name the arguments that a rank says otherwise than they were set; None where the engine does not say."""
    states = states_of(info)
    if not states:
        return None
    return tuple(
        f"{name} is {state.get(name)!r}, not {value!r}"
        for state in states
        for name, value in changes.items()
        if state.get(name) != value
    )
