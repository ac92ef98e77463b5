"""How an engine's command line and environment are put together from a server and an algo's profile; shared by the engines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from specctl.engines.types import PLUGINS, AlgoProfile, Argument, Credential, FlagValue
from specctl.fleet.types import Server

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Secrets that the engine takes in its configuration file; any other secret becomes an environment variable.
CONFIG_SECRETS: Mapping[str, str] = {"api_key": "api-key", "admin_api_key": "admin-api-key"}
ENV_SECRETS: Mapping[str, str] = {"hf_token": "HF_TOKEN"}
CONFIG_FILE = "engine.yaml"
ENV_FILE = "secrets.env"
# A release's folder of plugins, and what stands for its path where the release is not known yet.
PLUGIN_FOLDER = "plugins"
PLUGIN_MARK = f"<{PLUGIN_FOLDER}>"
SEARCH_PATH = "PYTHONPATH"


def flag(name: str, value: FlagValue) -> Iterator[str]:
    """Yield a flag and its value as elements of an argv; a true flag stands alone, a false one is left out."""
    if value is False:
        return
    yield name
    if value is True:
        return
    if isinstance(value, tuple):
        yield from value
    else:
        yield str(value)


def knob_values(server: Server, profile: AlgoProfile) -> Mapping[str, int]:
    """Return the knobs that this server sets for the algo; a draft's own block size where the server sets none."""
    knobs = dict(server.knobs.get(profile.algo, {}))
    if "block_size" not in knobs and "block_size" in profile.knobs and server.draft and server.draft.block_size:
        knobs["block_size"] = server.draft.block_size
    return knobs


def argv(server: Server, profile: AlgoProfile) -> tuple[Argument, ...]:
    """Return the whole command: interpreter, module, specctl's own flags, the inventory's options, then speculation."""
    words = server.profile.flags
    own: dict[str, FlagValue | None] = {
        "target": server.target.path,
        "port": server.port,
        "bind": server.bind,
        "tp": server.tp,
        "served_name": server.served_name,
    }
    parts: list[Argument] = [server.python, "-m", *server.profile.module]
    for word, value in own.items():
        if value is not None and word in words:
            parts.extend(flag(words[word], value))
    if CONFIG_SECRETS.keys() & server.secrets.keys() and "config" in words:
        parts.extend((words["config"], Credential(name=CONFIG_FILE)))
    options = {**server.options, **profile.implies}
    for name, value in options.items():
        parts.extend(flag(name, value))
    for name, value in profile.select.items():
        parts.extend(flag(name, value))
    if profile.draft and server.draft:
        parts.extend(flag(profile.draft, server.draft.path))
    knobs = knob_values(server, profile)
    for knob, name in profile.knobs.items():
        if knob in knobs:
            parts.extend(flag(name, knobs[knob]))
    return tuple(parts)


def env(server: Server, profile: AlgoProfile) -> Mapping[str, str]:
    """Return the environment: GPUs, PATH, then the inventory's own, then what the algo needs; a later value wins."""
    values: dict[str, str] = {}
    if server.gpus:
        values["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in server.gpus)
    folders = [f"{server.cuda_home}/bin"] if server.cuda_home else []
    if "/" in server.python:
        folders.append(server.python.rpartition("/")[0])
    values["PATH"] = ":".join([*folders, STANDARD_PATH])
    values.update(server.env)
    if server.cuda_home:
        values.setdefault("CUDA_HOME", server.cuda_home)
    values.update(profile.env)
    knobs = knob_values(server, profile)
    values.update({name: str(knobs[knob]) for knob, name in profile.knob_env.items() if knob in knobs})
    if profile.plugin and server.profile.plugin is not None:
        values.update(_plugged(values, server.profile.plugin))
        values.update(_limits(server))
    return values


def plugs(values: Mapping[str, str]) -> bool:
    """Claim that an environment has the engine load a plugin of the release."""
    return PLUGIN_MARK in values.get(SEARCH_PATH, "").split(":")


def _plugged(values: Mapping[str, str], plugin: str) -> Mapping[str, str]:
    """Return what has the engine find and load the plugin, beside those that the inventory names."""
    variable, name = PLUGINS[plugin]
    path = [PLUGIN_MARK, *filter(None, values.get(SEARCH_PATH, "").split(":"))]
    names = [*filter(None, (each.strip() for each in values.get(variable, "").split(","))), name]
    return {SEARCH_PATH: ":".join(dict.fromkeys(path)), variable: ",".join(dict.fromkeys(names))}


def _limits(server: Server) -> Mapping[str, str]:
    """Return how far a running engine must let knobs be raised, and to which values they may be turned, of every algo."""
    found: dict[str, str] = {}
    for algo, profile in server.profile.algos.items():
        bounds = server.agent.knobs.get(algo, {})
        for knob, variable in profile.knob_limits.items():
            known = [bounds[knob][1]] if knob in bounds else []
            known += _told(server, [name for name, term in profile.live_fields.items() if term.knob == knob])
            if known:
                found[variable] = str(max(known))
        for knob, variable in profile.knob_steps.items():
            if steps := server.agent.steps(algo, knob):
                found[variable] = ",".join(str(step) for step in steps)
    return {variable: value for variable, value in found.items() if variable not in server.env}


def _told(server: Server, fields: Collection[str]) -> list[int]:
    """Return what a running engine would be told for these fields, by each algo with the inventory's knobs."""
    values = [
        term.value(knob_values(server, profile))
        for profile in server.profile.algos.values()
        for name, term in profile.live_fields.items()
        if name in fields
    ]
    return [value for value in values if value is not None]
