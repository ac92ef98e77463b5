"""The two ways from mode to mode: told to the running engine, or started anew by a deploy's act; each brings back what was."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from specctl.control.mode import Mode
from specctl.errors import RemoteCommandError
from specctl.fleet.types import Server
from specctl.ops import ab_switch
from specctl.ops.ab_switch import Bench
from specctl.ops.deploy import RELEASES_KEPT
from specctl.ops.engine_live import Engine, accepted, differing, fields, refusal
from specctl.ops.turn import Aim


class Way(Protocol):
    """How a server gets into a mode, and back at the end. Both raise the SpecctlError of what went wrong."""

    def to(self, mode: Mode) -> Server:
        """Put the server into a mode, unless it is there; returns where it answers."""

    def back(self) -> None:
        """Bring back what ran before."""


@dataclass(slots=True)
class LiveWay:
    """Tells the running engine. `was`: what it ran before."""

    engine: Engine
    was: Mode
    _now: Mode | None = None

    def to(self, mode: Mode) -> Server:
        """Tell the engine, and read back what it says."""
        if mode != self._now:
            self._now = None
            self._tell(mode)
            self._now = mode
        return self.engine.server

    def back(self) -> None:
        """Tell it what it ran before, whole: what it runs may not be known."""
        self._tell(self.was)
        self._now = self.was

    def _tell(self, mode: Mode) -> None:
        changes = fields(self.engine.server.profile, mode)
        reply = self.engine.set(changes)
        wrong = differing(self.engine.info(), changes)
        if accepted(reply) and wrong == ():
            return
        why = refusal(reply) if not accepted(reply) else "; ".join(wrong or ("/server_info does not tell",))
        raise RemoteCommandError(
            f"the engine did not go to {mode}: {why}", hint="--restart starts the engine anew for each mode"
        )


@dataclass(slots=True)
class RestartWay:
    """Starts the server anew, under the lease of the calibration. `releases`: mode → the release that has it."""

    bench: Bench
    inventory: Server
    before: Aim
    releases: dict[str, str] = field(default_factory=dict)
    loads_s: list[float] = field(default_factory=list)
    _now: Mode | None = None
    _server: Server | None = None

    def to(self, mode: Mode) -> Server:
        """Start the server in the mode and gate it."""
        if mode != self._now or self._server is None:
            self._now = None
            began_s = time.monotonic()
            wished = replace(
                self.inventory, algo=mode.algo, knobs={**self.inventory.knobs, mode.algo: dict(mode.knobs)}
            )
            item = ab_switch.ready(self.bench, wished, self.releases.get(str(mode)))
            ab_switch.put(self.bench, item, self.before)
            self.releases[str(mode)] = item.plan.release
            self.loads_s.append(time.monotonic() - began_s)
            self._now, self._server = mode, item.server
        return self._server

    def back(self) -> None:
        """Start what ran before, unless it runs, and remove releases that nobody needs."""
        ab_switch.restore(self.bench, self.before)
        ab_switch.prune(self.bench, RELEASES_KEPT)


def known(way: Way) -> Mapping[str, str]:
    """Return the releases that a way has made, so that a calibration that goes on starts them again."""
    return dict(way.releases) if isinstance(way, RestartWay) else {}
