"""Checks of the engine: its interpreter, its version, and whether it knows the algorithm that is asked for."""

from __future__ import annotations

from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Check, Level, Verdict, failed, passed, unknown, warned


def _python(subject: Subject) -> str:
    return subject.argv[0] if subject.argv else subject.server.python


def interpreter(subject: Subject) -> Verdict | None:
    """Look whether the interpreter that the launch names is there and can be run."""
    python, facts = _python(subject), subject.facts
    if facts.python_path != python or facts.python_runs is None:
        return unknown(f"{python} was not looked at")
    return passed(python) if facts.python_runs else failed(f"there is no interpreter {python}, or it may not be run")


def _package(subject: Subject) -> str | None:
    """Return the distribution that the engine comes in: the first that the profile names."""
    return next(iter(subject.server.profile.packages), None)


def installed(subject: Subject) -> Verdict | None:
    """Look whether the engine is installed for that interpreter."""
    name, said = _package(subject), subject.capability
    if name is None:
        return None
    version = subject.facts.packages.get(name)
    if version is not None:
        return passed(f"{name} {version}")
    if said is not None and said.error is not None:
        return failed(f"{_python(subject)} has no {name}, and cannot import the engine: {said.error}")
    if said is not None and said.silent is None:
        return passed(f"{name} is no installed package, but can be imported ({said.version or 'version unknown'})")
    if subject.facts.python_runs is False:
        return None  # P010 says it.
    return unknown(f"{name} was not found in the interpreter's folders, and the interpreter could not be asked")


def version(subject: Subject) -> Verdict | None:
    """Look whether the build is the one that the engine profile describes."""
    wanted, name = subject.server.profile.version, _package(subject)
    if wanted is None or name is None:
        return None
    said = subject.capability
    found = subject.facts.packages.get(name) or (said.version if said else None)
    if found is None:
        return None  # P011 says it.
    # What a build adds to its version (+cu130) does not make it another one.
    if found.partition("+")[0] == wanted:
        return passed(f"{name} {found}, as profile {subject.server.profile.name} says")
    return warned(f"{name} {found} is installed, and profile {subject.server.profile.name} describes {wanted}")


def knows(subject: Subject) -> Verdict | None:
    """Look what the engine's own interpreter says of the algorithm."""
    said = subject.capability
    if said is None or said.name is None:
        return None
    where = f"the engine at {_python(subject)} ({said.version or 'version unknown'})"
    if said.knows is True:
        return passed(f"{where} knows {said.name}")
    if said.knows is False:
        return failed(f"{where} does not know {said.name}{f': {said.error}' if said.error else ''}")
    if said.error is not None:
        return failed(f"{where} cannot say whether it knows {said.name}: {said.error}")
    return unknown(f"{where} was not asked whether it knows {said.name}: {said.silent or 'it gave no answer'}")


CHECKS = (
    Check(
        id="P010",
        title="the engine's interpreter is there",
        worst=Level.FAIL,
        remedy="make the virtual environment on {host}, or set python: or venv: of server {server}",
        why="Looked at, not started: importing an engine takes many seconds.",
        look=interpreter,
    ),
    Check(
        id="P011",
        title="the engine is installed",
        worst=Level.FAIL,
        remedy="install the engine into that environment on {host}, or name another with venv: of server {server}",
        why="Its version is read from the package's own files. Where no such file is found, the interpreter is asked to import it.",
        look=installed,
    ),
    Check(
        id="P012",
        title="the engine's version is the profile's",
        worst=Level.WARN,
        remedy="choose the engine profile that describes this build (engine: of server {server})",
        why="Flags, log lines and metrics change between versions; the linter's list of flags is that of the profile's version.",
        look=version,
    ),
    Check(
        id="P013",
        title="the engine knows the algorithm",
        worst=Level.FAIL,
        remedy="use an engine build that has the algorithm, and the engine profile that names it",
        why="An unknown name passes the argument parser and dies minutes later. The engine's own code is asked, without a GPU; the "
        "answer is remembered by package digest and environment.",
        look=knows,
    ),
)
