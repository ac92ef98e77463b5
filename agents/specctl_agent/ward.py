"""One server in the agent's care: its samplers, what is known of it, what is decided, and what is kept of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.control.policy_types import Now
from specctl.control.sample.gpu import NvmlSample
from specctl.fleet.types import AgentMode
from specctl.rollout import reading
from specctl_agent.eyes import endpoint, open_eyes
from specctl_agent.keeping import Keeping
from specctl_agent.log import WARNING, Log
from specctl_agent.orders import Orders, Standing
from specctl_agent.pictures import ServerPicture
from specctl_agent.places import Place
from specctl_agent.watch import Watch


@dataclass(slots=True)
class Ward:
    """A server; all but `picture` is for the loop alone."""

    watch: Watch
    keeping: Keeping
    orders: Orders
    log: Log
    changes: int = 0
    _standing: Standing = field(default_factory=Standing)

    @classmethod
    def of(cls, place: Place, keeping: Keeping, orders: Orders, log: Log) -> Ward:
        """Begin to care for a server, with what was known of it before."""
        loaded = keeping.profile(place.name).load()
        if loaded.said is not None:
            log(WARNING, "profile", server=place.name, reason=loaded.said)
        watch = Watch(place=place, eyes=open_eyes(place), profile=loaded.profile)
        watch.mode_s.update(_seconds(keeping.state(place.name).load().get("mode_s")))
        watch.eyes.start()
        return cls(watch=watch, keeping=keeping, orders=orders, log=log)

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.watch.place.name

    @property
    def conduct(self) -> AgentMode:
        """Return what the agent may do here: what somebody ordered, else what the inventory says."""
        return self._standing.conduct or self.watch.place.note.server.agent.mode

    def move(self, place: Place) -> None:
        """Take up what a deploy changed; samplers begin anew where the engine answers elsewhere, or by another profile."""
        before, self.watch.place = self.watch.place, place
        if before is place:
            return
        if endpoint(before) != endpoint(place) or before.note.server.profile != place.note.server.profile:
            self.watch.eyes.stop()
            self.watch.eyes = open_eyes(place)
            self.watch.eyes.start()

    def turn(self, now: Now, nvml: NvmlSample | None) -> None:
        """Take one turn."""
        del nvml
        self._standing = self.orders.of(self.name)
        for slot in self.watch.eyes.each():
            if slot.tend(now.mono_s):
                self.log(WARNING, "collector-hangs", collector=slot.name)
        self.watch.observe(now, self.watch.place.deployed)

    def picture(self, now: Now) -> ServerPicture:
        """Return what is to be shown of the server."""
        watch, pin = self.watch, self._standing.pin
        return ServerPicture(
            server=self.name,
            conduct=self.conduct,
            modes=watch.place.startable,
            mode=watch.mode,
            sample=watch.sample,
            sample_age_s=watch.look_age_s,
            info=watch.info,
            held=self._standing.held,
            pinned=None if pin is None else f"{pin.mode} ({pin.reason}, {pin.who})",
            pin_left_s=None if pin is None else pin.until.left_s(now),
            findings=watch.findings,
            mode_s=dict(watch.mode_s),
            history=tuple(watch.history),
        )

    def status(self) -> str:
        """Return a few words for `systemctl status`."""
        return f"{self.name} {self.watch.mode or 'unknown'} ({self.conduct.value})"

    def save(self) -> None:
        """Put on the disk what must survive a restart."""
        said = self.keeping.profile(self.name).save(self.watch.profile)
        if said is None:
            self.keeping.complaints.over(f"profile of {self.name}")
        else:
            self.keeping.complaints.trouble(f"profile of {self.name}", said)
        self.keeping.state(self.name).save({"mode_s": self.watch.mode_s})

    def close(self) -> None:
        """End the samplers and save."""
        self.watch.eyes.stop()
        self.save()


def _seconds(value: object) -> Mapping[str, float]:
    found = {name: reading.number(seconds) for name, seconds in reading.mapping(value).items()}
    return {name: seconds for name, seconds in found.items() if seconds is not None and seconds >= 0}
