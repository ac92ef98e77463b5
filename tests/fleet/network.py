"""The hosts' network: one bridge and fixed addresses, all inside the fleet's network namespace, connected to nothing else.

The addresses exist only in there, so any number of fleets, and whatever the machine itself uses them for, can stand side by side.
"""

from __future__ import annotations

import subprocess

BRIDGE = "br-fleet"
CONTROL_ADDRESS = "10.77.0.1"
PREFIX_BITS = 24
FIRST_HOST = 11
MOST_HOSTS = 64


def host_names(count: int) -> tuple[str, ...]:
    """Return gpu1 … gpuN."""
    if not 1 <= count <= MOST_HOSTS:
        raise ValueError(f"between 1 and {MOST_HOSTS} hosts, not {count}")
    return tuple(f"gpu{number}" for number in range(1, count + 1))


def address(host: str) -> str:
    """Return the host's address."""
    return f"10.77.0.{FIRST_HOST - 1 + int(host.removeprefix('gpu'))}"


def link(host: str) -> str:
    """Return the name of the bridge's end of the host's cable, as systemd-nspawn calls it."""
    return f"vb-{host}"


def slow_links(host: str) -> tuple[str, str]:
    """Return the names of the piece of cable that is put in to slow a host: the relay's end and the bridge's."""
    return f"sr-{host}", f"sb-{host}"


def slowing(host: str) -> tuple[tuple[str, ...], ...]:
    """Return the `ip` commands that take the host's cable off the bridge and put another piece there, for relay.py to join both.

    ARP is off on the loose ends: the kernel would otherwise answer there for the bridge's address, past the relay.
    """
    relay_end, bridge_end = slow_links(host)
    return (
        ("link", "add", relay_end, "type", "veth", "peer", "name", bridge_end),
        ("link", "set", relay_end, "arp", "off", "up"),
        ("link", "set", bridge_end, "master", BRIDGE, "up"),
        ("link", "set", link(host), "nomaster", "arp", "off"),
    )


def joining(host: str) -> tuple[tuple[str, ...], ...]:
    """Return the `ip` commands that undo `slowing`; the relay ends when its cable goes."""
    return (
        ("link", "del", slow_links(host)[0]),
        ("link", "set", link(host), "master", BRIDGE, "arp", "on"),
    )


def hosts_file(hosts: tuple[str, ...]) -> str:
    """Return an /etc/hosts that knows every host."""
    lines = ["127.0.0.1 localhost", f"{CONTROL_ADDRESS} control", *(f"{address(host)} {host}" for host in hosts)]
    return "\n".join(lines) + "\n"


def networkd_file(host: str) -> str:
    """Return the systemd-networkd file that gives the host its address."""
    return f"[Match]\nName=host0\n\n[Network]\nAddress={address(host)}/{PREFIX_BITS}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"


def make_bridge() -> None:
    """Make the bridge in the caller's network namespace, and bring the loopback up."""
    for arguments in (
        ("link", "set", "lo", "up"),
        ("link", "add", BRIDGE, "type", "bridge"),
        ("address", "add", f"{CONTROL_ADDRESS}/{PREFIX_BITS}", "dev", BRIDGE),
        ("link", "set", BRIDGE, "up"),
    ):
        subprocess.run(["ip", *arguments], check=True, stdin=subprocess.DEVNULL)
