"""Ports: two uses of one port are found by the engine only after the whole load (engine facts §1.4; recordings, surprise 5)."""

from __future__ import annotations

from collections.abc import Iterator

from specctl.lint.subject import Given, Subject, whole
from specctl.lint.types import Hit, Rule, RuleSet

_PORT_FLAGS = (
    "--nccl-port",
    "--grpc-port",
    "--grpc-http-sidecar-port",
    "--smg-http-sidecar-port",
    "--gated-launch-port",
    "--engine-info-bootstrap-port",
    "--disaggregation-bootstrap-port",
    "--encoder-bootstrap-port",
)
_ADDRESS_FLAGS = ("--dist-init-addr", "--nccl-init-addr")
# With attention data parallelism the engine takes seven ports from here on (srt/server_args.py, ZMQ_TCP_PORT_DELTA).
DERIVED_DELTA, DERIVED_COUNT = 233, 7
HIGHEST_PORT = 65535
# What Linux hands out to outgoing connections by default (ip_local_port_range).
EPHEMERAL = range(32768, 61000)
FIRST_OPEN_PORT = 1024


def _port_of(given: Given) -> int | None:
    if given.name in _PORT_FLAGS:
        return whole(given.value)
    if given.name in _ADDRESS_FLAGS and given.value is not None:
        return whole(given.value.rpartition(":")[2])
    return None


def _uses(subject: Subject) -> Iterator[tuple[int, str, str | None]]:
    """Yield the ports that a launch takes beside its own: number, what for, key."""
    for given in subject.given:
        port = _port_of(given)
        if port is not None:
            yield port, given.written, subject.key(given)
    groups = max(subject.whole("--attn-dp-size") or 1, subject.whole("--dp-size") or 1)
    if groups > 1:
        first = subject.server.port + DERIVED_DELTA
        if first + DERIVED_COUNT > HIGHEST_PORT:
            first = subject.server.port - DERIVED_DELTA
        for port in range(first, first + DERIVED_COUNT):
            yield port, f"data parallelism (port + {DERIVED_DELTA} and the next)", "port"


def _collisions(subject: Subject) -> Iterator[Hit]:
    """Find ports that two uses on one host share; the HTTP port is bound last, after the load (facts §1.4)."""
    taken = {subject.server.port: "this server's own port"}
    taken |= {
        one.port: f"the port of server {one.name}" for one in subject.host.servers if one.name != subject.server.name
    }
    for port, what, key in _uses(subject):
        other = taken.get(port)
        if other is not None:
            yield Hit(message=f"{what} takes {port}, which is {other}", key=key)
        taken.setdefault(port, f"taken by {what}")


def _others_flags(subject: Subject) -> Iterator[Hit]:
    """Find ports that another server's options of the same host name too."""
    mine = {port: (what, key) for port, what, key in _uses(subject)} | {subject.server.port: ("the server", "port")}
    for other in subject.host.servers:
        if other.name == subject.server.name:
            continue
        for flag, value in other.options.items():
            port = _port_of(Given(written=flag, name=flag, values=(str(value),)))
            if port is not None and port in mine:
                what, key = mine[port]
                yield Hit(message=f"{what} takes {port}, which {flag} of server {other.name} takes too", key=key)


def _clash(subject: Subject) -> Iterator[Hit]:
    """Find every use of a port that is used already (facts §1.4: noticed after about eight minutes)."""
    yield from _collisions(subject)
    yield from _others_flags(subject)


def _ephemeral(subject: Subject) -> Iterator[Hit]:
    """Find a port that the kernel may lend to any outgoing connection while the model loads (facts §1.4: bound last)."""
    if subject.server.port in EPHEMERAL:
        words = f"port {subject.server.port} lies among those that outgoing connections get ({EPHEMERAL[0]}-{EPHEMERAL[-1]})"
        yield Hit(message=words, key="port", remedy=f"choose a port below {EPHEMERAL[0]}")


def _privileged(subject: Subject) -> Iterator[Hit]:
    """Find a port that the unit's user may not open: noticed when it is bound, after the load (facts §1.4)."""
    user = subject.server.unit.user
    if user not in (None, "root", "0") and subject.server.port < FIRST_OPEN_PORT:
        yield Hit(message=f"port {subject.server.port} is closed to user {user}", key="port")


RULES = RuleSet(
    name="ports",
    title="Ports",
    rules=(
        Rule(
            id="E070",
            title="one port for two uses",
            reason="The engine binds its HTTP port last: the clash ends it after the whole load.",
            remedy="Give each use a port of its own.",
            check=_clash,
        ),
        Rule(
            id="N070",
            title="port that outgoing connections get",
            reason="Any connection of the host can hold it at the moment when the engine, after its load, wants to bind it.",
            remedy="Choose a lower port, or reserve this one (sysctl net.ipv4.ip_local_reserved_ports).",
            check=_ephemeral,
        ),
        Rule(
            id="W071",
            title="port below 1024 without root",
            reason="The kernel refuses it to ordinary users when the engine binds it, after the whole load.",
            remedy="Choose a port from 1024 on.",
            check=_privileged,
        ),
    ),
)
