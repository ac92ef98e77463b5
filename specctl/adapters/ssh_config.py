"""What OpenSSH resolved for one host, read from the text of `ssh -G`; pure. ssh_resolve.py asks, ssh.py obeys.

StrictHostKeyChecking is not read on purpose: no setting of the operator's makes specctl accept a key that nobody vouched for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

AGENT_OF_ENVIRONMENT = "SSH_AUTH_SOCK"
_TOKEN = re.compile(r"%(.)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One element of a ProxyJump list; None leaves the value to the hop's own configuration."""

    host: str
    user: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSide:
    """The operator's machine as OpenSSH's tokens see it; `home` is the password database's, as OpenSSH takes it, not $HOME."""

    user: str
    uid: int
    home: str
    hostname: str
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """How to reach one host; `alias` is the name that was asked for, paths and tokens are expanded.

    `identity_agent` is a socket's path or None for no agent; `proxy_command` is for the operator's shell.
    """

    alias: str
    hostname: str
    port: int
    user: str
    identity_files: tuple[str, ...] = ()
    identities_only: bool = False
    identity_agent: str | None = None
    proxy_jump: tuple[Hop, ...] = ()
    proxy_command: str | None = None
    user_known_hosts_files: tuple[str, ...] = ()
    global_known_hosts_files: tuple[str, ...] = ()
    host_key_alias: str | None = None
    hash_known_hosts: bool = False
    connect_timeout_s: float | None = None
    alive_interval_s: float | None = None
    alive_count: int = 3
    address_family: str = "any"
    bind_address: str | None = None

    @property
    def known_as(self) -> str:
        """Return the name that known_hosts has it under: the alias, `host`, or `[host]:port` off port 22."""
        return self.host_key_alias or known_hosts_name(self.hostname, self.port)

    @property
    def known_names(self) -> tuple[str, ...]:
        """Return the names to look for in known_hosts, the most exact first; off port 22, a plain `host` line vouches too."""
        return (self.known_as,) if self.host_key_alias else tuple(dict.fromkeys((self.known_as, self.hostname)))

    @property
    def destination(self) -> str:
        """Return `user@host:port` for people."""
        host = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        return f"{self.user}@{host}:{self.port}"


def known_hosts_name(hostname: str, port: int) -> str:
    """Return a host's name as known_hosts spells it."""
    return hostname if port == 22 else f"[{hostname}]:{port}"


def parse_ssh_config(text: str, *, alias: str, local: LocalSide) -> SshSettings:
    """Read the output of `ssh -G ALIAS`; raise ValueError where it does not name a host, a port and a user."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        key, _, value = line.strip().partition(" ")
        found[key.lower()].append(value.strip())

    def one(key: str) -> str | None:
        value = found[key][0] if found[key] else None
        return None if value in {None, "", "none"} else value

    hostname, port, user = one("hostname"), one("port"), one("user")
    if hostname is None or port is None or user is None:
        raise ValueError(f"ssh -G {alias} names no host name, port or user")
    key_alias = one("hostkeyalias")
    tokens = _tokens(local, alias=alias, hostname=hostname, port=port, user=user, key_alias=key_alias)

    def expanded(value: str) -> str:
        return expand(value, tokens=tokens, local=local)

    command = one("proxycommand")
    return SshSettings(
        alias=alias,
        hostname=hostname,
        port=int(port),
        user=user,
        identity_files=tuple(expanded(value) for value in found["identityfile"] if value != "none"),
        identities_only=one("identitiesonly") in {"yes", "true"},
        identity_agent=_agent(found["identityagent"], tokens=tokens, local=local),
        proxy_jump=parse_hops(one("proxyjump") or ""),
        proxy_command=None if command is None else expand_tokens(command, tokens),
        user_known_hosts_files=_paths(one("userknownhostsfile"), tokens=tokens, local=local),
        global_known_hosts_files=_paths(one("globalknownhostsfile"), tokens=tokens, local=local),
        host_key_alias=key_alias,
        hash_known_hosts=one("hashknownhosts") in {"yes", "true"},
        connect_timeout_s=_seconds(one("connecttimeout")),
        alive_interval_s=_seconds(one("serveraliveinterval")),
        alive_count=int(one("serveralivecountmax") or 3),
        address_family=one("addressfamily") or "any",
        bind_address=one("bindaddress"),
    )


def parse_hops(text: str) -> tuple[Hop, ...]:
    """Read a ProxyJump list (`[user@]host[:port]` or `ssh://…`, separated by commas), the first hop first; `none` is empty."""
    if text.strip().lower() in {"", "none"}:
        return ()
    return tuple(_hop(part.strip()) for part in text.split(","))


def expand(text: str, *, tokens: Mapping[str, str], local: LocalSide) -> str:
    """Expand a path of ssh_config: leading ~, ${VARIABLES} and %-tokens; what is not known stays as it is."""
    if text == "~" or text.startswith("~/"):
        text = local.home + text[1:]
    text = _VARIABLE.sub(lambda match: local.env.get(match[1], match[0]), text)
    return expand_tokens(text, tokens)


def expand_tokens(text: str, tokens: Mapping[str, str]) -> str:
    """Replace %-tokens; one that is not known stays as it is."""
    return _TOKEN.sub(lambda match: tokens.get(match[1], match[0]), text)


def _tokens(
    local: LocalSide, *, alias: str, hostname: str, port: str, user: str, key_alias: str | None
) -> Mapping[str, str]:
    return {
        "%": "%",
        "d": local.home,
        "h": hostname,
        "i": str(local.uid),
        "k": key_alias or alias,
        "L": local.hostname.partition(".")[0],
        "l": local.hostname,
        "n": alias,
        "p": port,
        "r": user,
        "u": local.user,
    }


def _agent(values: Sequence[str], *, tokens: Mapping[str, str], local: LocalSide) -> str | None:
    """Return the socket of the agent: an own one, the environment's, or None for `none` and where there is none."""
    value = values[0] if values else AGENT_OF_ENVIRONMENT
    if value == "none":
        return None
    if value == AGENT_OF_ENVIRONMENT:
        return local.env.get(AGENT_OF_ENVIRONMENT)
    if value.startswith("$") and not value.startswith("${"):
        return local.env.get(value[1:])
    return expand(value, tokens=tokens, local=local)


def _paths(value: str | None, *, tokens: Mapping[str, str], local: LocalSide) -> tuple[str, ...]:
    """Split a list of paths; ssh -G prints a space inside a path bare, so a piece that begins no path goes on with the last."""
    paths: list[str] = []
    for piece in (value or "").split(" "):
        if paths and not piece.startswith(("/", "~", "%", "$")):
            paths[-1] = f"{paths[-1]} {piece}"
        elif piece:
            paths.append(piece)
    return tuple(expand(path, tokens=tokens, local=local) for path in paths)


def _seconds(value: str | None) -> float | None:
    return float(value) if value and float(value) > 0 else None


def _hop(text: str) -> Hop:
    parts = urlsplit(text if text.startswith("ssh://") else f"ssh://{text}")
    user = parts.netloc.rpartition("@")[0]
    if not parts.hostname:
        raise ValueError(f"a jump host has no name: {text!r}")
    return Hop(host=_cased(parts.netloc, parts.hostname), user=user or None, port=parts.port)


def _cased(netloc: str, lowered: str) -> str:
    """Return the host as it was written: urlsplit lowers it, and aliases of ssh_config know case."""
    start = netloc.lower().rfind(lowered)
    return netloc[start : start + len(lowered)]
