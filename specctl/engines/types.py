"""An engine profile: what one build of an engine calls its flags, what proves an algo live, what its flags imply.

Profiles are data (specctl/engines/profiles/*.yaml and the inventory); an Engine (one file each) is the code that knows the
family's grammar. Nothing here reads a file.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from specctl.engines._log_types import LogGrammar
from specctl.engines._metric_types import Metrics

FlagValue = str | int | float | bool | tuple[str, ...]
EMPTY: Mapping[str, str] = MappingProxyType({})
# What specctl can carry to a host for an engine, by the package (agents/): the variable that names what to load, its name there.
PLUGINS: Mapping[str, tuple[str, str]] = MappingProxyType({"sglang_ddtree": ("SGLANG_PLUGINS", "ddtree")})


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


_TERM = re.compile(r"([a-z][a-z0-9_]{0,60})(?:\s*([+-])\s*([0-9]{1,6}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What a running engine is told for a field: a number, or a knob with a number added."""

    knob: str | None = None
    add: int = 0

    @classmethod
    def parse(cls, text: str | int) -> Term:
        """Read `16`, `tree_budget` or `block_size - 1`; raises ValueError for anything else."""
        if isinstance(text, int):
            return cls(add=text)
        found = _TERM.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is neither a number nor a knob, as in block_size - 1")
        sign = -1 if found[2] == "-" else 1
        return cls(knob=found[1], add=sign * int(found[3] or 0))

    def value(self, knobs: Mapping[str, int]) -> int | None:
        """Return the number; None where the knobs do not say."""
        if self.knob is None:
            return self.add
        return None if self.knob not in knobs else knobs[self.knob] + self.add


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgoProfile:
    """How one build starts one algo: `select` and `implies` are flags, `knobs` maps a knob's name to its flag.

    `draft` is the flag that takes the draft's path; `live_proof` must hold in whole for the algo to be proven; empty: it can
    only be claimed. `knob_env` maps a knob to an environment variable for builds that have no flag for it. `knob_limits` maps a
    knob to the environment variable that says how far a running engine lets it be raised, `knob_steps` to the one that names the
    values to which it may be turned. `plugin`: the build has the algo only
    with specctl's plugin of the profile.

    `live_knobs` names the knobs (and "algo") that the engine takes over HTTP while it runs, `live_fields` what it is then told,
    by the names under which /server_info tells it too; empty: the fields of the flags. `live_needs` are fields that
    /server_info must tell so already, since no running engine can change them. `switch_proof` is what shows the algo after such
    a change; empty: what `live_proof` looks for during a smoke.
    """

    algo: str
    select: Mapping[str, FlagValue] = field(default_factory=dict)
    draft: str | None = None
    knobs: Mapping[str, str] = field(default_factory=dict)
    knob_env: Mapping[str, str] = field(default_factory=dict)
    knob_limits: Mapping[str, str] = field(default_factory=dict)
    knob_steps: Mapping[str, str] = field(default_factory=dict)
    plugin: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    implies: Mapping[str, FlagValue] = field(default_factory=dict)
    live_proof: tuple[Evidence, ...] = ()
    live_knobs: tuple[str, ...] = ()
    live_fields: Mapping[str, Term] = field(default_factory=dict)
    live_needs: Mapping[str, Term] = field(default_factory=dict)
    switch_proof: tuple[Evidence, ...] = ()
    requires: tuple[str, ...] = ()

    def after_a_change(self) -> AlgoProfile:
        """Return the profile with the proof of an algo that a running engine was told: its start's lines speak of another."""
        smoke = tuple(each for each in self.live_proof if each.during == "smoke")
        return replace(self, live_proof=self.switch_proof or smoke)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTable:
    """How a running engine is given a table, a mode for each number of requests, that it follows by itself.

    A row tells the fields of its mode (`live_fields`), each name followed by `suffix` with the least number of requests for {n}.
    /server_info tells the table as the list `told` of objects: the fields of a row, and that number as `at`.
    """

    suffix: str
    told: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """One build of an engine.

    `engine` names the file in specctl/engines; `module` is what `python -m` starts; `flags` maps specctl's own words (target,
    port, bind, tp, served_name, config) to flags; `packages` are the distributions whose versions identify the build for the
    capability cache; `flag_list` names the list of its exact option strings (engines/flags), of a fork that of the build it
    began with; `plugin` names the plugin that specctl carries to the host for it; `counts_root` and `counts_bonus` say how its
    metrics count (design.md §7). `capability` is the name that the capability probe asks for, by algo. `aliases` maps other
    spellings of flags to the exact one.
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
    plugin: str | None = None
    live_table: LiveTable | None = None
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
    {"version": …, "knows": {name: true|false}, "error": …}, the error also being why a plugin did not load; it must touch no
    GPU. `log` is how it writes its start-up log, `metrics` where it tells its load.
    `needs_gpu` false: it runs on the processor alone, and GPUs on the host are not its affair.
    """

    name: str
    summary: str
    probe: str
    log: LogGrammar
    metrics: Metrics
    needs_gpu: bool = True
