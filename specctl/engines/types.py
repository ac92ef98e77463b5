"""An engine profile: what one build of an engine calls its flags, what proves an algo live, what its flags imply.

Profiles are data (specctl/engines/profiles/*.yaml and the inventory); an Engine (one file each) is the code that knows the
family's grammar. Nothing here reads a file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from specctl.engines._log_types import LogGrammar
from specctl.engines._metric_types import Metrics

FlagValue = str | int | float | bool | tuple[str, ...]
EMPTY: Mapping[str, str] = MappingProxyType({})


class EvidenceKind(enum.Enum):
    """Where a proof is looked for: a log line, a field of an answer's meta_info, or a field of /server_info."""

    LOG = "log"
    META = "meta"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One thing that only this algo shows.

    LOG: `pattern` is a regular expression over lines of this invocation; named groups that bear a knob's name must equal the
    knob. `during` is "start" (anywhere since the start) or "smoke" (printed since the smoke began). META: the field `pattern` of
    /generate's meta_info is a number over 0. INFO: the field `pattern` of /server_info equals `equals`. `absent` turns the claim
    around: such evidence must not be seen.
    """

    kind: EvidenceKind
    pattern: str
    during: str = "smoke"
    equals: str | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgoProfile:
    """How one build starts one algo: `select` and `implies` are flags, `knobs` maps a knob's name to its flag.

    `draft` is the flag that takes the draft's path; `live_proof` must hold in whole for the algo to be proven; empty: it can
    only be claimed. `knob_env` maps a knob to an environment variable for builds that have no flag for it. `live_knobs` names
    the knobs (and "algo") that the engine takes over HTTP while it runs.
    """

    algo: str
    select: Mapping[str, FlagValue] = field(default_factory=dict)
    draft: str | None = None
    knobs: Mapping[str, str] = field(default_factory=dict)
    knob_env: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    implies: Mapping[str, FlagValue] = field(default_factory=dict)
    live_proof: tuple[Evidence, ...] = ()
    live_knobs: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """One build of an engine.

    `engine` names the file in specctl/engines; `module` is what `python -m` starts; `flags` maps specctl's own words (target,
    port, bind, tp, served_name, config) to flags; `packages` are the distributions whose versions identify the build for the
    capability cache; `flag_list` names the list of its exact option strings (engines/flags), of a fork that of the build it
    began with; `counts_root` and `counts_bonus` say how its metrics count (design.md §7). `capability` is the name that the
    capability probe asks for, by algo. `aliases` maps other spellings of flags to the exact one.
    """

    name: str
    engine: str
    version: str | None
    module: tuple[str, ...]
    flags: Mapping[str, str]
    algos: Mapping[str, AlgoProfile]
    packages: tuple[str, ...] = ()
    capability: Mapping[str, str] = field(default_factory=dict)
    counts_root: bool | None = None
    counts_bonus: bool | None = None
    tree_line: str | None = None
    flag_list: str | None = None
    notes: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """An element of an argv that is the path of a secret file; rendered by the service manager's own means, never escaped."""

    name: str


Argument = str | Credential


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine family: the code for what profiles cannot say as data.

    `probe` is a Python program for the engine's own interpreter: it reads algorithm names from argv and prints one JSON object
    {"version": …, "knows": {name: true|false}, "error": …}; it must touch no GPU. `log` is how it writes its start-up log,
    `metrics` where it tells its load.
    `needs_gpu` false: it runs on the processor alone, and GPUs on the host are not its affair.
    """

    name: str
    summary: str
    probe: str
    log: LogGrammar
    metrics: Metrics
    needs_gpu: bool = True
