"""The live way: a running engine takes the new algo or knobs over HTTP between two steps, and loses nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from specctl.algos import ALGOS
from specctl.control.mode import Mode
from specctl.control.table import Table
from specctl.engines.types import EvidenceKind
from specctl.fleet.types import Server
from specctl.ops import engine_live
from specctl.rollout import proof as proofs
from specctl.rollout.proof import Claimed, Proof, Refuted
from specctl.rollout.smoke import SmokeResult
from specctl_agent.actuators import Broken, Cost, Errand, Moved, Outcome, Refused
from specctl_agent.actuators.witness import Counted, Witness

CONFIRM_S = 30.0
POLL_S = 2.0
# A line that was printed before the switch may reach the journal this much after the engine's answer.
LINE_DELAY_S = 0.25
VERIFY_STEPS = "spec_verify_ct"


@dataclass(slots=True)
class Live:
    """Changes one server's engine while it runs. `stopping` ends a confirm early: what was not seen by then is missing.

    `turn`: who asks the engine what it takes tells it what it has, which must not fall behind a change by somebody else.
    """

    server: Server
    engine: engine_live.Engine
    witness: Witness
    stopping: threading.Event
    confirm_s: float = CONFIRM_S
    poll_s: float = POLL_S
    turn: threading.Lock = field(default_factory=threading.Lock)
    _asked: dict[tuple[str, ...], str | None] = field(default_factory=dict)
    _before: Counted | None = None

    @property
    def cost(self) -> Cost:
        """Return its class."""
        return Cost.LIVE

    def forget(self) -> None:
        """Ask the engine anew next time: it was started again."""
        self._asked.clear()

    def can(self, old: Mode, new: Mode) -> str | None:
        """Look into the profile, and ask the engine whether it really takes such changes; what it would say again is kept."""
        try:
            wanted = engine_live.change(self.server.profile, old, new)
        except engine_live.CannotError as cannot:
            return str(cannot)
        names = (*sorted(wanted.tell), *(f"{name} = {value}" for name, value in wanted.needs.items()))
        if names in self._asked:
            return self._asked[names]
        with self.turn:
            said = self.engine.takes(wanted)
        if said.lasting:
            self._asked[names] = said.reason
        return said.reason

    def switch(self, old: Mode, new: Mode, errand: Errand) -> Outcome:
        """Tell the engine, and read back what it says."""
        try:
            changes = engine_live.change(self.server.profile, old, new).tell
        except engine_live.CannotError as cannot:
            return Refused(reason=str(cannot))
        errand.mark("telling", {"changes": dict(changes)})
        with self.turn:
            reply = self.engine.set(changes)
        self._begin()
        if engine_live.untouched(reply):
            return Refused(reason=engine_live.refusal(reply))
        return self._told(
            changes, engine_live.refusal(reply) if not engine_live.accepted(reply) else None, reply.took_s
        )

    def _begin(self) -> None:
        """Watch from now on, once what was printed before the switch is in the log."""
        self.stopping.wait(LINE_DELAY_S)
        self.witness.begin()
        self._before = self.witness.counted()

    def _told(self, changes: Mapping[str, object], trouble: str | None, took_s: float) -> Outcome:
        """Hold the engine's own word against what it was told; an answer that was lost may still have been a yes."""
        wrong = engine_live.differing(self.engine.info(), changes)
        if wrong is None:
            return Broken(reason=trouble or "the engine took the change and does not say what it runs")
        if wrong:
            return Broken(reason=f"{trouble or 'the engine said yes'}, and /server_info says: {'; '.join(wrong[:3])}")
        return Moved(took_s=took_s, evidence=tuple(f"{name} = {value}" for name, value in changes.items()))

    def follow(self, table: Table | None, base: Mode) -> Outcome:
        """Give the engine a table of modes, or tell it its one mode and so end a table; and read back what it follows."""
        profile = self.server.profile
        try:
            changes = engine_live.fields(profile, base) if table is None else engine_live.table_fields(profile, table)
        except engine_live.CannotError as cannot:
            return Refused(reason=str(cannot))
        with self.turn:
            reply = self.engine.set(changes)
        if engine_live.untouched(reply):
            return Refused(reason=engine_live.refusal(reply))
        trouble = None if engine_live.accepted(reply) else engine_live.refusal(reply)
        wrong = engine_live.unlike(profile, self.engine.info(), table)
        if wrong is None:
            return Broken(reason=trouble or "the engine took the table and does not say what it follows")
        if wrong:
            return Broken(reason=f"{trouble or 'the engine said yes'}, and /server_info: {'; '.join(wrong[:3])}")
        return Moved(took_s=reply.took_s, evidence=("it follows no table" if table is None else f"it follows {table}",))

    def confirm(self, new: Mode) -> Proof:
        """Watch the traffic for what only the new algo shows, up to a limit; a server that nobody asks anything can only claim."""
        deadline = time.monotonic() + self.confirm_s
        while True:
            proof = self._judge(new)
            left_s = deadline - time.monotonic()
            if not isinstance(proof, Claimed) or left_s <= 0 or self.stopping.wait(min(self.poll_s, left_s)):
                return proof

    def _judge(self, new: Mode) -> Proof:
        profile = self.server.profile.algos[new.algo]
        changes = engine_live.fields(self.server.profile, new)
        info = self.engine.info()
        wrong = engine_live.differing(info, changes)
        if wrong:
            return Refuted(reasons=wrong)
        if wrong is None:
            return Claimed(missing=("/server_info tells no internal state",))
        if self._before is None:
            return Claimed(missing=("the switch was made by somebody else: nobody watched from its beginning",))
        now = self.witness.counted()
        traffic = _traffic(self._before, now, drafts=ALGOS[new.algo].drafts)
        if traffic is None:
            return Claimed(missing=("the engine counts no verify steps and no tokens",))
        shown = profile.after_a_change()
        plain = any(
            each.absent and each.kind is EvidenceKind.META and each.pattern == VERIFY_STEPS for each in shown.live_proof
        )
        if plain and traffic.meta[VERIFY_STEPS] > 0:
            # Counters move when a request ends, and this one may have begun before the switch: watch on from here.
            self._before = now
            return Claimed(missing=("no request that began after the switch has ended",))
        lines = self.witness.lines()
        if lines is None and any(each.kind is EvidenceKind.LOG for each in shown.live_proof):
            return Claimed(missing=("the log cannot be read",))
        state = {**(info or {}), **engine_live.states_of(info)[0]}
        return proofs.judge(shown, dict(new.knobs), (), lines or (), traffic, state)

    def revert(self, old: Mode, errand: Errand) -> Outcome:
        """Tell the engine what it ran before, whole: nothing is known of what it runs now."""
        errand.note("telling back", {"mode": str(old)})
        changes = engine_live.fields(self.server.profile, old)
        with self.turn:
            reply = self.engine.set(changes)
        return self._told(changes, None if engine_live.accepted(reply) else engine_live.refusal(reply), reply.took_s)


def _traffic(before: Counted, now: Counted, *, drafts: bool) -> SmokeResult | None:
    """Read real traffic as a smoke would be read: what was verified and generated since; None where it is not counted."""
    if before.verify_steps is None or before.tokens is None or now.verify_steps is None or now.tokens is None:
        return None
    steps, tokens = int(now.verify_steps - before.verify_steps), int(now.tokens - before.tokens)
    if steps < 0 or tokens < 0:
        return None  # The engine was started again: its counters began anew.
    return SmokeResult(
        requests=1 if tokens else 0,
        completion_tokens=tokens,
        verify_steps=steps if drafts else None,
        meta={VERIFY_STEPS: float(steps)},
    )
