"""Gate a start: feed the watcher's looks to the pure gate, run the smoke once it is ready, judge the proof.

Used for a start that specctl ordered and, by `specctl health`, for a server that is running already.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from specctl.algos import ALGOS
from specctl.engines.types import AlgoProfile
from specctl.errors import ConnectError, SpecctlError
from specctl.fleet.types import Server
from specctl.ops import engine_http
from specctl.ops.contact import Contact
from specctl.ops.engine_http import EngineClient
from specctl.rollout import gate as folds
from specctl.rollout import launch as launches
from specctl.rollout import proof as proofs
from specctl.rollout import smoke as smokes
from specctl.rollout.gate_types import Dead, Failed, GateSpec, GateState, PastLoad, Ready
from specctl.rollout.observation import Observation, UnitState
from specctl.rollout.proof import Claimed, Proof, Proven, Refuted
from specctl.rollout.smoke import SmokeResult
from specctl.rollout.story import headline

# Log lines of the smoke may reach the journal a little after its last answer.
EVIDENCE_WAIT_S = 5.0
# A request that failed may be the first sign of a death, which is then the cause to name.
DEATH_WAIT_S = 2.0
LAST_WORDS_S = 1.5
SILENCE_S = 15.0
KEY_REFUSED = frozenset(f"status {status}" for status in engine_http.KEY_REFUSED)
# More lines than this of one start are not looked at: a real load prints a few hundred.
LINES_KEPT = 20_000
LINE_CHARACTERS = 4096
INTERRUPTED = "interrupted by the operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEnd:
    """How a gate ended: the load's state, and the smoke and proof where it came that far."""

    state: GateState
    smoke: SmokeResult | None = None
    proof: Proof | None = None
    interrupted: bool = False
    proof_wanted: bool = True

    @property
    def healthy(self) -> bool:
        """Claim that it is ready and generates and, where a proof was wanted, that the algo is proven live."""
        if self.interrupted or not isinstance(self.state.verdict, Ready):
            return False
        return isinstance(self.proof, Proven) or (not self.proof_wanted and isinstance(self.proof, Claimed))

    @property
    def cause(self) -> str:
        """Say in one clause why it is not healthy."""
        if self.interrupted:
            return INTERRUPTED
        return verdict_text(self.state) if not isinstance(self.state.verdict, Ready) else proof_text(self.proof)


def verdict_text(state: GateState) -> str:
    """Say a verdict that is not Ready in one clause, for records and errors."""
    match state.verdict:
        case Failed(fatal=fatal, title=title):
            return f"{fatal} {title}"
        case _:
            return " ".join(headline(state).split())


def proof_text(proof: Proof | None) -> str:
    """Say a proof in one clause."""
    match proof:
        case Proven(evidence=evidence):
            return " · ".join(evidence)
        case Claimed(missing=missing):
            return f"claimed, not proven: {'; '.join(missing)}"
        case Refuted(reasons=reasons):
            return f"not what was asked for: {'; '.join(reasons)}"
        case _:
            return "no proof was made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be gated: which algo with which knobs, since when, and how much of a proof is wanted.

    `served`: the release served before, so that it may have another API key than the one known here.
    `opening`: the first log lines of a server that runs already, whose whole log may be long; None reads all since the start.
    """

    algo: AlgoProfile
    knobs: Mapping[str, int]
    started: UnitState
    started_at_s: float
    past_loads: tuple[PastLoad, ...] = ()
    target_bytes: int | None = None
    draft_bytes: int | None = None
    prove: bool = True
    served: bool = False
    opening: tuple[str, ...] | None = None


@dataclass(slots=True)
class _Watch:
    """The watcher's looks as they come, from a thread of its own; an error of the connection comes as the last item."""

    contact: Contact
    server: Server
    started: UnitState
    since: str | None = None
    looks: queue.Queue[Observation | SpecctlError] = field(default_factory=queue.Queue)
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Watch until cancelled."""
        args = {"invocation": self.started.invocation, "period_s": 0.2, "since": self.since}
        try:
            self.contact.call(
                "watch",
                self.server,
                args,
                on_event=lambda event: self.looks.put(Observation.from_wire(event)),
                timeout_s=None,
                cancel=self.done,
            )
        except SpecctlError as error:
            self.looks.put(error)

    @contextmanager
    def going(self) -> Iterator[None]:
        """Run the watcher while the block lasts."""
        thread = threading.Thread(target=self.run, name="specctl-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.done.set()
            thread.join(timeout=5.0)

    def next(self, timeout_s: float) -> Observation | None:
        """Return the next look, None when none came in time; raises the error that ended the watch."""
        with suppress(queue.Empty):
            found = self.looks.get(timeout=timeout_s)
            if isinstance(found, SpecctlError):
                raise found
            return found
        return None


class Gate:
    """One gate under way."""

    def __init__(
        self,
        contact: Contact,
        server: Server,
        question: Question,
        *,
        show: Callable[[GateState], None],
        interrupted: threading.Event,
    ) -> None:
        self.contact = contact
        self.server = server
        self.question = question
        self.show = show
        self.interrupted = interrupted
        self.spec = self._spec()
        self.state = folds.begin(self.spec)
        self.opening = list(self._clean(question.opening or ()))
        self.latest: deque[str] = deque(maxlen=LINES_KEPT)
        since = "now" if question.opening is not None else None
        self.watch = _Watch(contact, server, question.started, since=since)

    def _spec(self) -> GateSpec:
        asked, limits = self.question, self.server.limits
        return GateSpec(
            grammar=launches.engines()[self.server.profile.engine].log,
            started_at_s=asked.started_at_s,
            load_s=limits.load_s,
            stall_s=limits.stall_s,
            invocation=asked.started.invocation,
            restarts=asked.started.restarts,
            port=self.server.port,
            has_draft=asked.algo.draft is not None,
            target_bytes=asked.target_bytes,
            draft_bytes=asked.draft_bytes,
            past_loads=asked.past_loads,
        )

    def run(self) -> GateEnd:
        """Watch to a verdict; once ready, smoke and prove."""
        with self.watch.going():
            self._load()
            self._hear_last_words()
            ready = isinstance(self.state.verdict, Ready)
            if not ready or self.interrupted.is_set():
                return self._end()
            return self._smoke()

    def _end(self, smoke: SmokeResult | None = None, proof: Proof | None = None) -> GateEnd:
        return GateEnd(
            state=self.state,
            smoke=smoke,
            proof=proof,
            interrupted=self.interrupted.is_set(),
            proof_wanted=self.question.prove and not self._other_key(smoke),
        )

    def _other_key(self, smoke: SmokeResult | None) -> bool:
        """Claim that a release which is gone back to only refuses our key: it may have another one, and that it says so is life."""
        allowed = self.question.served or not self.question.prove
        return allowed and smoke is not None and bool(smoke.failures) and set(smoke.failures) <= KEY_REFUSED

    def _take(self, look: Observation) -> None:
        """Fold one look in, and keep its lines for the proof."""
        look = replace(look, lines=self._clean(look.lines))
        self.opening.extend(look.lines[: max(0, LINES_KEPT - len(self.opening))])
        self.state = folds.advance(self.spec, self.state, look)
        self.show(self.state)

    def _clean(self, lines: tuple[str, ...]) -> tuple[str, ...]:
        """Return the lines that are kept and shown: bounded, known secrets blotted out (the engine prints its keys in clear)."""
        return tuple(self.contact.redactor.redact(line[:LINE_CHARACTERS]) for line in lines)

    def _load(self) -> None:
        """Look until there is a verdict; a host that says nothing for long is lost."""
        heard = time.monotonic()
        while not self.state.is_final and not self.interrupted.is_set():
            look = self.watch.next(0.2)
            if look is not None:
                heard = time.monotonic()
                self._take(look)
            elif time.monotonic() - heard > SILENCE_S:
                self.state = folds.conclude(self.spec, self.state)
                if not self.state.is_final:
                    raise ConnectError(
                        f"the host said nothing for {SILENCE_S:.0f} s during the load",
                        hint=f"specctl status --host {self.contact.host.name}",
                        host=self.contact.host.name,
                    )

    def _hear_last_words(self) -> None:
        """Wait a little for the log of a process that died without a name: a busy host's journal brings it late."""
        deadline = time.monotonic() + LAST_WORDS_S
        while isinstance(self.state.verdict, Dead) and time.monotonic() < deadline:
            look = self.watch.next(0.2)
            if look is None or look.unit.invocation not in (None, self.state.invocation):
                continue
            lines = self._clean(look.lines)
            self.opening.extend(lines[: max(0, LINES_KEPT - len(self.opening))])
            self.state = folds.last_words(self.spec, self.state, lines)
            if not isinstance(self.state.verdict, Dead):
                self.show(self.state)

    def _smoke(self) -> GateEnd:
        """Generate for real while the watcher goes on, then judge, waiting a little for log lines that are on their way."""
        client = EngineClient.of(self.contact, self.server)
        changed: str | None = None
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="specctl-smoke")
        try:
            work = pool.submit(self._generate, client)
            while not work.done():
                changed = changed or self._listen(0.1)
                if self.interrupted.is_set():
                    return self._end()
            smoke = work.result()
        finally:
            pool.shutdown(wait=False)
        info = client.get("/server_info", timeout_s=10.0).fields or None
        deadline = time.monotonic() + EVIDENCE_WAIT_S
        doubt = time.monotonic() + (DEATH_WAIT_S if smoke.failures else 0.0)
        while True:
            changed = changed or self._listen(0.1)
            proof = self._judge(smoke, info)
            if changed:
                proof = Refuted(reasons=(changed,))
            elif time.monotonic() < doubt:
                continue
            if not isinstance(proof, Claimed) or time.monotonic() > deadline:
                return self._end(smoke, proof)

    def _listen(self, timeout_s: float) -> str | None:
        """Take in one look after the load was over; say so when the server has died meanwhile."""
        look = self.watch.next(timeout_s)
        if look is None:
            return None
        self.latest.extend(self._clean(look.lines))
        pinned = self.question.started
        unit = look.unit
        waits = (unit.sub or "").startswith("auto-restart")
        if waits or unit.active not in (None, "active", "activating", "reloading"):
            return f"the server died during the smoke (exit status {unit.exit_status})"
        if pinned.invocation and unit.invocation and unit.invocation != pinned.invocation:
            return "the server was restarted during the smoke"
        return None

    def _generate(self, client: EngineClient) -> SmokeResult:
        """Send the smoke's requests one after the other until there are enough verify steps."""
        algo = ALGOS[self.question.algo.algo]
        result = SmokeResult()
        deadline = time.monotonic() + self.server.limits.smoke_s
        for request in smokes.plan(algo.max_drafts(self.question.knobs)):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self.interrupted.is_set():
                return replace(result, failures=(*result.failures, "the smoke's time is over"))
            reply = client.post("/generate", request.body(), timeout_s=left_s)
            result = smokes.fold(result, request, status=reply.status, body=reply.body, took_s=reply.took_s)
            if result.enough or result.failures:
                break
        return result

    def _judge(self, smoke: SmokeResult, info: Mapping[str, object] | None) -> Proof:
        if self._other_key(smoke):
            return Claimed(missing=("this release has another API key, so nothing was generated",))
        return proofs.judge(
            self.question.algo,
            self.question.knobs,
            [*self.opening, *self.latest],
            tuple(self.latest),
            smoke,
            info,
            tree_line=self.server.profile.tree_line,
        )
