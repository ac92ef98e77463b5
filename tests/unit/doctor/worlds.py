"""Servers with a known truth: steps are drawn one by one, and every figure that a real server tells is counted from them.

A world is healthy by construction, whatever its algo, knobs, batch and conventions; tests plant one contradiction and ask for its
id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.audit_types import straight
from specctl.control.mode import Mode, mode
from specctl.control.sample.engine import DecodeSums, EngineCounters, EngineInfo, EngineLoad, Look, Page
from specctl.control.sample.engine_lines import reader
from specctl.doctor import lines
from specctl.doctor.evidence import Evidence, Observation, Served
from specctl.engines._sglang_log import GRAMMAR
from specctl.measure.chance import seeded

INTERVAL = 40
LOOKS = 16
READER = reader(GRAMMAR, None)
Step = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a world is made of: knobs, conventions, chances, and how its engine is bent.

    `drafted`: chance that one more draft is right. `lengths`: completion tokens of each request. `kept`: drafts of a step that are
    committed, of all that are accepted (None: all). `passes`: every mode decodes by verify passes, and only branches print a tree's
    line, as with specctl's plugin; `widest`: drafts that such an engine's accept rate divides by, whatever the mode (None: the
    mode's own); `late`: how many steps after decode lines the tree's lines come.
    """

    seed: int = 0
    mode: Mode = field(default_factory=lambda: mode("ddtree", {"block_size": 8, "tree_budget": 16, "topk_cap": 4}))
    batch: int = 1
    counts_root: bool = True
    counts_bonus: bool = True
    drafted: float = 0.6
    lengths: tuple[int, int] = (120, 260)
    requests: int = 30
    step_s: float = 0.02
    kept: int | None = None
    passes: bool = False
    widest: int | None = None
    late: int = 0

    @property
    def verifies(self) -> bool:
        """Whether its steps are verify passes."""
        return self.passes or ALGOS[self.mode.algo].drafts

    @property
    def shape(self) -> Shape:
        """What a step verifies."""
        return ALGOS[self.mode.algo].shape

    @property
    def most(self) -> int:
        """The most drafts that a step accepts."""
        found = ALGOS[self.mode.algo].max_drafts(dict(self.mode.knobs))
        assert found is not None
        return found


@dataclass(slots=True)
class _Request:
    left: int
    tokens: int
    drafted: float
    steps: int = 0


@dataclass(slots=True, kw_only=True)
class World:
    """A server that has served; its log, its sums and counters at some moments, its requests."""

    truth: Truth
    log: list[str] = field(default_factory=list)
    served: list[Served] = field(default_factory=list)
    moments: list[tuple[DecodeSums, EngineCounters]] = field(default_factory=list)
    steps: int = 0
    verifies: int = 0
    tokens: int = 0
    ended_tokens: int = 0
    ended_calls: int = 0
    ended: int = 0
    last_length: float | None = None
    window: dict[str, float] = field(default_factory=dict)
    tree_window: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, truth: Truth) -> World:
        """Let a server of that truth serve all its requests, `batch` at a time."""
        world = cls(truth=truth)
        chance = seeded(truth.seed)
        waiting = [chance.randint(*truth.lengths) for _ in range(truth.requests)]
        running: list[_Request] = []
        moments = [len(waiting) * part // LOOKS for part in range(1, LOOKS)]
        while waiting or running:
            while waiting and len(running) < truth.batch:
                tokens = waiting.pop()
                # Prompts differ: what is easy to draft in one is hard in another.
                drafted = min(truth.drafted * chance.uniform(0.7, 1.3), 0.97)
                running.append(_Request(left=tokens - 1, tokens=tokens, drafted=drafted))
            world._step(running, chance)
            running = [one for one in running if not world._ends(one)]
            if len(world.moments) < len(moments) and world.ended >= moments[len(world.moments)]:
                world.moments.append((world.sums(), world.counters()))
        world.moments.append((world.sums(), world.counters()))
        return world

    def _step(self, running: list[_Request], chance: Random) -> None:
        self.steps += 1
        for one in running:
            if one.left <= 0:
                continue
            drafts = self._accepted(chance, one.drafted)
            kept = drafts if self.truth.kept is None else min(drafts, self.truth.kept)
            committed = min(kept + 1, one.left)
            one.left -= committed
            one.steps += 1
            # A path of so many drafts needs as many nodes below the root.
            self._add(drafts=drafts, committed=committed, nodes=max(self._nodes(chance), drafts + 1))
        if self.steps % INTERVAL == 0:
            self._print(len(running))
        if self.steps > self.truth.late and (self.steps - self.truth.late) % INTERVAL == 0:
            self._print_tree(len(running))

    def _accepted(self, chance: Random, drafted: float) -> int:
        drafts = 0
        while drafts < self.truth.most and chance.random() < drafted:
            drafts += 1
        return drafts

    def _nodes(self, chance: Random) -> int:
        budget = dict(self.truth.mode.knobs).get("tree_budget", 0)
        return chance.randint(max(1, budget - 2), budget) + 1 if budget else self.truth.most + 1

    def _add(self, **gained: int) -> None:
        self.verifies += 1
        self.tokens += gained["committed"]
        for window in (self.window, self.tree_window):
            for name, value in {**gained, "verifies": 1}.items():
                window[name] = window.get(name, 0) + value

    def _ends(self, one: _Request) -> bool:
        if one.left > 0:
            return False
        self.ended += 1
        self.ended_tokens += one.tokens
        calls = one.steps if self.truth.verifies else None
        self.ended_calls += calls or 0
        decode_s = one.steps * self.truth.step_s
        self.served.append(Served(tokens=one.tokens, verify_calls=calls, decode_s=decode_s, finish="length"))
        return True

    def _print(self, batch: int) -> None:
        seen, self.window = self.window, {}
        verifies = seen.get("verifies", 0)
        if not verifies:
            return
        drafts, nodes = (seen[name] / verifies for name in ("drafts", "nodes"))
        said = ""
        if self.truth.verifies:
            self.last_length = 1 + drafts
            proposed = self.truth.widest or (self.truth.most if self.truth.shape is Shape.CHAIN else nodes - 1)
            said = f"accept len: {1 + drafts:.2f}, accept rate: {drafts / proposed if drafts else 0.0:.2f}, "
        self.log.append(
            f"[2026-11-30 10:00:00] Decode batch, #running-req: {batch}, #token: 10, token usage: 0.01, {said}cuda graph: True, "
            f"gen throughput (token/s): {seen['committed'] / (INTERVAL * self.truth.step_s):.2f}, #queue-req: 0"
        )

    def _print_tree(self, batch: int) -> None:
        seen, self.tree_window = self.tree_window, {}
        verifies = seen.get("verifies", 0)
        prints = self.truth.shape is Shape.TREE and not (self.truth.passes and straight(self.truth.mode))
        if not verifies or not prints:
            return
        drafts, nodes, committed = (seen[name] / verifies for name in ("drafts", "nodes", "committed"))
        budget = dict(self.truth.mode.knobs)["tree_budget"]
        told = committed - (0 if self.truth.counts_bonus else 1)
        self.log.append(
            f"[2026-11-30 10:00:00] DDTREE metrics: bs={batch} budget={budget} "
            f"avg_actual_nodes={nodes - (0 if self.truth.counts_root else 1):.2f} avg_accepted_drafts={drafts:.2f} "
            f"avg_commit_len={told:.2f} avg_accepted_depth={drafts:.2f}"
        )

    def sums(self) -> DecodeSums:
        """Return the engine's sums over decode steps."""
        busy_s = self.steps * self.truth.step_s
        return DecodeSums(
            steps=float(self.steps),
            requests=float(self.verifies),
            busy_s=busy_s,
            request_busy_s=busy_s * self.truth.batch,
            tokens=float(self.tokens),
        )

    def counters(self) -> EngineCounters:
        """Return the page of counters and gauges."""
        checked = ALGOS[self.truth.mode.algo].checked(dict(self.truth.mode.knobs)) or 0
        return EngineCounters(
            decode_tokens=float(self.tokens),
            generated_tokens=float(self.ended_tokens),
            verify_calls=float(self.ended_calls) if self.truth.verifies else None,
            requests=float(self.ended),
            running=float(self.truth.batch),
            queued=0.0,
            accept_length=self.last_length,
            draft_tokens=float(checked - (0 if self.truth.counts_root else 1)) if self.truth.verifies else 0.0,
        )

    def evidence(self, change: Callable[[str], str] = lambda line: line) -> Evidence:
        """Return what the doctor would gather; `change` bends each log line."""
        log = lines.read([change(line) for line in self.log], READER, whole=True)
        seen = [self._look(*moment) for moment in self.moments]
        return Evidence(
            mode=self.truth.mode,
            counts_root=self.truth.counts_root,
            counts_bonus=self.truth.counts_bonus,
            has_tree_line=True,
            log=log,
            observations=tuple(seen),
            started_s=0.0,
            same_start=True,
            steady=True,
            served=tuple(self.served),
            served_alone=True,
            served_log=log,
            no_gpus=True,
            info=EngineInfo(said=self._said()),
        )

    def _said(self) -> Mapping[str, int]:
        return {} if self.truth.widest is None else {"speculative_num_draft_tokens": self.truth.widest + 1}

    def _look(self, sums: DecodeSums, counters: EngineCounters) -> Observation:
        # Prefill and idle time come between: the clock runs ahead of the decode steps.
        at_s = sums.busy_s * 3 + 1.0
        load = EngineLoad(
            running=self.truth.batch,
            waiting=0,
            max_running=self.truth.batch,
            used_tokens=100,
            age_s=0.1,
            decoded=sums,
            ranks=1,
        )
        return Observation(
            at_s=at_s, look=Look(at_s=at_s, load=load, ready=True), page=Page(at_s=at_s, counters=counters)
        )


def without(evidence: Evidence, *names: str) -> Evidence:
    """Return the evidence with some of its parts gone, as where nobody looked."""
    bare = Evidence()
    return replace(evidence, **{name: getattr(bare, name) for name in names})
