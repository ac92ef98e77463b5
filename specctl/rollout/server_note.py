"""The note that a deploy leaves for the agent on the host: what the server is, what the agent may do, what its releases can run.

Pure. No secret, nothing measured and no date is in it, so that the same inventory always gives the same note. It lies in the
server's folder as agent/server.json, written by root and read by everybody: the agent needs no inventory, and the program that
performs its requests takes nothing from the agent that the note does not allow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from specctl.errors import SpecctlError, UnsupportedError
from specctl.fleet.types import Gateway, Hardware, Host, SecretRef, SecretSource, Server, ServiceManager, Via
from specctl.rollout import plain, reading
from specctl.rollout.facts import stored_knobs, stored_units

FORMAT = 1
FOLDER = "agent"
NOTE = "server.json"
CALIBRATION = "calibration.json"
KEYS = "keys"
LIVE = "live.json"
RESULTS = "results"
GATEWAY_KEY = "gateway_api_key"
# What the agent needs to talk to the engine; other secrets are the engine's own affair.
ENGINE_KEYS = ("api_key", "admin_api_key")
LEFT_OUT = ("secrets", "api_key", "provenance", "calibration")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNote:
    """Where a release on the host answers, and the knobs of each algo that it can run."""

    port: int
    bind: str
    knobs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNote:
    """What the agent needs to know of its host."""

    name: str
    state_dir: PurePosixPath
    manager: ServiceManager = ServiceManager.SYSTEMD
    groups: tuple[str, ...] = ()
    hardware: Hardware | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNote:
    """One server's note; `keys` names the keys that lie on the host, `calibrated` says that a calibration lies beside it."""

    host: HostNote
    server: Server
    releases: Mapping[str, ReleaseNote] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    calibrated: bool = False

    def text(self) -> str:
        """Return the note as it is written."""
        return json.dumps({"format": FORMAT, **_object(plain.dump(self, leave=LEFT_OUT))}, indent=1) + "\n"

    def as_host(self) -> Host:
        """Return the host as specctl reaches it from itself."""
        note = self.host
        return Host(
            name=note.name,
            via=Via.LOCAL,
            manager=note.manager,
            state_dir=note.state_dir,
            groups=note.groups,
            hardware=note.hardware,
            servers=(self.server,),
        )

    def deployed(self, release: str) -> Server:
        """Return the server at the address of one of its releases; the inventory's where the note does not know the release."""
        known = self.releases.get(release)
        return self.server if known is None else replace(self.server, port=known.port, bind=known.bind)


def names_of(server: Server) -> tuple[str, ...]:
    """Name the keys of a server that belong on the host for its agent."""
    found = [name for name in ENGINE_KEYS if name in server.secrets]
    gateway = server.agent.gateway
    return (*found, GATEWAY_KEY) if gateway is not None and gateway.api_key is not None else tuple(found)


def references(server: Server) -> Mapping[str, SecretRef]:
    """Return the operator's references to those keys."""
    found = {name: server.secrets[name] for name in ENGINE_KEYS if name in server.secrets}
    gateway = server.agent.gateway
    return found | ({GATEWAY_KEY: gateway.api_key} if gateway is not None and gateway.api_key is not None else {})


def make(host: Host, server: Server, manifests: Mapping[str, Mapping[str, object]], *, calibrated: bool) -> ServerNote:
    """Write down a server of the inventory, with the releases that are on the host by their manifests."""
    return ServerNote(
        host=HostNote(
            name=host.name,
            state_dir=host.state_dir,
            manager=host.manager,
            groups=host.groups,
            hardware=host.hardware,
        ),
        server=server,
        releases={release: release_note(server, manifest) for release, manifest in manifests.items()},
        keys=names_of(server),
        calibrated=calibrated,
    )


def release_note(server: Server, manifest: Mapping[str, object]) -> ReleaseNote:
    """Take from a manifest what the agent may know of its release."""
    return ReleaseNote(
        port=reading.whole(manifest.get("port")) or server.port,
        bind=reading.text(manifest.get("bind")) or server.bind,
        knobs={algo: dict(stored_knobs(manifest, algo)) for algo in stored_units(manifest)},
    )


def read(text: str, key_path: Callable[[str], str]) -> ServerNote:
    """Read a note; `key_path` says where the key of a name lies for whoever reads. Raises SpecctlError with what is wrong."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecctlError(f"{NOTE} is no JSON", hint="specctl deploy writes it anew") from error
    fields = reading.mapping(value)
    if fields.get("format") != FORMAT:
        raise UnsupportedError(
            f"{NOTE} has format {fields.get('format')!r}, and this is format {FORMAT}",
            hint="specctl agent upgrade, or specctl deploy",
        )
    try:
        note = plain.load(ServerNote, fields)
    except plain.PlainError as error:
        raise SpecctlError(f"{NOTE} does not fit: {error}", hint="specctl deploy writes it anew") from error
    return _with_keys(note, key_path)


def _with_keys(note: ServerNote, key_path: Callable[[str], str]) -> ServerNote:
    """Let the references of the server point to where the keys lie on the host."""
    refs = {name: SecretRef(source=SecretSource.FILE, locator=key_path(name)) for name in note.keys}
    agent = note.server.agent
    if agent.gateway is not None:
        agent = replace(agent, gateway=_keyed(agent.gateway, refs.get(GATEWAY_KEY)))
    engine = {name: ref for name, ref in refs.items() if name in ENGINE_KEYS}
    return replace(note, server=replace(note.server, secrets=engine, agent=agent))


def _keyed(gateway: Gateway, key: SecretRef | None) -> Gateway:
    return replace(gateway, api_key=key)


def _object(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value
