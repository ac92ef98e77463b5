"""Each server on each host, merged: nothing is missing, the profile can do it, and no option fights with specctl's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from specctl.algos import ALGOS
from specctl.engines.types import EngineProfile
from specctl.errors import Problem
from specctl.fleet.layers import Leaf
from specctl.fleet.merge import Placement
from specctl.fleet.profiles import Profiles
from specctl.fleet.suggest import listed

_OWN_KEYS: Mapping[str, str] = {
    "bind": "bind",
    "port": "port",
    "served_name": "served_name",
    "target": "target",
    "tp": "tp",
}
_OWN_VARIABLES: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": "gpus", "CUDA_HOME": "cuda_home"}


def check(placements: Sequence[Placement], profiles: Profiles) -> Iterator[Problem]:
    """Yield what is wrong with servers as they would run."""
    for placement in placements:
        yield from lacking(placement)
        if placement.profile is None:
            continue
        yield from algo_faults(placement, placement.profile, profiles)
        yield from option_faults(placement, placement.profile)
    yield from _useless_knobs(placements)


def lacking(placement: Placement) -> Iterator[Problem]:
    """Yield what no layer gives; a value that was refused has been given."""
    where = f"on {placement.host.name}"
    if placement.value("port") is None and not placement.says("port"):
        yield placement.server.problem(
            f"has no port {where}: give port: here, or in launch: of a host, group or hardware"
        )
    given = placement.value("python") is not None or placement.value("venv") is not None
    if not given and not placement.says("python", "venv"):
        words = f"has no interpreter {where}: give venv: or python: here, or in launch: of a host, group or hardware"
        yield placement.server.problem(words)


def algo_faults(placement: Placement, profile: EngineProfile, profiles: Profiles) -> Iterator[Problem]:
    """Yield why the profile cannot run the algo that is asked for."""
    leaf = placement.leaves[("algo",)]
    algo = placement.algo
    if algo not in ALGOS:
        return
    if algo not in profile.algos:
        yield leaf.problem(f"{profile.name} has no {algo} (it has {listed(profile.algos)}); {having(algo, profiles)}")
    elif ALGOS[algo].drafts and placement.section.draft is None:
        words = f"{algo} drafts, and {placement.server.name} names no draft: give servers.{placement.server.name}.draft"
        yield leaf.problem(words)
    selected = profile.algos.get(algo)
    for flag, value in (selected.implies if selected else {}).items():
        option = placement.leaves.get(("options", flag))
        if option is not None and option.value != value:
            yield option.problem(f"{algo} of {profile.name} needs {flag} {value}")


def having(algo: str, profiles: Profiles) -> str:
    """Say which profiles have an algo."""
    names = profiles.with_algo(algo)
    return f"{listed(names)} {'has' if len(names) == 1 else 'have'} it" if names else "no profile has it"


def option_faults(placement: Placement, profile: EngineProfile) -> Iterator[Problem]:
    """Yield the options and variables that specctl writes itself, each with the key that says the same."""
    own = own_flags(profile)
    for path, leaf in placement.leaves.items():
        if path[0] == "options":
            exact = profile.aliases.get(path[1], path[1])
            key = own.get(exact) or own.get(path[1])
            if key is not None:
                yield _fight(leaf, path[1], key)
        elif path[0] == "env" and path[1] in _OWN_VARIABLES:
            key = _OWN_VARIABLES[path[1]]
            if placement.value(key) is not None:
                yield _fight(leaf, path[1], key)


def own_flags(profile: EngineProfile) -> Mapping[str, str]:
    """Return the flags that specctl writes itself, each with the key of the inventory that says the same."""
    own = {flag: _OWN_KEYS.get(word, "secrets") for word, flag in profile.flags.items()}
    for name, algo in profile.algos.items():
        own |= dict.fromkeys(algo.select, "algo")
        own |= {algo.draft: "draft"} if algo.draft else {}
        own |= {flag: f"knobs.{name}.{knob}" for knob, flag in algo.knobs.items() if flag not in own}
    return own


def _fight(leaf: Leaf, name: str, key: str) -> Problem:
    return leaf.problem(f"specctl writes {name} itself: say it as {key}", at_key=True)


def _useless_knobs(placements: Sequence[Placement]) -> Iterator[Problem]:
    """Yield the knobs that no server that they reach can use; one server of several is enough to excuse a shared layer."""
    used: set[object] = set()
    unused: dict[object, Problem] = {}
    for placement in placements:
        for path, leaf in placement.leaves.items():
            if path[0] != "knobs" or placement.profile is None or path[1] not in ALGOS:
                continue
            words = why_useless(placement.profile, path[1], path[2])
            if words is None:
                used.add((leaf.origin, leaf.at))
            else:
                unused.setdefault((leaf.origin, leaf.at), leaf.problem(words, at_key=True))
    yield from (problem for origin, problem in unused.items() if origin not in used)


def why_useless(profile: EngineProfile, algo: str, knob: str) -> str | None:
    """Say why a profile cannot take a knob; None where it can."""
    known = profile.algos.get(algo)
    if known is None:
        return f"{profile.name} has no {algo} (it has {listed(profile.algos)})"
    if ALGOS[algo].knob(knob) is None or knob in known.knobs or knob in known.knob_env:
        return None
    return f"{profile.name} has no flag for {knob} of {algo} (it has {listed((*known.knobs, *known.knob_env))})"
