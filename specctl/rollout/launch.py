"""A launch: all that defines one running server, from the resolved inventory; pure, compared and rendered by others."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.algos import ALGOS
from specctl.engines import _command as command
from specctl.engines.types import AlgoProfile, Argument, Credential, Engine
from specctl.errors import UnsupportedError
from specctl.fleet.types import Host, Server
from specctl.plugins import discover
from specctl.rollout import reading


@functools.cache
def engines() -> Mapping[str, Engine]:
    """Return the engines by name; found once."""
    return discover("specctl.engines", "ENGINE", Engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One way to start one server: argv, environment, knobs; secrets only by name.

    `release` is that of the host from which it was read; None: it is rendered now. `config_secrets` maps a key of the engine's
    configuration file to the inventory's name of the secret, `env_secrets` an environment variable to it.
    """

    host: str
    server: str
    algo: str
    argv: tuple[Argument, ...]
    env: Mapping[str, str]
    knobs: Mapping[str, int]
    config_secrets: Mapping[str, str] = field(default_factory=dict)
    env_secrets: Mapping[str, str] = field(default_factory=dict)
    release: str | None = None

    @property
    def plugs(self) -> bool:
        """Claim that the engine is to load a plugin that the release holds."""
        return command.plugs(self.env)

    def environment(self, folder: str) -> Mapping[str, str]:
        """Return the environment with the path of the plugins that a release's folder holds."""
        if not self.plugs:
            return self.env
        path = self.env[command.SEARCH_PATH].split(":")
        there = [f"{folder}/{command.PLUGIN_FOLDER}" if part == command.PLUGIN_MARK else part for part in path]
        return {**self.env, command.SEARCH_PATH: ":".join(there)}

    def words(self) -> tuple[str, ...]:
        """Return the argv as text for people, a secret file shown by its name."""
        return tuple(f"<{part.name}>" if isinstance(part, Credential) else part for part in self.argv)

    def as_wire(self) -> Mapping[str, object]:
        """Return argv and environment as a release's manifest keeps them; a secret is only named."""
        return {"argv": list(self.words()), "env": dict(self.env)}


def algo_profile(server: Server, algo: str) -> AlgoProfile:
    """Return how this server's engine starts the algo, or raise UnsupportedError."""
    found = server.profile.algos.get(algo)
    if found is None:
        known = ", ".join(server.profile.algos) or "none"
        raise UnsupportedError(
            f"engine profile {server.profile.name} has no {algo}",
            hint=f"it has {known}; give server {server.name} an engine profile that has {algo} (docs/adding-an-engine-profile.md)",
        )
    return found


def stored(
    host: Host, server: Server, algo: str, kept: Mapping[str, object], knobs: Mapping[str, int], release: str
) -> Launch:
    """Return a launch as a release's manifest keeps it; a secret file's place is known by its name."""
    credential = Credential(name=command.CONFIG_FILE)
    words = [credential if word == f"<{credential.name}>" else word for word in reading.texts(kept.get("argv"))]
    keyed = {key: name for name, key in command.CONFIG_SECRETS.items() if name in server.secrets}
    return Launch(
        host=host.name,
        server=server.name,
        algo=algo,
        argv=tuple(words),
        env={str(name): str(value) for name, value in reading.mapping(kept.get("env")).items()},
        knobs=knobs,
        config_secrets=keyed if credential in words else {},
        release=release,
    )


def build(host: Host, server: Server, algo: str) -> Launch:
    """Put the launch together; raises UnsupportedError when the profile lacks the algo or the server lacks a draft."""
    profile = algo_profile(server, algo)
    if profile.draft and server.draft is None:
        raise UnsupportedError(
            f"server {server.name} has no draft, which {algo} needs",
            hint=f"set servers.{server.name}.draft",
            host=host.name,
        )
    knobs = command.knob_values(server, profile)
    faults = ALGOS[algo].faults(knobs)
    if faults:
        raise UnsupportedError(
            f"server {server.name}: {'; '.join(faults)}", hint="change knobs in the inventory", host=host.name
        )
    env_secrets = {
        command.ENV_SECRETS.get(name, name): name for name in server.secrets if name not in command.CONFIG_SECRETS
    }
    config_secrets = {key: name for name, key in command.CONFIG_SECRETS.items() if name in server.secrets}
    return Launch(
        host=host.name,
        server=server.name,
        algo=algo,
        argv=command.argv(server, profile),
        env=command.env(server, profile),
        knobs=knobs,
        config_secrets=config_secrets,
        env_secrets=env_secrets,
    )


def possible(server: Server) -> tuple[str, ...]:
    """Name the algos that this server can run: the profile has them and the draft is there where one is needed."""
    return tuple(
        name
        for name, profile in server.profile.algos.items()
        if name in ALGOS and (server.draft is not None or not profile.draft)
    )
