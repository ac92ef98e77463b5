"""Lay the command line over selected servers, or refuse it: what it may say is what the last layer of an inventory may say."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from pydantic import ValidationError

from specctl.engines.types import EngineProfile
from specctl.errors import Problem, UnsupportedError, UsageError
from specctl.fleet import layers
from specctl.fleet.layers import Layer
from specctl.fleet.merge import Placement
from specctl.fleet.overrides import Overrides
from specctl.fleet.positions import Document
from specctl.fleet.profiles import Profiles
from specctl.fleet.rules import launches, secrets, servers
from specctl.fleet.schema import launch_section
from specctl.fleet.suggest import either


def override(placement: Placement, profile: EngineProfile, overrides: Overrides, profiles: Profiles) -> Placement:
    """Return the placement with the command line laid over it.

    Raises UnsupportedError for an algo that the profile lacks, UsageError for all else that an inventory would be refused for.
    """
    host = placement.host.name
    algo = overrides.algo or placement.algo
    for problem in _own_problems(overrides, algo, host):
        raise _usage(problem, host)
    if algo not in profile.algos:
        raise _unsupported(placement, profile, algo, profiles)
    merged = dataclasses.replace(placement, leaves=layers.lay(placement.leaves, [_layer(overrides, algo)]))
    for problem in _merged_problems(merged, profile, overrides, profiles):
        raise _usage(problem, host)
    return merged


def _layer(overrides: Overrides, algo: str) -> Layer:
    section: dict[str, object] = {} if overrides.algo is None else {"algo": overrides.algo}
    section["knobs"] = {algo: overrides.knobs}
    section["options"] = overrides.options
    section["env"] = overrides.env
    return Layer(name=layers.COMMAND_LINE, section=section)


def _own_problems(overrides: Overrides, algo: str, host: str) -> Iterator[Problem]:
    """Hold the command line to the rules of any launch section."""
    options = {key: list(value) if isinstance(value, tuple) else value for key, value in overrides.options.items()}
    said = {"algo": algo, "knobs": {algo: dict(overrides.knobs)}, "options": options, "env": dict(overrides.env)}
    try:
        section = launch_section(said)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        words = fault["msg"].removeprefix("Value error, ")
        raise UsageError(f"{'.'.join(str(part) for part in fault['loc'][2:])}: {words}", host=host) from error
    part = launches.Placed(document=Document(file=layers.COMMAND_LINE), path=(), section=section)
    yield from launches.check_part(part)
    yield from secrets.check_part(part)


def _merged_problems(
    placement: Placement, profile: EngineProfile, overrides: Overrides, profiles: Profiles
) -> Iterator[Problem]:
    yield from servers.algo_faults(placement, profile, profiles)
    yield from servers.option_faults(placement, profile)
    for knob in overrides.knobs:
        words = servers.why_useless(profile, placement.algo, knob)
        if words is not None:
            yield placement.leaves[("knobs", placement.algo, knob)].problem(words)


def _usage(problem: Problem, host: str) -> UsageError:
    near = f" (did you mean {problem.suggestion}?)" if problem.suggestion else ""
    hint = f"specctl inventory show --host {host} --provenance"
    return UsageError(f"{problem.path}: {problem.message}{near}", hint=hint, host=host)


def _unsupported(placement: Placement, profile: EngineProfile, algo: str, profiles: Profiles) -> UnsupportedError:
    having = profiles.with_algo(algo)
    key = f"servers.{placement.server.name}.engine"
    hint = f"set {key} to {either(having)}" if having else f"ask for {either(tuple(profile.algos))}"
    known = ", ".join(profile.algos)
    return UnsupportedError(
        f"{profile.name} cannot decode {algo} (it has {known})", hint=hint, host=placement.host.name
    )
