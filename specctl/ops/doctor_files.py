"""The doctor without a host: evidence from a log, a figures file and a verify trace that somebody gives it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specctl.adapters import doctor_files, inventory_files
from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.sample import engine_lines
from specctl.control.sample.engine_lines import LineReader
from specctl.doctor import figures, lines, replay
from specctl.doctor.evidence import Evidence, Log
from specctl.doctor.judge import judge
from specctl.doctor.types import Report
from specctl.engines.types import EngineProfile
from specctl.errors import UsageError
from specctl.fleet.positions import dotted
from specctl.fleet.profiles import Profiles
from specctl.fleet.suggest import listed, nearest
from specctl.ops import inventory as inventories
from specctl.rollout.launch import engines

ASSUMED = "sglang-0.5.23"
"""The build whose conventions hold where none is named: root and bonus are counted; its grammar reads the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line names: files, the engine profile that wrote them, and the mode where no file says it.

    `inventory`: files whose own profiles `engine` may name beside the built-in ones; none are looked for. `since_s`: of the log
    only so many seconds before its newest line.
    """

    log: str | None = None
    figures: str | None = None
    trace: str | None = None
    engine: str | None = None
    mode: str | None = None
    inventory: tuple[str, ...] = ()
    since_s: float | None = None


def examine(given: Given) -> tuple[Report, Log | None]:
    """Judge the files, and return what was read of a log too.

    Raises UsageError for a file that cannot be read, or says what cannot be meant.
    """
    found = evidence(given)
    return judge(found), found.log


def evidence(given: Given) -> Evidence:
    """Gather what the files say."""
    profile = _profile(given.engine or ASSUMED, given.inventory)
    found = _figures(given.figures)
    named = (
        found.evidence
        if given.engine is None
        else replace(found.evidence, counts_root=profile.counts_root, counts_bonus=profile.counts_bonus)
    )
    texts: list[Iterable[str]] = [found.lines] if found.lines else []
    if given.log is not None:
        texts.append(doctor_files.read_log(given.log))
    log = None
    if texts:
        log = lines.read(
            _since(texts, given.since_s), reader_of(profile), whole=given.log is None and given.since_s is None
        )
    elif given.since_s is not None:
        raise UsageError(
            "--since takes a part of a log, and none is given", hint="specctl doctor --log FILE --since 10m"
        )
    if given.trace is not None:
        named = replace(named, replay=replay.check(doctor_files.read_trace(given.trace)))
    mode = named.mode if given.mode is None else _mode(given.mode)
    return replace(named, log=log, mode=mode, configuration=replace(named.configuration, claimed=mode))


def _since(texts: Sequence[Iterable[str]], span_s: float | None) -> Iterable[str]:
    found = itertools.chain.from_iterable(texts)
    return found if span_s is None else lines.newest(found, span_s)


def reader_of(profile: EngineProfile) -> LineReader:
    """Return how a profile's log is read."""
    return engine_lines.reader(engines()[profile.engine].log, profile.tree_line)


def _mode(text: str) -> Mode:
    try:
        return modes.parse(text)
    except ValueError as error:
        raise UsageError(f"--mode {text}: {error}", hint="--mode ddtree:block_size=8,tree_budget=7") from error


def _profile(name: str, inventory: Sequence[str]) -> EngineProfile:
    """Return an engine profile, the inventory's or a built-in one; raises InventoryError for an inventory that is not right."""
    shelf = inventories.load(inventory).profiles if inventory else Profiles({}, inventory_files.BuiltInProfiles())
    found = shelf.get(name)
    if found is None:
        near = nearest(name, shelf.names())
        guess = f"did you mean {near}?" if near else f"there is {listed(shelf.names())}"
        raise UsageError(
            f"there is no engine profile {name}", hint=guess if inventory else f"{guess}, or -i PATH has it"
        )
    return found


def _figures(path: str | None) -> figures.Figures:
    if path is None:
        return figures.Figures(evidence=figures.parse({}).evidence)
    document = doctor_files.read_figures(path)
    try:
        return figures.parse(document.data)
    except figures.FiguresError as error:
        places = {dotted(key): spot.value for key, spot in document.spots.items()}
        said = []
        for problem in error.problems:
            key = problem.partition(":")[0]
            place = places.get(key) or places.get(key.rpartition(".")[0])
            said.append(f"{path}:{place.line}: {problem}" if place else f"{path}: {problem}")
        raise UsageError("; ".join(said), hint="docs/doctor.md shows a figures file") from error
