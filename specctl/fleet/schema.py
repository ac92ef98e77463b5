"""The inventory's keys, in pydantic: what may stand where, and what editors are told of it (inventory/schema.json).

Import it only where an inventory is read: pydantic costs most of that. What one value must be is here; what several must be
together is in fleet/rules. The text under a field is its description in the JSON schema (`python -m specctl.fleet.schema`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from specctl.fleet.schema_profiles import ProfileSection
from specctl.fleet.schema_section import Section
from specctl.fleet.schema_types import (
    AbsolutePath,
    Argv,
    Bounds,
    Duration,
    EnvText,
    Flag,
    Gpus,
    Line,
    Name,
    SecretText,
    Size,
    SomeTime,
    Texts,
    Url,
    Word,
)

Port = Annotated[int, Field(ge=1, le=65535)]
Count = Annotated[int, Field(ge=1, le=1024)]


class LimitsSection(Section):
    """How long each part of a deploy may take."""

    load: SomeTime = None
    """From the start of the process until the server is ready (20m)."""
    drain: Duration = None
    """Waiting for running requests before a stop (2m)."""
    stop: SomeTime = None
    """From the stop until the port, the processes and the GPUs are free (1m)."""
    stall: SomeTime = None
    """A load without any progress counts as hung after this (5m)."""
    smoke: SomeTime = None
    """For the generation that proves the algo (2m)."""
    guard: SomeTime = None
    """The host takes back what nobody confirmed after at least this, whoever holds the lease (20m)."""
    confirm: SomeTime = None
    """The host takes back what is ready, when the operator is gone and has not confirmed it after this (2m)."""


class UnitSection(Section):
    """What the service manager is told beside the launch."""

    user: Word | None = None
    """The account that the engine runs as; root where nothing is said."""
    memory_max: Size = None
    """The most main memory that the engine may use."""
    restart: bool | None = None
    """Start the engine again when it dies (true)."""
    extra: dict[str, Texts | None] | None = None
    """Literal lines of the unit's [Service] section, such as LimitNOFILE: "1048576"."""


class SecretsSection(Section):
    """References to secrets: env:NAME, file:PATH or cmd:COMMAND, read on the operator's machine; never the secret itself."""

    api_key: SecretText = None
    """The key that clients of the engine must send."""
    admin_api_key: SecretText = None
    """The key for the engine's control routes."""
    hf_token: SecretText = None
    """The token for the model hub."""


class GatewaySection(Section):
    """The router that sends requests to the server."""

    kind: Literal["sglang-router"] | None = None
    """sglang-router: version 0.3.2, the one that the agent knows how to drain."""
    url: Url | None = None
    """Where the router answers, as the host reaches it."""
    worker: Url | None = None
    """The address of the server as the router knows it."""
    api_key: SecretText = None
    """The key of the router's own routes."""


class HooksSection(Section):
    """Programs on the host that take requests off the server and bring them back; they run as the agent's user."""

    pre_drain: Argv = None
    """Before a stop: no new request may come once it has ended with 0."""
    post_ready: Argv = None
    """Once the server is proven again; also when the agent finds that it died in between, so it may run twice."""
    limit: SomeTime = None
    """How long each may take (1m)."""


class AgentSection(Section):
    """What the agent on the host may do with the server."""

    mode: Literal["observe", "advise", "act"] | None = None
    """observe (the default): watch. advise: say what it would do. act: do it."""
    objective: Literal["latency", "throughput"] | None = None
    """latency (the default): the mean time of one token of a request. throughput: the tokens of all requests together."""
    floor: Annotated[float, Field(ge=1)] | None = None
    """The least tokens a second that the other objective must keep: of all requests under latency, of one under throughput."""
    algos: list[Line] | None = None
    """The algos that the agent chooses among; without it the algo is the inventory's."""
    knobs: dict[str, dict[str, Bounds] | None] | None = None
    """The knobs that the agent owns, each with its lowest and highest value, such as ddtree: {tree_budget: [4, 32]}."""
    min_dwell: SomeTime = None
    """The shortest time between two switches (15m)."""
    switches_a_day: Annotated[int, Field(ge=0, le=1000)] | None = None
    """The most switches within 24 hours (8)."""
    outage_ok: bool | None = None
    """The server may be away for a restart though nothing takes requests off it (false)."""
    gateway: GatewaySection | None = None
    """The router that sends requests to the server."""
    hooks: HooksSection | None = None
    """Programs that take requests off the server and bring them back."""
    calibration: Line | None = None
    """A calibration file on your machine, beside this file unless absolute; deploy carries it to the host."""
    table: bool | None = None
    """Give the engine a table of modes by number of requests, which it follows at every step, instead of switching it (false)."""
    model_class: Line | None = None
    """The class of model by which the built-in prior is chosen."""
    context: Bounds = None
    """The shortest and the longest context that is usual, in tokens."""


class LaunchSection(Section):
    """Settings that define a running server; any layer may give any part, and null takes an inherited value away."""

    python: AbsolutePath | None = None
    """The engine's interpreter on the host; `venv` is the shorter way to say it."""
    venv: AbsolutePath | None = None
    """A virtual environment on the host: python is its bin/python."""
    cuda_home: AbsolutePath | None = None
    """The CUDA toolkit; its bin/ leads PATH and CUDA_HOME names it."""
    bind: Word | None = None
    """The address to listen on (127.0.0.1)."""
    port: Port | None = None
    """The port to listen on."""
    tp: Count | None = None
    """Tensor parallelism: over how many GPUs each layer is split."""
    gpus: Gpus = None
    """The GPUs of this server: a count, a range "0-3" or a list."""
    algo: Line | None = None
    """The decode algorithm: none, dflash or ddtree (none)."""
    knobs: dict[str, dict[str, int | None] | None] | None = None
    """Tunables by algo, such as ddtree: {tree_budget: 7}."""
    options: dict[str, Flag] | None = None
    """Flags of the engine by their exact name, with or without the leading dashes, in the order to be rendered."""
    env: dict[str, EnvText] | None = None
    """Environment variables of the engine."""
    secrets: SecretsSection | None = None
    """References to secrets; they reach the engine by files of mode 0600, never by its arguments."""
    served_name: Name | None = None
    """The name under which the engine offers the model."""
    working_dir: AbsolutePath | None = None
    """The folder to start the engine in."""
    limits: LimitsSection | None = None
    """How long each part of a deploy may take."""
    unit: UnitSection | None = None
    """What the service manager is told beside the launch."""
    waivers: dict[str, Line | None] | None = None
    """Rules of the linter, and checks of preflight, that this server does not follow, each with the reason."""
    agent: AgentSection | None = None
    """What the agent on the host may do with the server."""


class ServerSection(LaunchSection):
    """One engine process: which engine, which models, and any launch setting inline."""

    engine: Line
    """The engine profile, built in or from engine_profiles."""
    target: Line
    """The model that answers, from models."""
    draft: Line | None = None
    """The model that drafts, from models; algos that draft need it."""


class ConnectSection(Section):
    """How specctl reaches a host; what is not said is left to OpenSSH's own configuration."""

    via: Literal["ssh", "local"] | None = None
    """ssh (the default) or local: this machine."""
    address: Word | None = None
    """A name, an address or an alias of ~/.ssh/config; the host's own name where nothing is said."""
    user: Word | None = None
    """The account to log in as."""
    port: Port | None = None
    """The port of sshd."""
    identity_file: Line | None = None
    """The private key to offer."""
    sudo: bool | None = None
    """Use sudo (without a password) for what needs root."""


class SharedSection(Section):
    """What defaults, groups and hosts can all say."""

    connect: ConnectSection | None = None
    """How to reach the host."""
    launch: LaunchSection | None = None
    """Settings for the servers."""
    service_manager: Literal["systemd", "supervisor"] | None = None
    """What keeps the engine running: systemd (the default) or supervisor."""
    state_dir: AbsolutePath | None = None
    """The folder of releases, records and locks on the host (/var/lib/specctl)."""
    python: Line | None = None
    """The interpreter for specctl's own scripts on the host (python3); the engine's is launch.python."""


class GroupSection(SharedSection):
    """Hosts that belong together, and what they share."""

    hosts: list[Line] | None = None
    """Members; a host may also name its groups itself."""


class HostSection(SharedSection):
    """One machine."""

    hardware: Line | None = None
    """What it is, from hardware."""
    groups: list[Line] | None = None
    """The groups that it belongs to; a later one wins over an earlier one."""
    servers: list[Line] | None = None
    """The servers that it runs, from servers."""


class GpusSection(Section):
    """The GPUs of one machine."""

    model: Line | None = None
    """What they are called."""
    count: Count | None = None
    """How many there are."""
    memory: Size = None
    """Memory of one GPU, such as 96GiB."""


class HardwareSection(Section):
    """A kind of machine, and the settings that all of that kind need."""

    gpus: GpusSection | None = None
    """Its GPUs."""
    interconnect: Literal["pcie", "nvlink"] | None = None
    """How its GPUs reach each other."""
    verify_cliff_tokens: Annotated[int, Field(ge=2, le=1_000_000)] | None = None
    """From how many tokens in one verify step on a tree costs more than it gains here; the linter knows some GPUs."""
    note: str | None = None
    """Anything worth knowing."""
    launch: LaunchSection | None = None
    """Settings for servers on this kind of machine."""


class ModelSection(Section):
    """A target or a draft, as it lies on the hosts."""

    path: Name
    """Its folder on the host, or its name on the model hub."""
    kind: Literal["target", "draft"] = "target"
    """target (the default) or draft."""
    size: Size = None
    """Size of all its weights, such as 590GB."""
    block_size: Annotated[int, Field(ge=2, le=1024)] | None = None
    """The block that a draft was trained with."""
    target: Line | None = None
    """The target that a draft was trained for, from models."""


class InventoryFile(Section):
    """A file of an inventory; several files add up to one."""

    engine_profiles: dict[str, ProfileSection] | None = None
    """Builds of engines beside the built-in ones; a fork is data here, not code."""
    hardware: dict[str, HardwareSection] | None = None
    """Kinds of machines."""
    models: dict[str, ModelSection] | None = None
    """Targets and drafts."""
    servers: dict[str, ServerSection] | None = None
    """Engine processes, to be placed on hosts."""
    hosts: dict[str, HostSection | None] | None = None
    """The machines."""
    groups: dict[str, GroupSection | None] | None = None
    """Hosts that belong together."""
    defaults: SharedSection | None = None
    """What holds for every host that says nothing else."""


def profile_section(values: Mapping[str, object]) -> ProfileSection:
    """Validate one profile by the validator of a whole file, which is built already."""
    profiles = InventoryFile.model_validate({"engine_profiles": {"it": values}}).engine_profiles
    assert profiles is not None
    return profiles["it"]


def launch_section(values: Mapping[str, object]) -> LaunchSection:
    """Validate one launch section, likewise."""
    defaults = InventoryFile.model_validate({"defaults": {"launch": values}}).defaults
    assert defaults is not None
    assert defaults.launch is not None
    return defaults.launch
