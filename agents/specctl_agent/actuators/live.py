"""The live way: a running engine takes the new algo or knobs over HTTP between two steps, and loses nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from specctl.algos import ALGOS
from specctl.control.mode import Mode
from specctl.engines.types import AlgoProfile, EvidenceKind
from specctl.fleet.types import Server
from specctl.rollout import proof as proofs
from specctl.rollout.proof import Claimed, Proof, Refuted
from specctl.rollout.smoke import NEEDED_STEPS, SmokeResult
from specctl_agent.actuators import Broken, Cost, Errand, Moved, Outcome, Refused, ask

CONFIRM_S = 30.0
POLL_S = 0.5
# A line that was printed before the switch may reach the journal this much after the engine's answer.
LINE_DELAY_S = 0.25
VERIFY_STEPS = "spec_verify_ct"


class Witness(Protocol):
    """What is seen of an engine from outside since a moment; None where it cannot be seen. The samplers are one."""

    def lines(self, since_wall_s: float) -> Sequence[str] | None:
        """Return the log lines since a Unix time."""

    def verify_steps(self) -> float | None:
        """Return the counter of verify steps of finished requests; it only grows."""

    def generated_tokens(self) -> float | None:
        """Return the counter of tokens generated; it only grows."""


@dataclass(frozen=True, slots=True)
class Before:
    """What the counters said when a switch was made, and when that was."""

    wall_s: float
    steps: float | None
    tokens: float | None


@dataclass(slots=True)
class Live:
    """Changes one server's engine while it runs. `stopping` ends a confirm early: what was not seen by then is missing."""

    server: Server
    engine: ask.Engine
    witness: Witness
    stopping: threading.Event
    confirm_s: float = CONFIRM_S
    wall: Callable[[], float] = time.time
    _asked: dict[tuple[str, ...], str | None] = field(default_factory=dict)
    _before: Before | None = None

    @property
    def cost(self) -> Cost:
        """Return its class."""
        return Cost.LIVE

    def forget(self) -> None:
        """Ask the engine anew next time: it was started again."""
        self._asked.clear()

    def can(self, old: Mode, new: Mode) -> str | None:
        """Look into the profile, and ask the engine once whether it really takes such changes."""
        try:
            changes = ask.live_fields(self.server.profile, old, new)
        except ask.CannotError as cannot:
            return str(cannot)
        names = tuple(sorted(changes))
        if names not in self._asked:
            self._asked[names] = self.engine.takes(changes)
        return self._asked[names]

    def switch(self, old: Mode, new: Mode, errand: Errand) -> Outcome:
        """Tell the engine, and read back what it says."""
        try:
            changes = ask.live_fields(self.server.profile, old, new)
        except ask.CannotError as cannot:
            return Refused(reason=str(cannot))
        errand.mark("telling", {"changes": dict(changes)})
        reply = self.engine.set(changes)
        self._before = self._seen(LINE_DELAY_S)
        if ask.untouched(reply):
            self._asked[tuple(sorted(changes))] = ask.refusal(reply)
            return Refused(reason=ask.refusal(reply))
        return self._told(changes, ask.refusal(reply) if not ask.accepted(reply) else None, reply.took_s)

    def _seen(self, delay_s: float = 0.0) -> Before:
        return Before(self.wall() + delay_s, self.witness.verify_steps(), self.witness.generated_tokens())

    def _told(self, changes: Mapping[str, object], trouble: str | None, took_s: float) -> Outcome:
        """Hold the engine's own word against what it was told; an answer that was lost may still have been a yes."""
        wrong = ask.differing(self.engine.info(), changes)
        if wrong is None:
            return Broken(reason=trouble or "the engine took the change and does not say what it runs")
        if wrong:
            return Broken(reason=f"{trouble or 'the engine said yes'}, and /server_info says: {'; '.join(wrong[:3])}")
        return Moved(took_s=took_s, evidence=tuple(f"{name} = {value}" for name, value in changes.items()))

    def confirm(self, new: Mode) -> Proof:
        """Watch the traffic for what only the new algo shows, up to a limit; a server that nobody asks anything can only claim."""
        deadline = time.monotonic() + self.confirm_s
        while True:
            proof = self._judge(new)
            left_s = deadline - time.monotonic()
            if not isinstance(proof, Claimed) or left_s <= 0 or self.stopping.wait(min(POLL_S, left_s)):
                return proof

    def _judge(self, new: Mode) -> Proof:
        profile = self.server.profile.algos[new.algo]
        changes = ask.fields(self.server.profile, new)
        info = self.engine.info()
        wrong = ask.differing(info, changes)
        if wrong:
            return Refuted(reasons=wrong)
        if wrong is None:
            return Claimed(missing=("/server_info tells no internal state",))
        if self._before is None:
            return Claimed(missing=("the switch was made by somebody else: nobody watched from its beginning",))
        traffic = self._traffic(self._before, new)
        if traffic is None:
            return Claimed(missing=("the engine counts no verify steps and no tokens",))
        if not ALGOS[new.algo].drafts and traffic.meta[VERIFY_STEPS] > 0:
            # Counters move when a request ends, and this one may have begun before the switch: watch on from here.
            self._before = replace(
                self._before, steps=self.witness.verify_steps(), tokens=self.witness.generated_tokens()
            )
            return Claimed(missing=("no request that began after the switch has ended",))
        lines = self.witness.lines(self._before.wall_s)
        shown = _of_now(profile, lines_seen=lines is not None)
        return proofs.judge(shown, dict(new.knobs), (), lines or (), traffic, info)

    def _traffic(self, before: Before, new: Mode) -> SmokeResult | None:
        """Read real traffic as a smoke would be read: what was verified and generated since the switch."""
        steps, tokens = self.witness.verify_steps(), self.witness.generated_tokens()
        if None in (steps, tokens, before.steps, before.tokens):
            return None
        made = int((steps or 0.0) - (before.steps or 0.0))
        grown = int((tokens or 0.0) - (before.tokens or 0.0))
        if made < 0 or grown < 0:
            return None  # The engine was started again: its counters began anew.
        drafts = ALGOS[new.algo].drafts
        return SmokeResult(
            requests=1 if grown else 0,
            completion_tokens=grown,
            verify_steps=made if drafts else None,
            meta={VERIFY_STEPS: float(made)},
            needed_steps=NEEDED_STEPS,
        )

    def revert(self, old: Mode, errand: Errand) -> Outcome:
        """Tell the engine what it ran before, whole: nothing is known of what it runs now."""
        errand.mark("telling back", {"mode": str(old)})
        changes = ask.fields(self.server.profile, old)
        reply = self.engine.set(changes)
        return self._told(changes, None if ask.accepted(reply) else ask.refusal(reply), reply.took_s)


def _of_now(profile: AlgoProfile, *, lines_seen: bool) -> AlgoProfile:
    """Return the profile without the evidence of a start, which says nothing of a live change, nor of lines that nobody saw."""
    kept = tuple(
        each
        for each in profile.live_proof
        if each.during == "smoke" and (lines_seen or each.kind is not EvidenceKind.LOG or not each.absent)
    )
    return replace(profile, live_proof=kept)
