"""A turn: one act under way on one server, under its lease; and the steps that acts are made of."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from specctl.errors import ConnectError
from specctl.fleet.types import Server
from specctl.ops.contact import Contact
from specctl.ops.gate import Gate, GateEnd, Question
from specctl.ops.reconnect import resume
from specctl.ops.reporter import Reporter
from specctl.rollout.facts import ServerFacts
from specctl.rollout.launch import algo_profile
from specctl.rollout.observation import UnitState
from specctl.rollout.record import Act
from specctl.rollout.release import Release

# How long the service manager may take beyond the engine's own stop limit before the session gives up.
STOP_MARGIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What should serve: a release by id, one of its algos, and the files where the release has yet to be written.

    `server` is the inventory's with the address at which this release answers.
    """

    release: str
    algo: str
    server: Server
    write: Release | None = None
    manifest: Mapping[str, object] = field(default_factory=dict)
    knobs: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"release {self.release}, {self.algo}"


@dataclass(slots=True, kw_only=True)
class Turn:
    """Where an act talks, under which lease, what it goes back to, how far it has come, and how long its parts took.

    `live` is the server with the address of what runs, or was started last. `armed`: the host's guard takes the act back unless
    it is confirmed. `changed`: the server is no longer as it was.
    """

    contact: Contact
    server: Server
    live: Server
    token: int
    reporter: Reporter
    interrupted: threading.Event
    facts: ServerFacts
    act: Act
    back: Aim | None = None
    armed: bool = False
    changed: bool = False
    durations_s: dict[str, float] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Return the host's name."""
        return self.contact.host.name

    def call(
        self,
        op: str,
        args: Mapping[str, object] | None = None,
        *,
        timeout_s: float = 60.0,
        on_event: Callable[[Mapping[str, object]], None] | None = None,
    ) -> Mapping[str, object]:
        """Run a changing op under the lease."""
        whole = {**(args or {}), "token": self.token}
        return self.contact.call(op, self.live, whole, timeout_s=timeout_s, on_event=on_event)

    def final(self, name: str, text: str) -> None:
        """Say something that stays on the screen, secrets blotted out."""
        self.reporter.final(self.host, name, self.contact.redactor.redact(text))

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time that a part takes to the act's durations."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.durations_s[name] = self.durations_s.get(name, 0.0) + time.monotonic() - begin


def write(turn: Turn, aim: Aim) -> None:
    """Write the aim's release to the host where it is new."""
    if aim.write is None:
        return
    turn.reporter.step(turn.host, "write", f"release {aim.release}")
    files = [{"name": f.name, "mode": f.mode, "content": f.content} for f in aim.write.files]
    with turn.timed("write"):
        turn.call("release.write", {"id": aim.release, "files": files, "manifest": dict(aim.manifest)})


def activate(turn: Turn, aim: Aim) -> None:
    """Make the aim what the service manager would start."""
    turn.changed = True
    with turn.timed("swap"):
        turn.call("release.activate", {"id": aim.release, "algo": aim.algo})


def stop(turn: Turn, *, for_good: bool = False) -> None:
    """Stop the server and wait until its processes, port and GPU memory are gone; `for_good`: whoever else holds them may stay."""
    turn.changed = True
    limit_s = turn.server.limits.drain_s + turn.server.limits.stop_s
    if turn.facts.unit.active == "active":
        turn.reporter.step(turn.host, "stop", "asked to stop")

    def progress(event: Mapping[str, object]) -> None:
        for name, word in (("waiting_for", "waiting for"), ("killing", "killing")):
            left = event.get(name)
            if isinstance(left, list) and left:
                turn.reporter.step(turn.host, "stop", f"{word} {', '.join(str(one) for one in left[:3])}")

    with turn.timed("stop"):
        args = {"timeout_s": limit_s, "for_good": for_good}
        answer = turn.call("unit.stop", args, timeout_s=limit_s + STOP_MARGIN_S, on_event=progress)
    if answer.get("killed") is True:
        turn.final("stop", f"the server did not stop within {limit_s:.0f} s and was killed")
    left = answer.get("left")
    if isinstance(left, list) and left:
        turn.final("stop", f"not the server's, and still there: {', '.join(str(one) for one in left)}")


def start(turn: Turn, aim: Aim) -> tuple[UnitState, float]:
    """Start the aim, which is activated; return the unit's state and the host's monotonic time at the start."""
    turn.live = aim.server
    turn.reporter.step(turn.host, "start", "ordered")
    answer = turn.call("unit.start", {}, timeout_s=90.0)
    began_s = answer.get("at_s")
    return UnitState.from_wire(answer.get("unit")), float(began_s) if isinstance(began_s, (int, float)) else 0.0


def bring_up(turn: Turn, aim: Aim, *, prove: bool) -> GateEnd:
    """Start what is activated and gate it; the result says what became of it."""
    session = turn.contact.session
    started, began_s = start(turn, aim)
    question = Question(
        algo=algo_profile(turn.server, aim.algo),
        knobs=aim.knobs,
        started=started,
        started_at_s=began_s,
        past_loads=turn.facts.past_loads(aim.algo),
        target_bytes=turn.facts.target_bytes,
        draft_bytes=turn.facts.draft_bytes,
        prove=prove,
        served=turn.act is Act.ROLLBACK,
    )
    show = partial(turn.reporter.gate, turn.host)
    with turn.timed("gate"):
        while True:
            # A new gate reads the start's whole log again, so it knows all that the one before it knew.
            gate = Gate(turn.contact, turn.live, question, show=show, interrupted=turn.interrupted)
            try:
                return gate.run()
            except ConnectError as lost:
                resume(turn, session, lost)
                session = turn.contact.session
