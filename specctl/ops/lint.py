"""Lint servers as they stand in the inventory: every algo that each can run; called by cli/lint.py and by preflight."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import specctl.engines
from specctl.adapters import lasting
from specctl.errors import UnsupportedError, UsageError
from specctl.fleet.suggest import listed, nearest
from specctl.lint import flags, run
from specctl.lint.subject import Subject
from specctl.rollout import launch as launches
from specctl.rollout.preflight.catalogue import IDS as CHECKS

if TYPE_CHECKING:
    from specctl.fleet.types import Host, Server
    from specctl.lint.flags import FlagTable
    from specctl.lint.types import Finding
    from specctl.rollout.launch import Launch

FOLDERS = tuple(Path(folder) / "flags" for folder in specctl.engines.__path__)


@functools.cache
def flag_table(name: str) -> FlagTable:
    """Read a list of option strings when it is first needed; raise UsageError for one that does not come with specctl."""
    for folder in FOLDERS:
        path = folder / f"{name}.txt"
        if "/" not in name and lasting.is_file(path):
            return flags.parse(name, path.read_text(encoding="utf-8"))
    known = sorted(path.stem for folder in FOLDERS for path in folder.glob("*.txt"))
    near = nearest(name, known)
    guess = f"did you mean {near}?" if near else f"there is {listed(known)}"
    raise UsageError(f"there is no list of flags {name}", hint=f"correct flag_list of the engine profile: {guess}")


def subject(host: Host, server: Server, launch: Launch, *, elsewhere: Iterable[str] = ()) -> Subject:
    """Make one launch ready for run.lint; `elsewhere` names rules of others that a waiver may name."""
    name = server.profile.flag_list
    return Subject.of(host, server, launch, None if name is None else flag_table(name), elsewhere=elsewhere)


def lint_server(host: Host, server: Server, *, elsewhere: Iterable[str] = ()) -> tuple[Finding, ...]:
    """Lint every algo that the server can run, its own first; one that cannot be rendered is left to deploy's refusal."""
    names = sorted(launches.possible(server), key=lambda algo: algo != server.algo)
    found: list[Finding] = []
    for algo in names:
        try:
            launch = launches.build(host, server, algo)
        except UnsupportedError:
            # A knob out of bounds: the inventory has refused it where it says so, and a draft's own block cannot be helped here.
            continue
        found.extend(run.lint(subject(host, server, launch, elsewhere=elsewhere)))
    return run.merged(found)


def lint(selected: Sequence[tuple[Host, Server]], *, whole: bool) -> tuple[Finding, ...]:
    """Lint every selected server, in order; `whole` says that these are all of the inventory (it judges shared waivers)."""
    reports = [(host, server, lint_server(host, server, elsewhere=CHECKS)) for host, server in selected]
    notes = run.unused(reports, whole=whole)
    found: list[Finding] = []
    for host, server, findings in reports:
        found.extend(findings)
        found.extend(note for note in notes if (note.host, note.server) == (host.name, server.name))
    return tuple(found)
