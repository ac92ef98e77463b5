"""The words for everything that can go wrong between here and a host: facts in, ConnectError with a remedy out; pure."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from specctl.adapters.known_hosts import Changed, Entry, Revoked, Trusted, Unvouched, Verdict, fingerprint
from specctl.adapters.ssh_config import SshSettings
from specctl.errors import ConnectError


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One hop of the way to `host` (the inventory's name): its settings and, behind a jump, the hop before it."""

    host: str
    settings: SshSettings
    via: SshSettings | None = None
    is_target: bool = True

    @property
    def who(self) -> str:
        """Return what to call this hop in a sentence."""
        return self.settings.destination if self.is_target else f"jump host {self.settings.destination}"

    def refuse(self, message: str, hint: str) -> ConnectError:
        """Return the error, told of the host that could not be reached."""
        return ConnectError(message, hint=hint, host=self.host)


def host_key_refusal(leg: Leg, verdict: Verdict, *, key_type: str, blob: bytes) -> ConnectError | None:
    """Return why the key that a hop offered is not believed, or None where it is."""
    name = leg.settings.known_as
    offered = f"{key_type} {fingerprint(blob)}"
    scan = f"compare {fingerprint(blob)} with the host's own (`ssh-keygen -lf` there), then: {_scan(leg, key_type)}"
    match verdict:
        case Trusted():
            return None
        case Revoked(entry=entry):
            return leg.refuse(
                f"the host key of {name} is revoked: {offered} at {entry.place}",
                "give the host a new key (ssh-keygen -A), or take the @revoked line away if it is wrong",
            )
        case Changed(entries=entries):
            file = shlex.quote(entries[0].file)
            return leg.refuse(
                f"the host key of {name} changed: it offers {offered}, but {_held(entries)}",
                f"find out why before anything else; if it is right: ssh-keygen -f {file} -R {shlex.quote(name)}, and {scan}",
            )
        case Unvouched(others=others, authorities=authorities):
            if authorities and not others:
                return leg.refuse(
                    f"{name} is trusted through a certificate authority ({authorities[0].place}), which specctl cannot check",
                    scan,
                )
            also = f" ({_held(others)})" if others else ""
            return leg.refuse(f"the host key of {name} is unknown: it offers {offered}{also}", scan)
        case _:
            assert_never(verdict)


def known_hosts_unreadable(leg: Leg, error: OSError) -> ConnectError:
    """Tell that a known_hosts file is there and cannot be read."""
    return leg.refuse(f"cannot read {error.filename}: {error.strerror}", f"make it readable: ls -l {error.filename}")


def unreachable(leg: Leg, error: OSError, *, limit_s: float) -> ConnectError:
    """Tell apart why no connection came to be: name, refusal, silence, route."""
    settings = leg.settings
    if isinstance(error, socket.gaierror):
        return leg.refuse(
            f"the name {settings.hostname} does not resolve",
            f"correct the host's address in the inventory, or look at: ssh -G {settings.alias} | grep ^hostname",
        )
    if isinstance(error, ConnectionRefusedError):
        return leg.refuse(
            f"{leg.who} refuses the connection",
            f"is sshd running there, and on port {settings.port}? systemctl status ssh",
        )
    if isinstance(error, TimeoutError):
        return leg.refuse(
            f"{leg.who} does not answer within {limit_s:g} s",
            f"is the host up and the way open? nc -vz {settings.hostname} {settings.port}",
        )
    return leg.refuse(
        f"{leg.who} cannot be reached: {error.strerror or error}",
        f"look at the route: ip route get {settings.hostname}",
    )


def jump_refused(leg: Leg, reason: str) -> ConnectError:
    """Tell that the hop before this one could not connect to it."""
    before = leg.via.destination if leg.via else "this machine"
    return leg.refuse(
        f"{leg.who} cannot be reached from {before}: {reason}",
        f"try it from there: nc -vz {leg.settings.hostname} {leg.settings.port}",
    )


def jump_forbidden(leg: Leg) -> ConnectError:
    """Tell that a hop forbids forwarding."""
    before = leg.via.destination if leg.via else leg.who
    return leg.refuse(
        f"{before} forbids forwarding to {leg.settings.hostname}:{leg.settings.port}",
        "allow it in sshd_config there: AllowTcpForwarding yes (and look at PermitOpen)",
    )


def closed_at_once(leg: Leg) -> ConnectError:
    """Tell that something accepts the connection and hangs up before a word."""
    return leg.refuse(
        f"{leg.who} accepts the connection and closes it at once",
        "sshd is starting, out of slots (MaxStartups) or refuses this address: journalctl -u ssh -n 20 on the host",
    )


def silent(leg: Leg, *, limit_s: float) -> ConnectError:
    """Tell that something accepts the connection and says nothing."""
    return leg.refuse(
        f"{leg.who} accepts the connection but says nothing for {limit_s:g} s",
        f"is that port sshd's? nc {leg.settings.hostname} {leg.settings.port} should print a line that begins with SSH-",
    )


def not_ssh(leg: Leg, reason: str) -> ConnectError:
    """Tell that the two ends found no common language."""
    return leg.refuse(
        f"{leg.who} and specctl cannot agree on a connection: {reason}",
        f"is it an SSH server of this decade? ssh -v -p {leg.settings.port} {leg.settings.hostname}",
    )


def proxy_failed(leg: Leg, reason: str) -> ConnectError:
    """Tell that the ProxyCommand could not be run or ended early."""
    return leg.refuse(
        f"the ProxyCommand to {leg.who} failed: {reason}", f"try it by hand: {leg.settings.proxy_command}"
    )


def not_authenticated(
    leg: Leg, *, tried: Sequence[str], skipped: Sequence[str], methods: Sequence[str], hung_up: bool
) -> ConnectError:
    """Tell which keys were offered and which could not be; `methods`: what the host accepts; `hung_up`: it did not wait for all."""
    settings = leg.settings
    offered = f"offered {', '.join(tried)}" if tried else "no key was offered"
    left = f"; not used: {', '.join(skipped)}" if skipped else ""
    if hung_up and tried:
        return leg.refuse(
            f"{leg.who} hung up after {len(tried)} keys ({offered}{left})",
            "offer the right key alone: IdentityFile and IdentitiesOnly yes for this host in ~/.ssh/config",
        )
    if methods and "publickey" not in methods:
        return leg.refuse(
            f"{leg.who} accepts no keys, only {', '.join(methods)}",
            "allow keys in sshd_config there (PubkeyAuthentication yes); specctl never asks for a password",
        )
    if skipped:
        hint = "unlock the key into an agent (ssh-add FILE); specctl never asks for a passphrase"
    elif tried:
        login = shlex.quote(f"{settings.user}@{settings.hostname}")
        jump = f"-o ProxyJump={shlex.quote(leg.via.alias)} " if leg.via else ""
        hint = f"let one of these keys in: ssh-copy-id {jump}-p {settings.port} {login}"
    else:
        hint = "make a key (ssh-keygen -t ed25519) or name one: identity_file in the inventory, IdentityFile in ~/.ssh/config"
    return leg.refuse(f"{leg.who} accepts none of our keys ({offered}{left})", hint)


def half_authenticated(leg: Leg, methods: Sequence[str]) -> ConnectError:
    """Tell that a key was right but the host asks for more than a key."""
    return leg.refuse(
        f"{leg.who} accepts the key but asks for {', '.join(methods)} as well",
        "let this user in with a key alone (AuthenticationMethods in sshd_config there), or go through a jump host",
    )


def no_more_sessions(host: str) -> ConnectError:
    """Tell that sshd opens no further session on this connection."""
    return ConnectError(
        "sshd there opens no further session on this connection",
        hint="raise MaxSessions in its sshd_config (10 by default), or set it above 1 if it forbids sessions",
        host=host,
    )


def no_forwarding(host: str, address: str, port: int) -> ConnectError:
    """Tell that sshd forbids the connection through which the engine's HTTP goes."""
    return ConnectError(
        f"sshd there forbids forwarding to {address}:{port}, which specctl needs to speak with the engine",
        hint="allow it in sshd_config there: AllowTcpForwarding local (and look at PermitOpen)",
        host=host,
    )


def lost(host: str) -> ConnectError:
    """Tell that the connection went away in the middle of something."""
    return ConnectError(
        "the connection was lost; what ran there may still be running",
        hint="see what the host is doing before you repeat the command: specctl status",
        host=host,
    )


def _held(entries: Sequence[Entry]) -> str:
    return ", ".join(f"{entry.place} holds {entry.key_type} {fingerprint(entry.blob)}" for entry in entries)


def _scan(leg: Leg, key_type: str) -> str:
    """Return the command that fetches the key: from here or, behind a jump, from the hop that reaches the host."""
    settings = leg.settings
    kind = {"ssh-ed25519": "ed25519", "ssh-rsa": "rsa"}.get(key_type, "ecdsa")
    hashed = "-H " if settings.hash_known_hosts and not settings.host_key_alias else ""
    scan = f"ssh-keyscan {hashed}-t {kind} -p {settings.port} {shlex.quote(settings.hostname)}"
    if leg.via:
        scan = f"ssh {shlex.quote(leg.via.alias)} {scan}"
    if settings.host_key_alias:
        scan += f" | sed 's/^[^ ]*/{settings.host_key_alias}/'"
    files = settings.user_known_hosts_files or settings.global_known_hosts_files or ("~/.ssh/known_hosts",)
    return f"{scan} >> {shlex.quote(files[0]) if not files[0].startswith('~') else files[0]}"
