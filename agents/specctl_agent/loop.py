"""The agent's loop: once a second read what the samplers have, decide for each server, act, and publish the picture.

It waits for nobody: samplers look in threads of their own, switches run in theirs, and questions are answered from the picture.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from specctl.control.policy_types import Now
from specctl.control.sample.gpu import NvmlSample
from specctl.control.sample.host import HostSample
from specctl.rollout import unit
from specctl_agent import memory
from specctl_agent.clock import Clock
from specctl_agent.config import Config
from specctl_agent.decisions import DecisionJournal
from specctl_agent.doors import Doors
from specctl_agent.gpu_watch import GpuWatch
from specctl_agent.keeping import Keeping
from specctl_agent.log import INFO, WARNING, Log
from specctl_agent.notify import Notify
from specctl_agent.orders import Orders
from specctl_agent.pictures import Picture
from specctl_agent.places import Place, Places
from specctl_agent.samplers.runner import Health, Slot, next_beat
from specctl_agent.ward import Ward

PERIOD_S = 1.0
PLACES_EACH_S = 2.0
SAVE_EACH_S = 60.0
STOP_S = 5.0


@dataclass(slots=True)
class HostEyes:
    """The samplers of the host itself: its GPUs, and the machine with the units of the servers there are."""

    nvml: Slot[NvmlSample]
    make_host: Callable[[tuple[str, ...]], Slot[HostSample]]
    host: Slot[HostSample] = field(init=False)
    _units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.host = self.make_host(())

    def start(self) -> None:
        """Start looking."""
        self.nvml.start()
        self.host.start()

    def watch(self, units: tuple[str, ...]) -> None:
        """Watch these units from now on."""
        if units != self._units:
            self._units = units
            self.host.stop()
            self.host = self.make_host(units)
            self.host.start()

    def each(self) -> tuple[Slot[object], ...]:
        """Return every slot."""
        return self.nvml, self.host

    def stop(self, timeout_s: float) -> tuple[str, ...]:
        """End looking; returns the names of those that hang in a look."""
        for slot in self.each():
            slot.stop()
        return tuple(slot.name for slot in self.each() if not slot.join(timeout_s))


@dataclass(slots=True)
class Loop:
    """The loop and all that it keeps; `tick` is one turn of it."""

    config: Config
    clock: Clock
    log: Log
    keeping: Keeping
    orders: Orders
    journal: DecisionJournal
    host_eyes: HostEyes
    places: Places
    make_ward: Callable[[Place], Ward]
    version: str
    doors: Doors | None = None
    picture: Picture = field(init=False)
    wards: dict[str, Ward] = field(default_factory=dict)
    _gpus: GpuWatch = field(default_factory=GpuWatch)
    _due_s: dict[str, float] = field(default_factory=dict)
    _ticks: int = 0
    _late: int = 0
    _took_s: float = 0.0
    _began_wall_s: float = 0.0

    def __post_init__(self) -> None:
        self._began_wall_s = self.clock.now().wall_s
        self.picture = self._pictured(self.clock.now())

    def run(self, stopping: threading.Event, notify: Notify) -> None:
        """Turn until somebody says stop; each turn feeds the watchdog."""
        self.host_eyes.start()
        memory.settle()
        beat_s = time.monotonic()
        self.tick()
        notify.ready(self.status())
        while True:
            beat_s = next_beat(beat_s, PERIOD_S, time.monotonic())
            if stopping.wait(max(0.0, beat_s - time.monotonic())):
                return
            self.tick()
            notify.alive(self.status())

    def tick(self) -> None:
        """Take one turn."""
        began_s = time.monotonic()
        now = self.clock.now()
        if self._due("places", now, PLACES_EACH_S):
            self._look_for_servers()
        if self.doors is not None:
            self.doors.tend()
        for slot in self.host_eyes.each():
            if slot.tend(now.mono_s):
                self.log(WARNING, "collector-hangs", collector=slot.name)
        self._gpus.observe(self.host_eyes.nvml.read(now.mono_s).value, now.mono_s)
        for name, ward in self.wards.items():
            ward.turn(now, self._gpus, self._invocation(name, now))
        if self._due("save", now, SAVE_EACH_S):
            self.save()
        if self._due("tidy", now, memory.TIDY_EACH_S):
            memory.tidy()
        self._ticks += 1
        self._took_s = time.monotonic() - began_s
        self._late += self._took_s > PERIOD_S
        self.picture = self._pictured(now)

    def status(self) -> str:
        """Return the line that `systemctl status` shows."""
        servers = "; ".join(ward.status() for ward in self.wards.values()) or "no server deployed"
        troubles = len(self.keeping.complaints.open)
        return f"{servers}{f'; {troubles} troubles, see the log' if troubles else ''}"

    def save(self) -> None:
        """Put profiles and counts on the disk."""
        for ward in self.wards.values():
            ward.save()

    def close(self) -> None:
        """End samplers, leave switches under way to their own journal, save."""
        for ward in self.wards.values():
            ward.close()
        self.save()
        stuck = self.host_eyes.stop(STOP_S)
        if stuck:
            self.log(WARNING, "collectors-stuck", collectors=",".join(stuck))

    def _due(self, what: str, now: Now, period_s: float) -> bool:
        if now.mono_s < self._due_s.get(what, now.mono_s):
            return False
        self._due_s[what] = now.mono_s + period_s
        return True

    def _look_for_servers(self) -> None:
        """Begin with servers that were deployed, end with those that are gone, and take up what changed of the others."""
        try:
            found, wrong = self.places.look()
        except OSError as error:
            self.keeping.complaints.trouble("servers", f"{self.config.servers} cannot be read: {error.strerror}")
            return
        self.keeping.complaints.over("servers")
        for name, reason in wrong.items():
            self.keeping.complaints.trouble(f"server {name}", reason)
        for name in found:
            self.keeping.complaints.over(f"server {name}")
        for name in [name for name in self.wards if name not in found]:
            self.wards.pop(name).close()
            self.log(INFO, "server-gone", server=name)
        for name, place in found.items():
            if name in self.wards:
                self.wards[name].move(place)
            else:
                self.wards[name] = self.make_ward(place)
                self.log(INFO, "server-found", server=name, release=place.release, algo=place.algo)
        self.host_eyes.watch(tuple(unit.unit_name(name) for name in sorted(found)))

    def _invocation(self, server: str, now: Now) -> str | None:
        """Return which start of a server's unit runs; None where nobody knows."""
        host = self.host_eyes.host.read(now.mono_s).value
        found = [
            each.invocation for each in (host.units if host is not None else ()) if each.unit == unit.unit_name(server)
        ]
        return found[0] if found else None

    def _pictured(self, now: Now) -> Picture:
        eyes, at_s = self.host_eyes, now.mono_s
        nvml, host = eyes.nvml.read(at_s), eyes.host.read(at_s)
        slots = [
            *eyes.each(),
            *(slot for ward in self.wards.values() for slot in ward.slots()),
        ]
        return Picture(
            at_s=at_s,
            version=self.version,
            ticks=self._ticks,
            late_ticks=self._late,
            tick_s=self._took_s,
            started_wall_s=self._began_wall_s,
            nvml=nvml.value,
            nvml_age_s=nvml.age_s,
            host=host.value,
            host_age_s=host.age_s,
            collectors={slot.name: _health(slot, at_s) for slot in slots},
            servers=tuple(ward.picture(now) for ward in self.wards.values()),
            troubles=self.keeping.complaints.open,
            turned_away=0 if self.doors is None else self.doors.turned_away,
            decisions=sum(ward.changes for ward in self.wards.values()),
        )


def _health(slot: Slot[object], at_s: float) -> tuple[Health, float | None]:
    reading = slot.read(at_s)
    return reading.health, reading.age_s
