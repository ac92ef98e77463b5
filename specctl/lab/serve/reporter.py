"""Turn the scheduler's steps into log lines, gauges, counters and load snapshots, moving each only when SGLang would.

Owned by the scheduler's thread; other threads only read its public values, each of which is replaced whole. Times are arguments.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field

from specctl.lab.serve import dialect
from specctl.lab.serve.decoder import Decoder
from specctl.lab.serve.faults import Faults
from specctl.lab.serve.histogram import QUEUE_EDGES, STAGE_EDGES, Histogram
from specctl.lab.serve.log import logger
from specctl.lab.serve.readings import Gauges, LoadSnapshot
from specctl.lab.serve.window import Window
from specctl.lab.types import StepReport

SNAPSHOT_STEPS = 15
"""A load snapshot is published each time this many decode steps have run (and at prefill and when idle)."""
THROUGHPUT_STALE_S = 30.0
"""An idle server's throughput gauge falls to 0 when the last decode line is this old."""


@dataclass(slots=True)
class Totals:
    """Counters that grow with every iteration."""

    prefill_passes: int = 0
    decode_passes: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    prefill_busy_s: float = 0.0
    decode_busy_s: float = 0.0
    idle_s: float = 0.0
    moments: list[float] = field(default_factory=lambda: [0.0] * 6)


class Reporter:
    """Keeps the readings of one scheduler."""

    def __init__(self, decoder: Decoder, *, interval: int, with_metrics: bool, faults: Faults, now: float) -> None:
        self._decoder = decoder
        self._interval = interval
        self._with_metrics = with_metrics
        self._faults = faults
        self._window = Window()
        self._lifetime = Window()
        self._last_prefill = now
        self._last_decode_line = now
        self._frozen = False
        self.lifetime_accept_length: float | None = None
        self.window_accept_rate: float | None = None
        self.last_gen_throughput = 0.0
        self.claimed_draft_tokens: int | None = None
        self.waiting_tokens = 0
        self.totals = Totals()
        self.gauges: Gauges | None = None
        self.queue_time = Histogram(QUEUE_EDGES)
        self.stages = {"request_process": Histogram(STAGE_EDGES), "prefill_forward": Histogram(STAGE_EDGES)}
        self.snapshot = LoadSnapshot(at=time.time())

    def prefill(self, report: StepReport, *, running_before: int, busy_s: float, now: float) -> None:
        """Count a prefill, print its line and refresh the gauges."""
        tokens = report.prefilled_tokens
        rate = tokens / max(now - self._last_prefill, 1e-9)
        self._last_prefill = now
        self.totals.prefill_passes += 1
        self.totals.prefill_tokens += tokens
        self.totals.prefill_busy_s += busy_s
        self.stages["prefill_forward"].observe(busy_s, max(report.prefilled_requests, 1))
        logger.info(
            "Prefill batch, #new-seq: %d, #new-token: %d, #cached-token: 0, token usage: %.2f, #running-req: %d, #queue-req: %d, "
            "#pending-token: 0, cpu graph: False, input throughput (token/s): %.2f",
            *(report.prefilled_requests, tokens, self._usage(), running_before, self._decoder.waiting, rate),
        )
        self._refresh(running=running_before, throughput=self._recent_throughput(now))
        self.publish(running=self._decoder.running)

    def decode(self, report: StepReport, *, batch: int, busy_s: float, now: float) -> None:
        """Count a decode step; print the lines and refresh the gauges once an interval."""
        tokens = sum(len(emission.tokens) for emission in report.emissions)
        self.totals.decode_passes += 1
        self.totals.decode_tokens += tokens
        self.totals.decode_busy_s += busy_s
        micros = busy_s * 1e6
        for at, amount in enumerate((1, batch, micros, batch * batch, batch * micros, tokens)):
            self.totals.moments[at] += amount
        self._window.add(report)
        if self._window.steps >= self._interval:
            self._close_window(batch, now)
        if self.totals.decode_passes % SNAPSHOT_STEPS == 0:
            self.publish(running=self._decoder.running)

    def idle(self, *, waited_s: float, now: float) -> None:
        """Bring the gauges of a server without work to rest."""
        self.totals.idle_s += waited_s
        if self.gauges is not None:
            stale = now - self._last_decode_line > THROUGHPUT_STALE_S
            if self.gauges.running or (stale and self.gauges.gen_throughput):
                self._refresh(running=0, throughput=0.0)
        self.publish(running=0)

    def retracted(self, running: int) -> None:
        """Show a pause in mode retract: every running request counts as queued; the load snapshot stays as it was."""
        if self.gauges is not None:
            self.gauges = dataclasses.replace(
                self.gauges, running=0, queued=running + self._decoder.waiting, used_tokens=0, token_usage=0.0
            )

    def reset_acceptance(self) -> None:
        """Forget the lifetime acceptance; it stays unknown until the next decode line."""
        self._lifetime = Window()
        self.lifetime_accept_length = None
        self.window_accept_rate = None

    def mode_changed(self) -> None:
        """Begin the acceptance of a window anew: averages over two modes would be true of neither."""
        self._window = Window(steps=self._window.steps, tokens=self._window.tokens)

    def publish(self, *, running: int) -> None:
        """Replace the snapshot that /v1/loads answers with."""
        shown = self.gauges or Gauges()
        totals = self.totals
        moments = totals.moments
        self.snapshot = LoadSnapshot(
            at=time.time(),
            running=running,
            waiting=self._decoder.waiting,
            waiting_tokens=self.waiting_tokens,
            used_tokens=self._decoder.used_tokens,
            token_usage=round(self._usage(), 4),
            gen_throughput=round(shown.gen_throughput, 2) if self._with_metrics else 0.0,
            prefill_tokens=totals.prefill_tokens,
            prefill_busy_us=int(totals.prefill_busy_s * 1e6),
            decode_moments=(
                moments[0],
                moments[1],
                float(int(moments[2])),
                moments[3],
                float(int(moments[4])),
                moments[5],
            ),
            accept_length=self.lifetime_accept_length,
            accept_rate=self.window_accept_rate if self._with_metrics else 0.0,
        )

    def _close_window(self, batch: int, now: float) -> None:
        """Print the window's lines, move the gauges and begin another window."""
        window, self._window = self._window, Window()
        self.last_gen_throughput = window.tokens / max(now - self._last_decode_line, 1e-9)
        self._last_decode_line = now
        self._remember_acceptance(window)
        self._refresh(running=batch, throughput=self.last_gen_throughput, window=window)
        accept = (
            ""
            if window.accept_length is None
            else f"accept len: {window.accept_length:.2f}, accept rate: {window.accept_rate or 0:.2f}, "
        )
        logger.info(
            "Decode batch, #running-req: %d, #token: %d, token usage: %.2f, %scpu graph: False, "
            "gen throughput (token/s): %.2f, #queue-req: %d",
            *(batch, self._decoder.used_tokens, self._usage(), accept, self.last_gen_throughput, self._decoder.waiting),
        )
        if dialect.running_algorithm(self._decoder.mode).prints_tree_line and window.verifies:
            logger.info("%s", self._tree_line(window, batch))
        if self._faults.has("stale-gauges"):
            self._frozen = True

    def _tree_line(self, window: Window, batch: int) -> str:
        """Return the fork's tree line; every figure is true unless a fault bends it."""
        commit, depth = window.mean(window.committed), window.mean(window.accepted_depth)
        if self._faults.has("bonus-missing"):
            commit = max(commit - 1, 0.0)
        if self._faults.has("commit-truncated"):
            commit = min(commit, 2.0)
        if self._faults.has("metric-depth-off"):
            depth += 3
        if self._faults.has("commit-claimed"):
            commit = window.mean(window.accepted_drafts) + 1
        return (
            f"DDTREE metrics: bs={batch} budget={self._decoder.mode.knobs['tree_budget']} "
            f"avg_actual_nodes={window.mean(window.nodes):.2f} avg_accepted_drafts={window.mean(window.accepted_drafts):.2f} "
            f"avg_commit_len={commit:.2f} avg_accepted_depth={depth:.2f}"
        )

    def _remember_acceptance(self, window: Window) -> None:
        """Add the window to the lifetime; without a verify in it nothing is learnt."""
        if window.accept_length is None:
            return
        self._lifetime.verifies += window.verifies
        self._lifetime.accepted_drafts += window.accepted_drafts
        self.lifetime_accept_length = self._lifetime.accept_length
        self.window_accept_rate = window.accept_rate

    def _refresh(self, *, running: int, throughput: float, window: Window | None = None) -> None:
        """Replace the gauges; spec gauges move with a window only."""
        if self._frozen:
            return
        used = self._decoder.used_tokens
        shown = dataclasses.replace(
            self.gauges or Gauges(),
            running=running,
            queued=self._decoder.waiting,
            used_tokens=used,
            available_tokens=self._decoder.capacity_tokens - used,
            token_usage=used / self._decoder.capacity_tokens,
            gen_throughput=throughput,
        )
        if window is not None:
            shown = dataclasses.replace(
                shown,
                decode_sum_seq_lens=used,
                spec_accept_length=shown.spec_accept_length if window.accept_length is None else window.accept_length,
                spec_accept_rate=shown.spec_accept_rate if window.accept_rate is None else window.accept_rate,
                spec_num_steps=0 if self.claimed_draft_tokens is None else 1,
                spec_num_draft_tokens=self.claimed_draft_tokens or 0,
            )
        self.gauges = shown

    def _usage(self) -> float:
        """Return the used share of the KV pool."""
        return self._decoder.used_tokens / self._decoder.capacity_tokens

    def _recent_throughput(self, now: float) -> float:
        """Return the last window's throughput while it is not stale."""
        return 0.0 if now - self._last_decode_line > THROUGHPUT_STALE_S else self.last_gen_throughput
