"""What the templates are given: a launch as quoted lines, for systemd and for supervisor; pure, no value enters unquoted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from specctl.engines._command import CONFIG_FILE, ENV_FILE
from specctl.engines.types import Credential
from specctl.fleet.types import Host, Server
from specctl.rollout import quoting
from specctl.rollout.launch import Launch

# A unit may fail this often within START_LIMIT_LOADS whole loads before systemd gives up on it.
START_LIMIT_BURST = 3
START_LIMIT_LOADS = 4


def server_dir(host: Host, server: str) -> PurePosixPath:
    """Return the folder on the host that holds a server's releases, records and lock."""
    return host.state_dir / server


def unit_name(server: str) -> str:
    """Return the name of a server's systemd unit."""
    return f"specctl-{server}.service"


def program_name(server: str) -> str:
    """Return the name of a server's program in supervisor."""
    return f"specctl-{server}"


def _whole_s(seconds: float) -> str:
    return str(max(1, round(seconds)))


def systemd_values(host: Host, server: Server, launch: Launch, release: str) -> Mapping[str, object]:
    """Return the values of server.service.j2."""
    folder = server_dir(host, server.name) / "releases" / release
    user = server.unit.user
    identity = [f"User={quoting.setting(user)}"] if user else []
    if server.working_dir:
        identity.append(f"WorkingDirectory={quoting.path(server.working_dir)}")
    if server.unit.memory_max:
        identity.append(f"MemoryMax={quoting.setting(server.unit.memory_max)}")
    secret = bool(launch.config_secrets or launch.env_secrets)
    return {
        "host": host.name,
        "description": quoting.description(f"specctl server {server.name}: {server.target.name} with {launch.algo}"),
        "mounts": [quoting.path(str(server_dir(host, server.name)))] if secret else [],
        "start_limit_s": _whole_s(server.limits.load_s * START_LIMIT_LOADS),
        "start_limit_burst": START_LIMIT_BURST,
        "identity": identity,
        "environment": [quoting.assignment(name, value) for name, value in launch.environment(str(folder)).items()],
        "environment_files": [quoting.path(str(folder / ENV_FILE))] if launch.env_secrets else [],
        "credentials": [f"{CONFIG_FILE}:{quoting.path(str(folder / CONFIG_FILE))}"] if launch.config_secrets else [],
        "exec_start": " ".join(
            f"%d/{part.name}" if isinstance(part, Credential) else quoting.argument(part) for part in launch.argv
        ),
        "stop_s": _whole_s(server.limits.drain_s),
        "restart": "on-failure" if server.unit.restart else "no",
        "extra": [f"{key}={quoting.setting(value)}" for key, value in server.unit.extra],
    }


def script_values(host: Host, server: Server, launch: Launch, release: str) -> Mapping[str, object]:
    """Return the values of launch.sh.j2, which supervisor starts."""
    folder = server_dir(host, server.name) / "releases" / release
    words = [
        quoting.shell_word(str(folder / part.name) if isinstance(part, Credential) else part) for part in launch.argv
    ]
    return {
        "host": host.name,
        "exports": [f"{name}={quoting.shell_word(value)}" for name, value in launch.environment(str(folder)).items()],
        "environment_files": [quoting.shell_word(str(folder / ENV_FILE))] if launch.env_secrets else [],
        "working_dir": [quoting.shell_word(server.working_dir)] if server.working_dir else [],
        "exec_start": " ".join(words),
    }


def supervisor_values(host: Host, server: Server, launch: Launch, release: str) -> Mapping[str, object]:
    """Return the values of server.conf.j2."""
    home = server_dir(host, server.name)
    script = home / "releases" / release / f"{launch.algo}.sh"
    return {
        "host": host.name,
        "program": program_name(server.name),
        "script": quoting.supervisor_word(str(script)),
        "restart": "unexpected" if server.unit.restart else "false",
        # What ends within its load counts as a start that failed: it is tried again a little, then given up on.
        "start_s": _whole_s(server.limits.load_s),
        "stop_s": _whole_s(server.limits.drain_s),
        "log_file": quoting.setting(str(home / "log")).replace("%", "%%"),
        "users": [quoting.setting(server.unit.user)] if server.unit.user else [],
    }


def config_lines(launch: Launch, values: Mapping[str, str]) -> list[str]:
    """Return the lines of the engine's secret configuration file; `values` are the secrets by their inventory name."""
    return [f"{key}: {_yaml_text(values[name])}" for key, name in launch.config_secrets.items()]


def environment_lines(launch: Launch, values: Mapping[str, str]) -> list[str]:
    """Return the lines of the secret environment file."""
    return [quoting.environment_file_line(key, values[name]) for key, name in launch.env_secrets.items()]


def _yaml_text(value: str) -> str:
    """Return a YAML double-quoted scalar."""
    quoting.setting(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
