"""Read /server_info, and say which mode it claims: arguments and live state, never a key, never a proof.

Pure. SGLang prints its API keys in this answer (recordings, surprise 28), so only fields named here are ever taken out of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.mode import Mode, mode
from specctl.control.sample.engine import EngineInfo
from specctl.control.sample.numbers import amount, count, mapping, parsed
from specctl.control.table import Table
from specctl.engines.types import AlgoProfile, EngineProfile, Term

MAX_BYTES = 1 << 20
MAX_SAID = 96
MAX_ROWS = 256
_MAX_TEXT = 80
_SPOKEN = ("speculative_", "ddtree_")
_PRIVATE = ("path", "revision", "token_map", "config")
_NO_SPECULATION = (None, "", "NONE")

Said = str | int | float | bool | None


def parse(body: bytes) -> EngineInfo | None:
    """Return what /server_info claims; None where the body is no such answer. Never raises, whatever the body."""
    top = mapping(parsed(body, MAX_BYTES))
    if top is None:
        return None
    states = top.get("internal_states")
    state = mapping(states[0]) if isinstance(states, list) and states else None
    if state is None and "speculative_algorithm" not in top:
        return None
    live = state or {}
    length = amount(live.get("avg_spec_accept_length"))
    return EngineInfo(
        version=_text(top.get("version")),
        said=MappingProxyType({**_said(top), **_said(live)}),
        rows=MappingProxyType(_rows(live)),
        seed=count(top.get("random_seed")),
        metrics_enabled=_flag(top.get("enable_metrics")),
        adaptive=_flag(live.get("speculative_adaptive", top.get("speculative_adaptive"))),
        max_running=count(live.get("effective_max_running_requests_per_dp", top.get("max_running_requests"))),
        context_limit=count(top.get("context_length")),
        lifetime_accept_length=length if length is not None and length >= 1 else None,
        startup_s=MappingProxyType(_startup(top.get("startup_time"))),
    )


def _said(fields: Mapping[str, object]) -> dict[str, Said]:
    """Return the arguments of speculation that are short and plain; paths are left out."""
    found: dict[str, Said] = {}
    for name, value in fields.items():
        if not name.startswith(_SPOKEN) or len(name) > _MAX_TEXT or name.endswith(_PRIVATE) or len(found) >= MAX_SAID:
            continue
        if (
            value is None
            or isinstance(value, bool | int | float)
            or (isinstance(value, str) and len(value) <= _MAX_TEXT)
        ):
            found[name] = value
    return found


def _rows(fields: Mapping[str, object]) -> dict[str, tuple[Mapping[str, int], ...]]:
    """Return the lists of rows of whole numbers; a list with anything else in it is none."""
    found: dict[str, tuple[Mapping[str, int], ...]] = {}
    for name, value in fields.items():
        if name.startswith(_SPOKEN) and len(name) <= _MAX_TEXT and isinstance(value, list) and len(value) <= MAX_ROWS:
            rows = [{str(key): count(cell) for key, cell in (mapping(row) or {}).items()} for row in value]
            whole = [{key: cell for key, cell in row.items() if cell is not None} for row in rows]
            if whole == rows and all(whole) and len(found) < MAX_SAID:
                found[name] = tuple(whole)
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= _MAX_TEXT else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _startup(value: object) -> dict[str, float]:
    parts = mapping(value) or {}
    found = {name: amount(part) for name, part in list(parts.items())[:MAX_SAID] if len(name) <= _MAX_TEXT}
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def field_of(flag: str) -> str:
    """Return the field of /server_info that repeats a flag."""
    return flag.lstrip("-").replace("-", "_")


def claimed(
    info: EngineInfo, profile: EngineProfile, deployed: Mapping[str, Mapping[str, int]] | None = None
) -> Mode | None:
    """Return the mode that an engine claims to run; None where its words fit no algo of the profile, or more than one.

    `deployed`: knobs by algo as they were deployed, for those that the engine does not tell (set by environment, or a default).
    An engine that follows a table runs no one mode: what is claimed is what it would run without the table.
    """
    told = [found for algo in profile.algos.values() if (found := _told_live(info, algo)) is not None]
    if told:
        # A chain is a tree of one alternative, and no draft is a tree of none: what leaves the least open is meant.
        least = min(free for free, _ in told)
        meant = [found for free, found in told if free == least]
        return meant[0] if len(meant) == 1 else None
    fitting = [algo for algo in profile.algos.values() if _fits(info, algo)]
    if len(fitting) != 1:
        return None
    algo = fitting[0]
    knobs = dict((deployed or {}).get(algo.algo, {}))
    for name in algo.knobs:
        value = _knob(info, profile, algo, name)
        if value is not None:
            knobs[name] = value
    return _mode(algo, knobs)


def table(info: EngineInfo, profile: EngineProfile) -> Table | None:
    """Return the table of modes that an engine says that it follows; None where it follows none, or one that is not understood."""
    known = profile.live_table
    rows = () if known is None else info.rows.get(known.told, ())
    found = []
    for row in rows:
        meant = claimed(replace(info, said={**info.said, **row}), profile)
        if known is None or meant is None or known.at not in row:
            return None
        found.append((row[known.at], meant))
    try:
        return Table(tuple(found)) if found else None
    except ValueError:
        return None


def follows(info: EngineInfo, profile: EngineProfile) -> bool:
    """Claim that an engine follows some table of modes, whoever gave it."""
    return profile.live_table is not None and bool(info.rows.get(profile.live_table.told))


def _mode(algo: AlgoProfile, knobs: Mapping[str, int]) -> Mode | None:
    try:
        return mode(algo.algo, knobs)
    except ValueError:
        return None


def _told_live(info: EngineInfo, algo: AlgoProfile) -> tuple[int, Mode] | None:
    """Return the mode of an algo that the fields of a live change tell, and how many of its knobs they left open; else None."""
    if not algo.live_fields:
        return None
    needs = _solved(info, algo.live_needs, {})
    found = None if needs is None else _solved(info, algo.live_fields, needs)
    if needs is None or found is None:
        return None
    claimed = _mode(algo, {name: value for name, value in found.items() if ALGOS[algo.algo].knob(name) is not None})
    return None if claimed is None else (len(found) - len(needs), claimed)


def _solved(info: EngineInfo, terms: Mapping[str, Term], knobs: Mapping[str, int]) -> dict[str, int] | None:
    """Return the knobs with those that the told fields give; None where a field is not told, or tells another value."""
    found = dict(knobs)
    for name, term in terms.items():
        told = count(info.said.get(name))
        if told is None:
            return None
        if term.knob is not None:
            found.setdefault(term.knob, told - term.add)
        if term.value(found) != told:
            return None
    return found


def _fits(info: EngineInfo, algo: AlgoProfile) -> bool:
    """Claim that every flag that selects an algo is told as such; an algo that none selects needs that nothing is."""
    if not algo.select:
        return "speculative_algorithm" in info.said and info.said["speculative_algorithm"] in _NO_SPECULATION
    return all(_same(info.said.get(field_of(flag)), value) for flag, value in algo.select.items())


def _same(told: Said, wanted: object) -> bool:
    return isinstance(wanted, str | int | float) and told is not None and str(told).upper() == str(wanted).upper()


def _knob(info: EngineInfo, profile: EngineProfile, algo: AlgoProfile, name: str) -> int | None:
    """Return a knob's value: by its flag, or for a chain by an alias of the flag (SGLang tells a block as draft tokens).

    A tree's block is not read by an alias: block 8 and budget 7 both report 8 draft tokens.
    """
    flags = [algo.knobs[name]]
    if ALGOS[algo.algo].shape is Shape.CHAIN:
        flags += [alias for alias, exact in profile.aliases.items() if exact == flags[0]]
    told = [count(info.said.get(field_of(flag))) for flag in flags]
    return next((value for value in told if value is not None), None)
