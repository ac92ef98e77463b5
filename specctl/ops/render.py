"""Render a server's release from the inventory: every algo that the server can run; called by render, deploy and rollback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from specctl.adapters import plugin_files
from specctl.engines._command import CONFIG_FILE, ENV_FILE
from specctl.fleet.types import Host, Server, ServiceManager
from specctl.rollout import launch as launches
from specctl.rollout import unit
from specctl.rollout.launch import Launch
from specctl.rollout.release import Release, ReleaseFile

if TYPE_CHECKING:
    from specctl.adapters.templates import Templates

SECRET_MODE = 0o600


def unit_text(templates: Templates, host: Host, server: Server, launch: Launch, release: str) -> str:
    """Return the text of one algo's main file: a systemd unit, or supervisor's section."""
    if host.manager is ServiceManager.SYSTEMD:
        return templates.render("server.service.j2", unit.systemd_values(host, server, launch, release))
    return templates.render("server.conf.j2", unit.supervisor_values(host, server, launch, release))


def _algo_files(templates: Templates, host: Host, server: Server, launch: Launch, release: str) -> list[ReleaseFile]:
    text = unit_text(templates, host, server, launch, release)
    if host.manager is ServiceManager.SYSTEMD:
        return [ReleaseFile(name=f"{launch.algo}.service", content=text)]
    script = templates.render("launch.sh.j2", unit.script_values(host, server, launch, release))
    return [
        ReleaseFile(name=f"{launch.algo}.conf", content=text),
        ReleaseFile(name=f"{launch.algo}.sh", content=script, mode=0o755),
    ]


def release(
    templates: Templates, host: Host, server: Server, *, release_id: str, secrets: Mapping[str, str]
) -> Release:
    """Render a whole release; `secrets` are the values by the inventory's names, all that the server refers to."""
    files: list[ReleaseFile] = []
    units: dict[str, str] = {}
    knobs: dict[str, Mapping[str, int]] = {}
    stored: dict[str, Mapping[str, object]] = {}
    for algo in launches.possible(server):
        launch = launches.build(host, server, algo)
        made = _algo_files(templates, host, server, launch, release_id)
        files.extend(made)
        units[algo] = made[0].name
        knobs[algo] = launch.knobs
        stored[algo] = launch.as_wire()
    if server.profile.plugin is not None and any(launches.build(host, server, algo).plugs for algo in units):
        files.extend(plugin_files.of(server.profile.plugin))
    launch = launches.build(host, server, server.algo)
    if launch.config_secrets:
        text = templates.render("engine.yaml.j2", {"lines": unit.config_lines(launch, secrets)})
        files.append(ReleaseFile(name=CONFIG_FILE, content=text, mode=SECRET_MODE, secret=True))
    if launch.env_secrets:
        text = templates.render("secrets.env.j2", {"lines": unit.environment_lines(launch, secrets)})
        files.append(ReleaseFile(name=ENV_FILE, content=text, mode=SECRET_MODE, secret=True))
    return Release(
        id=release_id,
        server=server.name,
        files=tuple(files),
        units=units,
        knobs=knobs,
        profile=server.profile.name,
        port=server.port,
        bind=server.bind,
        launches=stored,
    )
