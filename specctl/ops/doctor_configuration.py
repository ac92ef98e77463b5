"""What a server is asked to be, what stands on its host, and what its engine says: the doctor's configuration part."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.sample import engine_info
from specctl.control.sample.engine import EngineInfo
from specctl.doctor.evidence import Configuration
from specctl.errors import ConnectError, SpecctlError, UnsupportedError, UsageError
from specctl.fleet.secret_names import CARRIED, KEY_LIKE
from specctl.fleet.types import Host, Server
from specctl.lint.types import Finding as LintFinding
from specctl.ops import capability
from specctl.ops import lint as linter
from specctl.ops.contact import Contact
from specctl.rollout import launch as launches
from specctl.rollout import reading
from specctl.rollout.agent_moves import as_agent_left, live_move
from specctl.rollout.facts import ServerFacts, stored_launch
from specctl.rollout.preflight.catalogue import IDS as CHECKS

OVERLAP = "disable_overlap_schedule"


def deployed_mode(facts: ServerFacts) -> Mode | None:
    """Return what ought to run: what the engine was told last, else what the current release says."""
    moved = live_move(facts)
    if moved is not None:
        return made(moved.algo, moved.knobs)
    return None if facts.current is None else made(facts.current.algo, facts.current.knobs())


def made(algo: str, knobs: Mapping[str, int]) -> Mode | None:
    """Make a mode; None where there is no such."""
    try:
        return modes.mode(algo, knobs)
    except ValueError:
        return None


def configuration(
    contact: Contact,
    wanted: Server,
    facts: ServerFacts,
    info: EngineInfo | None,
    said: Mapping[str, object],
) -> Configuration:
    """Compare inventory, release and engine; `said`: the body of /server_info, of which only named fields are looked at."""
    desired = as_agent_left(wanted, facts)
    ought = deployed_mode(facts)
    claimed = None if info is None else engine_info.claimed(info, wanted.profile, _known_knobs(ought))
    algo = wanted.profile.algos.get(ought.algo) if ought is not None else None
    off = said.get(OVERLAP)
    return Configuration(
        desired=_desired(contact.host, desired),
        deployed=ought,
        claimed=claimed,
        moved_live=live_move(facts) is not None,
        drift=facts.drift,
        arguments=None if info is None else differing(wanted, facts, said),
        lint=_lint(contact.host, wanted),
        knows=_knows(contact, desired, facts),
        overlap=None if not isinstance(off, bool) else not off,
        implied=() if algo is None else tuple(algo.implies),
        metrics_enabled=None if info is None else info.metrics_enabled,
    )


def _known_knobs(mode: Mode | None) -> Mapping[str, Mapping[str, int]]:
    return {} if mode is None else {mode.algo: dict(mode.knobs)}


def _desired(host: Host, server: Server) -> Mode | None:
    try:
        found = launches.build(host, server, server.algo)
    except (UnsupportedError, UsageError):
        return None
    return made(found.algo, found.knobs)


def _lint(host: Host, server: Server) -> tuple[LintFinding, ...] | None:
    try:
        return linter.lint_server(host, server, elsewhere=CHECKS)
    except UsageError:
        return None


def _knows(contact: Contact, server: Server, facts: ServerFacts) -> Mapping[str, bool] | None:
    """Ask the engine's interpreter, or the host's memory of its answer, whether it has the algo that is wanted."""
    try:
        built = launches.build(contact.host, server, server.algo)
        answer = capability.ask(contact, server, facts, built, python=server.python)
    except ConnectError:
        raise
    except SpecctlError:
        return None
    if answer is None or answer.knows is None or answer.name is None:
        return None
    return {answer.name: answer.knows}


def differing(server: Server, facts: ServerFacts, said: Mapping[str, object]) -> Mapping[str, tuple[str, str]]:
    """Return the numbers that the release gives and /server_info tells otherwise: flag → (given, told); keys are left out."""
    if facts.current is None:
        return {}
    words = reading.texts(stored_launch(facts.current.manifest, facts.current.algo).get("argv"))
    moved = {flag for algo in server.profile.algos.values() for flag in algo.knobs.values()}
    found: dict[str, tuple[str, str]] = {}
    for word, value in itertools.pairwise(words):
        flag = server.profile.aliases.get(word, word)
        is_private = not word.startswith("--") or word in CARRIED or KEY_LIKE.search(word) is not None
        given, told = _number(value), reading.number(said.get(engine_info.field_of(flag)))
        if is_private or flag in moved or given is None or told is None:
            continue
        if abs(given - told) > 1e-9 * max(abs(given), abs(told)):
            found[flag] = (value, f"{told:g}")
    return found


def _number(text: str) -> float | None:
    try:
        return reading.number(float(text))
    except ValueError:
        return None
