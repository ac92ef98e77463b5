"""The keys of an engine profile, in pydantic; what the texts under the fields are for, fleet/schema.py says."""

from __future__ import annotations

from typing import Literal

from specctl.fleet.schema_section import Section
from specctl.fleet.schema_types import EnvText, Flag, Line, Regexp, Texts


class EvidenceSection(Section):
    """One thing that only this algo shows while it runs."""

    kind: Literal["log", "meta", "info"]
    """log: a line of the log; meta: a field of an answer's meta_info; info: a field of /server_info."""
    pattern: Regexp
    """A regular expression (log; a group named as a knob must equal it) or the field's name."""
    during: Literal["start", "smoke"] = "smoke"
    """Where a log line is looked for: since the start, or since the smoke began."""
    equals: str | None = None
    """The value that a field of /server_info must have."""
    absent: bool = False
    """It must not be seen."""


class AlgoSection(Section):
    """How one build of an engine starts one algo."""

    select: dict[str, Flag] | None = None
    """Flags that choose the algo."""
    draft: Line | None = None
    """The flag that takes the path of the draft."""
    knobs: dict[str, Line | None] | None = None
    """The flag of each knob."""
    knob_env: dict[str, Line | None] | None = None
    """The environment variable of each knob that has no flag."""
    knob_limits: dict[str, Line | None] | None = None
    """The environment variable that says how far a running engine lets a knob be raised."""
    knob_steps: dict[str, Line | None] | None = None
    """The environment variable that names the values to which the agent may turn a knob."""
    plugin: bool | None = None
    """Whether the build has the algo only with the profile's plugin."""
    env: dict[str, EnvText] | None = None
    """Environment variables that the algo needs."""
    implies: dict[str, Flag] | None = None
    """Flags that the algo cannot do without."""
    live_proof: list[EvidenceSection] | None = None
    """What proves that the algo is live; all of it must hold. Empty: the algo can only be claimed."""
    live_knobs: list[Line] | None = None
    """The knobs, and "algo", that a running engine takes over HTTP."""
    live_fields: dict[str, int | Line | None] | None = None
    """What a running engine is told for the algo, field by field: a number, or a knob, as in block_size - 1; else the flags."""
    live_needs: dict[str, int | Line | None] | None = None
    """Fields that /server_info must tell so already, since a running engine cannot change them."""
    switch_proof: list[EvidenceSection] | None = None
    """What proves the algo after a running engine was told it; else what live_proof looks for during a smoke."""
    requires: list[Line] | None = None
    """What the algo needs, in words for people."""
    capability: Line | None = None
    """The name that the capability probe asks the engine for."""


class LiveTableSection(Section):
    """How a running engine is given a mode for each number of requests, which it follows by itself."""

    suffix: Line
    """What follows the name of a field in a row; {n} is the row's least number of requests."""
    told: Line
    """The field of /server_info that tells the table: a list of rows."""
    at: Line
    """The field of a row that tells its least number of requests."""


class ProfileSection(Section):
    """One build of an engine: what it calls its flags and what proves its algos."""

    extends: Line | None = None
    """The profile that this one adds to, built in or from engine_profiles."""
    engine: Line | None = None
    """The family: sglang or lab."""
    version: str | None = None
    """The version of the build."""
    module: Texts | None = None
    """What `python -m` starts, with any words that follow it."""
    flags: dict[str, Line | None] | None = None
    """The flags for specctl's own words: target, port, bind, tp, served_name, config."""
    aliases: dict[str, Line | None] | None = None
    """Other spellings of flags, each with the exact one."""
    algos: dict[str, AlgoSection | None] | None = None
    """The algos that this build has; null takes an inherited one away."""
    packages: list[Line] | None = None
    """The distributions whose versions identify the build."""
    counts_root: bool | None = None
    """Whether its metrics count the root of a tree as a node."""
    counts_bonus: bool | None = None
    """Whether its metrics count the bonus token as accepted."""
    tree_line: Regexp | None = None
    """A regular expression for the line that a tree logs."""
    plugin: Line | None = None
    """The plugin that specctl carries to the host for this build: sglang_ddtree."""
    live_table: LiveTableSection | None = None
    """How a running engine is given a table of modes, where it can follow one."""
    flag_list: Line | None = None
    """The list of exact flags that the linter holds launches against (sglang-0.5.23 or lab); of a fork, that of its base."""
    notes: str | None = None
    """Anything worth knowing, such as where the spelling comes from."""
