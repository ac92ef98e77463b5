"""Engine profiles as data: built-in ones and the inventory's, each with what it `extends`, made into EngineProfile values."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import specctl.engines
from specctl.algos import ALGOS
from specctl.engines.types import (
    PLUGINS,
    AlgoProfile,
    EngineProfile,
    Evidence,
    EvidenceKind,
    FlagValue,
    LiveTable,
    Term,
)
from specctl.errors import InventoryError, Problem
from specctl.fleet.declared import Entry
from specctl.fleet.positions import Node, read
from specctl.fleet.schema import profile_section
from specctl.fleet.schema_profiles import AlgoSection, EvidenceSection, ProfileSection
from specctl.fleet.suggest import listed, nearest
from specctl.fleet.validate import validate

WORDS = ("target", "port", "bind", "tp", "served_name", "config")
NEEDED_WORDS = ("target", "port", "bind")
ENGINE_NAMES = tuple(
    entry.name
    for entry in pkgutil.iter_modules(specctl.engines.__path__)
    if not entry.ispkg and not entry.name.startswith("_") and entry.name != "types"
)


class Shelf(Protocol):
    """Where built-in profiles come from; adapters/inventory_files.py has the real one."""

    def names(self) -> tuple[str, ...]:
        """Name every built-in profile."""

    def tree(self, name: str) -> tuple[str, Node]:
        """Return a profile's file name and its tree, which has the shape of an inventory."""


class Profiles:
    """Every profile that an inventory can name; each is built when first asked for."""

    def __init__(self, own: Mapping[str, Entry[ProfileSection]], shelf: Shelf) -> None:
        self._own = own
        self._shelf = shelf
        self._built: dict[str, EngineProfile | None] = {}
        self._built_in: dict[str, Entry[ProfileSection]] = {}

    def names(self) -> tuple[str, ...]:
        """Name the inventory's profiles, then the built-in ones."""
        return tuple(dict.fromkeys((*self._own, *self._shelf.names())))

    def get(self, name: str) -> EngineProfile | None:
        """Return a profile; None where there is none of that name or its problems keep it from being built."""
        if name not in self._built:
            chain = self._chain(name)
            self._built[name] = None if chain is None else _build(name, _merged(chain))
        return self._built[name]

    def with_algo(self, algo: str) -> tuple[str, ...]:
        """Name the profiles that have an algo."""
        found = ((name, self.get(name)) for name in self.names())
        return tuple(name for name, profile in found if profile is not None and algo in profile.algos)

    def check(self) -> Iterator[Problem]:
        """Yield the problems of the inventory's own profiles."""
        built_in = self._shelf.names()
        for name, entry in self._own.items():
            if name in built_in:
                yield entry.problem(f"is the name of a built-in profile: choose another and say extends: {name}")
            if entry.section is None:
                continue
            yield from _check_section(entry, entry.section)
            yield from self._check_chain(entry, entry.section)

    def _check_chain(self, entry: Entry[ProfileSection], section: ProfileSection) -> Iterator[Problem]:
        base = section.extends
        if base is not None and base not in self.names():
            near = nearest(base, self.names())
            yield entry.problem(f"there is no engine profile {base}", "extends", suggestion=near)
            return
        seen = [entry.name]
        while base is not None and base in self._own and base not in seen:
            seen.append(base)
            above = self._own[base].section
            base = above.extends if above else None
        if base in seen:
            circle = seen[seen.index(base) :]
            if entry.name == next(name for name in self._own if name in circle):
                yield entry.problem(f"extends itself: {' → '.join([*circle, base])}", "extends")
            return
        chain = self._chain(entry.name)
        if chain is not None:
            yield from _check_whole(entry, _merged(chain))

    def _chain(self, name: str) -> Sequence[ProfileSection] | None:
        """Return a profile's sections, the one at the bottom first; None where a link is missing or leads back."""
        sections: list[ProfileSection] = []
        seen: set[str] = set()
        at: str | None = name
        while at is not None:
            entry = self._entry(at)
            if at in seen or entry is None or entry.section is None:
                return None
            seen.add(at)
            sections.insert(0, entry.section)
            at = entry.section.extends
        return sections

    def _entry(self, name: str) -> Entry[ProfileSection] | None:
        if name in self._own:
            return self._own[name]
        if name not in self._built_in and name in self._shelf.names():
            self._built_in[name] = self._load(name)
        return self._built_in.get(name)

    def _load(self, name: str) -> Entry[ProfileSection]:
        label, root = self._shelf.tree(name)
        document = read(label, root)
        file, problems = validate(document)
        if document.problems or problems:
            raise InventoryError(
                (*document.problems, *problems), hint="a built-in profile is damaged: install specctl again"
            )
        section = (file.engine_profiles or {}).get(name)
        return Entry(name=name, document=document, path=("engine_profiles", name), section=section)


def _check_section(entry: Entry[ProfileSection], section: ProfileSection) -> Iterator[Problem]:
    """Yield what is wrong with what one profile itself says."""
    if section.engine is not None and section.engine not in ENGINE_NAMES:
        near = nearest(section.engine, ENGINE_NAMES)
        yield entry.problem(
            f"there is no engine {section.engine} (there is {listed(ENGINE_NAMES)})", "engine", suggestion=near
        )
    if section.plugin is not None and section.plugin not in PLUGINS:
        near = nearest(section.plugin, PLUGINS)
        yield entry.problem(
            f"specctl carries no plugin {section.plugin} (it has {listed(PLUGINS)})", "plugin", suggestion=near
        )
    for word in section.flags or {}:
        if word not in WORDS:
            near = nearest(word, WORDS)
            yield entry.problem(
                f"unknown word {word} (known: {listed(WORDS)})", "flags", word, suggestion=near, at_key=True
            )
    for name, algo in (section.algos or {}).items():
        if name not in ALGOS:
            near = nearest(name, ALGOS)
            yield entry.problem(
                f"there is no algo {name} (there is {listed(ALGOS)})", "algos", name, suggestion=near, at_key=True
            )
        elif algo is not None:
            yield from _check_algo(entry, name, algo)
    yield from _check_spelling(entry, section)


def _check_algo(entry: Entry[ProfileSection], name: str, algo: AlgoSection) -> Iterator[Problem]:
    known = tuple(knob.name for knob in ALGOS[name].knobs)
    for key in ("knobs", "knob_env", "knob_limits", "knob_steps"):
        for knob in getattr(algo, key) or {}:
            if knob not in known:
                words = f"{name} has no knob {knob} (it has {listed(known)})"
                yield entry.problem(words, "algos", name, key, knob, suggestion=nearest(knob, known), at_key=True)
    for index, knob in enumerate(algo.live_knobs or ()):
        if knob not in (*known, "algo"):
            words = f"{name} has no knob {knob} (it has {listed(known)}; algo stands for the algo itself)"
            yield entry.problem(words, "algos", name, "live_knobs", index, suggestion=nearest(knob, known))
    for key in ("live_fields", "live_needs"):
        for field, text in (getattr(algo, key) or {}).items():
            fault = None if text is None else _term_fault(text)
            if fault is not None:
                yield entry.problem(fault, "algos", name, key, field)


def _term_fault(text: str | int) -> str | None:
    """Say what is wrong with a term; a knob may be another algo's, which the same engine drafts by."""
    known = tuple(dict.fromkeys(knob.name for algo in ALGOS.values() for knob in algo.knobs))
    try:
        knob = Term.parse(text).knob
    except ValueError as error:
        return str(error)
    return None if knob is None or knob in known else f"there is no knob {knob} (there is {listed(known)})"


def _check_spelling(entry: Entry[ProfileSection], section: ProfileSection) -> Iterator[Problem]:
    """Yield flags that do not look like one."""
    spelled: list[tuple[tuple[str, ...], str]] = [
        (("flags", word), flag) for word, flag in (section.flags or {}).items() if flag
    ]
    spelled += [(("aliases", other), other) for other in section.aliases or {}]
    for name, algo in (section.algos or {}).items():
        if algo is None:
            continue
        spelled += [(("algos", name, "knobs", knob), flag) for knob, flag in (algo.knobs or {}).items() if flag]
        spelled += [
            (("algos", name, key, flag), flag) for key in ("select", "implies") for flag in getattr(algo, key) or {}
        ]
        spelled += [(("algos", name, "draft"), algo.draft)] if algo.draft else []
    for path, flag in spelled:
        if not flag.startswith("-"):
            yield entry.problem(f"a flag begins with dashes: --{flag}", *path)


def _check_whole(entry: Entry[ProfileSection], whole: ProfileSection) -> Iterator[Problem]:
    """Yield what a profile lacks after all that it extends."""
    lacking = [key for key in ("engine", "module", "algos") if not getattr(whole, key)]
    lacking += [f"flags.{word}" for word in NEEDED_WORDS if not (whole.flags or {}).get(word)]
    if lacking:
        yield entry.problem(f"lacks {listed(lacking)}: give it, or extend a profile that has it")
    for name, algo in (whole.algos or {}).items():
        if algo is not None and algo.plugin and whole.plugin is None:
            yield entry.problem(f"{name} needs a plugin, and the profile names none (there is {listed(PLUGINS)})")


def _merged(chain: Sequence[ProfileSection]) -> ProfileSection:
    whole: Mapping[str, object] = {}
    for section in chain:
        whole = _over(whole, section.said())
    return profile_section(whole)


def _over(base: Mapping[str, object], upper: Mapping[str, object]) -> Mapping[str, object]:
    """Lay one mapping over another: mappings by key, everything else as a whole; None takes away."""
    result = dict(base)
    for key, value in upper.items():
        below = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = _over(below if isinstance(below, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def _build(name: str, whole: ProfileSection) -> EngineProfile | None:
    if whole.engine is None or not whole.module or not whole.algos:
        return None
    algos = {algo: _algo(algo, section) for algo, section in whole.algos.items() if section is not None}
    named = {algo: section.capability for algo, section in whole.algos.items() if section is not None}
    return EngineProfile(
        name=name,
        engine=whole.engine,
        version=whole.version,
        module=_texts(whole.module),
        flags=_named(whole.flags),
        aliases=_named(whole.aliases),
        algos=algos,
        packages=tuple(whole.packages or ()),
        capability={algo: word for algo, word in named.items() if word is not None},
        counts_root=whole.counts_root,
        counts_bonus=whole.counts_bonus,
        tree_line=whole.tree_line,
        plugin=whole.plugin,
        live_table=_table(whole),
        flag_list=whole.flag_list,
        notes=whole.notes,
    )


def _algo(name: str, section: AlgoSection) -> AlgoProfile:
    return AlgoProfile(
        algo=name,
        select=_flags(section.select),
        draft=section.draft,
        knobs=_named(section.knobs),
        knob_env=_named(section.knob_env),
        knob_limits=_named(section.knob_limits),
        knob_steps=_named(section.knob_steps),
        plugin=bool(section.plugin),
        env={key: str(value) for key, value in (section.env or {}).items() if value is not None},
        implies=_flags(section.implies),
        live_proof=tuple(_evidence(one) for one in section.live_proof or ()),
        live_knobs=tuple(section.live_knobs or ()),
        live_fields=_terms(section.live_fields),
        live_needs=_terms(section.live_needs),
        switch_proof=tuple(_evidence(one) for one in section.switch_proof or ()),
        requires=tuple(section.requires or ()),
    )


def _table(whole: ProfileSection) -> LiveTable | None:
    found = whole.live_table
    return None if found is None else LiveTable(suffix=found.suffix, told=found.told, at=found.at)


def _terms(values: Mapping[str, str | int | None] | None) -> Mapping[str, Term]:
    return {field: Term.parse(text) for field, text in (values or {}).items() if text is not None}


def _evidence(section: EvidenceSection) -> Evidence:
    return Evidence(
        kind=EvidenceKind(section.kind),
        pattern=section.pattern,
        during=section.during,
        equals=section.equals,
        absent=section.absent,
    )


def _named(values: Mapping[str, str | None] | None) -> Mapping[str, str]:
    return {key: value for key, value in (values or {}).items() if value is not None}


def _flags(values: Mapping[str, object] | None) -> Mapping[str, FlagValue]:
    return {key: flag_value(value) for key, value in (values or {}).items() if value is not None}


def flag_value(value: object) -> FlagValue:
    """Return a value of the schema's Flag as an engine takes it."""
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"the schema let a flag of type {type(value).__name__} through")


def _texts(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value) if isinstance(value, list) else ()
