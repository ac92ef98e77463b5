"""Asks OpenSSH itself (`ssh -G`) how each host and jump host is reached, so that the operator's ssh_config means the same here.

SPECCTL_SSH_CONFIG names a configuration file to use in place of the user's and the system's (ssh's -F).
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from specctl.adapters import lasting
from specctl.adapters.ssh_config import Hop, LocalSide, SshSettings, parse_ssh_config
from specctl.errors import ConnectError
from specctl.fleet.types import Host

CONFIG_VARIABLE = "SPECCTL_SSH_CONFIG"
MAX_HOPS = 8
# `Match exec` may run a program of the operator's; more than this is a hang.
RESOLVE_LIMIT_S = 20.0


def resolve_route(host: Host) -> tuple[SshSettings, ...]:
    """Return the settings of every hop, the first to dial first and the host itself last; raise ConnectError where ssh objects."""
    target = Hop(host=host.address or host.name, user=host.user, port=host.port)
    settings = _ask(target, identity_file=_existing(host), name=host.name)
    route = _before(settings, name=host.name, seen=(settings.alias,))
    return (*route, settings)


def _before(settings: SshSettings, *, name: str, seen: tuple[str, ...]) -> tuple[SshSettings, ...]:
    """Return the hops before one: as with ssh, only the first of a list of jumps is reached by its own configuration."""
    if not settings.proxy_jump:
        return ()
    first, *others = settings.proxy_jump
    if first.host in seen or len(seen) > MAX_HOPS:
        raise ConnectError(
            f"the jump hosts go in a circle: {' → '.join((*seen, first.host))}",
            hint=f"look at the ProxyJump lines that `ssh -G {first.host}` reads",
            host=name,
        )
    nearest = _ask(first, identity_file=None, name=name)
    front = _before(nearest, name=name, seen=(*seen, first.host))
    return (*front, nearest, *(_ask(hop, identity_file=None, name=name) for hop in others))


def _ask(hop: Hop, *, identity_file: str | None, name: str) -> SshSettings:
    argv = _question(hop, identity_file=identity_file)
    try:
        answer = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RESOLVE_LIMIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ConnectError(
            "the OpenSSH client is missing on this machine, and specctl reads its configuration through it",
            hint="install it: apt-get install openssh-client (dnf install openssh-clients)",
            host=name,
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ConnectError(
            f"`ssh -G {hop.host}` took over {RESOLVE_LIMIT_S:g} s",
            hint="look for a `Match exec` line in your ssh_config that does not end",
            host=name,
        ) from error
    if answer.returncode != 0:
        said = answer.stderr.strip().splitlines() or ["no reason given"]
        raise ConnectError(f"ssh refuses its own configuration: {said[-1]}", hint=_by_hand(argv), host=name)
    try:
        return parse_ssh_config(answer.stdout, alias=hop.host, local=_local_side())
    except ValueError as error:
        raise ConnectError(f"cannot read what ssh resolved: {error}", hint=_by_hand(argv), host=name) from error


def _question(hop: Hop, *, identity_file: str | None) -> list[str]:
    argv = ["ssh", "-G", "-T"]
    config = os.environ.get(CONFIG_VARIABLE)
    if config:
        argv += ["-F", config]
    if hop.user is not None:
        argv += ["-l", hop.user]
    if hop.port is not None:
        argv += ["-p", str(hop.port)]
    if identity_file is not None:
        argv += ["-i", identity_file]
    return [*argv, "--", hop.host]


def _existing(host: Host) -> str | None:
    """Return the inventory's key file with ~ expanded; ssh would only warn of one that is not there, and go on without."""
    if host.identity_file is None:
        return None
    path = host.identity_file
    if path.startswith("~/"):
        path = _local_side().home + path[1:]
    if not lasting.is_file(Path(path)):
        raise ConnectError(
            f"the identity file {host.identity_file} does not exist, or may not be read",
            hint="correct identity_file in the inventory",
            host=host.name,
        )
    return path


def _local_side() -> LocalSide:
    entry = pwd.getpwuid(os.getuid())
    return LocalSide(
        user=entry.pw_name, uid=entry.pw_uid, home=entry.pw_dir, hostname=socket.gethostname(), env=os.environ
    )


def _by_hand(argv: Sequence[str]) -> str:
    return f"see for yourself: {' '.join(argv)}"
