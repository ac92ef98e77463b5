"""Checks of the place where the server would run: service manager, folders, disk, port, lease, drift, clock, limits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from specctl.engines import _command as command
from specctl.fleet.types import ServiceManager
from specctl.rollout import unit
from specctl.rollout.observation import Port
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Check, Level, Verdict, failed, passed, unknown, warned
from specctl.rollout.preflight.words import seconds, size

# A release and its records take less than one megabyte; below the first nothing works well, below the second something grows.
LEAST_DISK_BYTES = 64 << 20
SMALL_DISK_BYTES = 1 << 30
CLOCK_OFF_S = 60.0
LEAST_FILES = 4096
# LoadCredential=, by which a unit is handed its key file.
CREDENTIALS_SINCE = 247
UNIT_DIR = "/etc/systemd/system"
KEPT: Mapping[bool | None, str] = {
    True: "a time service keeps {}",
    False: "no time service keeps {}",
    None: "whether a time service keeps {} is not known",
}


def _is_systemd(subject: Subject) -> bool:
    return subject.host.manager is ServiceManager.SYSTEMD


def manager_runs(subject: Subject) -> Verdict | None:
    """Look whether the service manager that the inventory names runs the host."""
    if not _is_systemd(subject):
        state = subject.facts.unit.active
        return passed("supervisor answers") if state else unknown("supervisor did not say how the server is")
    version = subject.machine.systemd
    if subject.machine.systemd_runs is False:
        return failed("systemd does not run this host", "set service_manager: supervisor for the host in the inventory")
    if version is None:
        return unknown("systemd's version could not be found out")
    keyed = bool(command.CONFIG_SECRETS.keys() & subject.server.secrets.keys())
    digits = version.split(".")[0].split("~")[0]
    if keyed and digits.isdecimal() and int(digits) < CREDENTIALS_SINCE:
        return failed(
            f"systemd {version} cannot hand a key file to a unit (LoadCredential= came with {CREDENTIALS_SINCE})",
            "update the host's system, or set service_manager: supervisor",
        )
    return passed(f"systemd {version}")


def unit_unmasked(subject: Subject) -> Verdict | None:
    """Look whether somebody forbade the unit to start."""
    if not _is_systemd(subject):
        return None
    loaded = subject.facts.loaded
    if loaded == "masked":
        name = unit.unit_name(subject.server.name)
        return failed(f"{name} is masked", f"specctl exec --host {subject.host.name} -- systemctl unmask {name}")
    return passed(f"systemd calls it {loaded}") if loaded else unknown("systemd did not say whether the unit may start")


def folders_writable(subject: Subject) -> Verdict | None:
    """Look whether a release and its unit can be written."""
    paths = [str(unit.server_dir(subject.host, subject.server.name)), *([UNIT_DIR] if _is_systemd(subject) else [])]
    asked = [disk for path in paths if (disk := subject.machine.disk(path))]
    closed = [disk.path for disk in asked if disk.writable is False]
    if closed:
        return failed(f"{' and '.join(closed)} cannot be written: read-only, or another user's")
    known = [disk.path for disk in asked if disk.writable]
    return passed(" and ".join(known)) if known else unknown("whether the folders can be written is not known")


def disk_room(subject: Subject) -> Verdict | None:
    """Look whether the disk of the releases has room."""
    disk = subject.machine.disk(str(unit.server_dir(subject.host, subject.server.name)))
    if disk is None or disk.free_bytes is None:
        return unknown("how much disk is free is not known")
    text = f"{size(disk.free_bytes)} free at {disk.path}"
    if disk.free_bytes < LEAST_DISK_BYTES:
        return failed(text)
    return warned(text) if disk.free_bytes < SMALL_DISK_BYTES else passed(text)


def port_free(subject: Subject) -> Verdict | None:
    """Look who listens on the server's port: the engine itself binds it last, after the whole load."""
    facts, number = subject.facts, subject.server.port
    if facts.port is None:
        return unknown(f"who listens on port {number} is not known")
    if facts.port is Port.FOREIGN:
        return failed(f"port {number} is held by {facts.port_owner or 'another process'}")
    return passed(f"{number}, " + ("held by the running server" if facts.port is Port.OWN else "nobody listens"))


def lease_free(subject: Subject) -> Verdict | None:
    """Look whether somebody else acts on the server now; the lease itself refuses, this only tells it early."""
    lease = subject.facts.lease
    if lease is None:
        return passed("no lease is held")
    reason = f" ({lease.reason})" if lease.reason else ""
    return warned(f"{lease.owner} holds the server{reason}; acting on it will be refused while that lasts")


def drift(subject: Subject) -> Verdict | None:
    """Look whether the host still is what its current release says."""
    if subject.facts.current is None and not subject.facts.drift:
        return None
    if subject.facts.drift:
        return warned("; ".join(subject.facts.drift))
    return passed("no file differs, and what runs began after it was activated")


def clock(subject: Subject) -> Verdict | None:
    """Look how far the clocks are apart; leases count by monotonic time, so that nothing of ours breaks by it."""
    ahead = subject.machine.clock_ahead_s
    if ahead is None:
        return unknown("the host's clock is not known")
    kept = KEPT[subject.machine.clock_synchronised]
    if abs(ahead) <= CLOCK_OFF_S:
        return passed(f"{seconds(abs(ahead))} apart; " + kept.format("the host's"))
    side = "ahead of" if ahead > 0 else "behind"
    return warned(
        f"the clock is {seconds(abs(ahead))} {side} this machine's, and {kept.format('it')}; records and logs bear wrong times"
    )


def _given(subject: Subject, name: str) -> float | None:
    """Return what the inventory's unit.extra sets a limit to; None where it does not, or not to a number."""
    values = [value.partition(":")[2] or value for key, value in subject.server.unit.extra if key == name]
    if not values:
        return None
    return math.inf if values[-1] == "infinity" else (float(values[-1]) if values[-1].isdecimal() else None)


def limits(subject: Subject) -> Verdict | None:
    """Look how many files the engine may open, and whether it may lock memory for RDMA."""
    if _is_systemd(subject):
        given = _given(subject, "LimitNOFILE")
        files = math.inf if given is None else given
        locked = _given(subject, "LimitMEMLOCK")
        memlock: float | None = math.inf if locked is None else locked
    else:
        found = subject.machine.nofile
        if found is None:
            return unknown("the limits of the session's user are not known")
        files, memlock = found, subject.machine.memlock_bytes
    if files < LEAST_FILES:
        return warned(f"at most {files:.0f} open files: one goes to every connection and every weights file")
    rdma = subject.machine.infiniband and subject.tp > 1 and subject.env.get("NCCL_IB_DISABLE") != "1"
    if rdma and memlock is not None and memlock < math.inf:
        return warned(f"at most {size(memlock)} of locked memory, and NCCL may use {subject.machine.infiniband[0]}")
    return passed("open files and locked memory are not limited" if files == math.inf else f"{files:.0f} open files")


CHECKS = (
    Check(
        id="P001",
        title="the service manager runs the host",
        worst=Level.FAIL,
        remedy="set the host's service_manager: in the inventory to what runs it (systemd or supervisor)",
        why="A unit that nobody reads starts nothing.",
        look=manager_runs,
    ),
    Check(
        id="P002",
        title="the unit may start",
        worst=Level.FAIL,
        remedy="specctl exec --host {host} -- systemctl unmask specctl-{server}.service",
        why="A masked unit refuses to start; somebody meant that.",
        look=unit_unmasked,
    ),
    Check(
        id="P003",
        title="releases and unit can be written",
        worst=Level.FAIL,
        remedy="set sudo: true for the host, or remount the file system read-write (specctl exec --host {host} -- dmesg says why)",
        why="A disk that turned read-only, or a user without rights, ends a deploy half way.",
        look=folders_writable,
    ),
    Check(
        id="P004",
        title="the disk has room for releases",
        worst=Level.FAIL,
        remedy="specctl exec --host {host} -- df -h, then free some space",
        why="Fails below 64 MiB, warns below 1 GiB.",
        look=disk_room,
    ),
    Check(
        id="P005",
        title="the port is free, or the server's own",
        worst=Level.FAIL,
        remedy="end the process that holds it, or give server {server} another port in the inventory",
        why="The engine binds its port last: a clash would show only after the whole load.",
        look=port_free,
    ),
    Check(
        id="P006",
        title="nobody else acts on the server",
        worst=Level.WARN,
        remedy="wait, or specctl lock status --host {host}; --steal-lock takes the lease over",
        why="Only the lease itself refuses (exit code 5); this tells it before the question.",
        look=lease_free,
    ),
    Check(
        id="P007",
        title="the host is what its current release says",
        worst=Level.WARN,
        remedy="find out who changed it; this act writes it anew",
        why="A unit edited by hand, or a deploy that was cut off, makes what runs differ from what is on record.",
        look=drift,
    ),
    Check(
        id="P008",
        title="the clocks agree",
        worst=Level.WARN,
        remedy="specctl exec --host {host} -- timedatectl set-ntp true",
        why="Warns from 60 s on. However far the clock is off it only warns: leases, deadlines and the guard count by "
        "monotonic time; times in records and logs are wrong, and tokens and certificates may be refused.",
        look=clock,
    ),
    Check(
        id="P009",
        title="limits are wide enough",
        worst=Level.WARN,
        remedy="take LimitNOFILE and LimitMEMLOCK out of unit.extra; under supervisor raise them for the user that starts it",
        why="specctl's units lift both limits. They matter where the inventory lowers them, or supervisor hands on a user's.",
        look=limits,
        measures=frozenset(("W086",)),
    ),
)
