"""Carry a calibration out under the server's lease: segment by segment, each kept, and what ran before brought back at the end.

Whatever ends it (its time, nothing left open, an error, Ctrl-C), the server runs what it ran, the agent is resumed where it was
held for this, and what was measured is there to go on with.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

from specctl.algos import ALGOS
from specctl.control.calibration_facts import Facts
from specctl.errors import RemoteCommandError, SpecctlError
from specctl.measure.calibrate import Study
from specctl.measure.figures import Figures, figures
from specctl.measure.load import Closed, Level, Run
from specctl.measure.sweep import MOST_CONCURRENCY, Place, Segment
from specctl.measure.sweep_run import sweep
from specctl.ops.ab_switch import Bench, Stop, carried, way_back
from specctl.ops.calibrate_hold import held
from specctl.ops.calibrate_plan import LIVE, Planned, keep, reason_of
from specctl.ops.calibrate_ways import LiveWay, RestartWay, Way, known
from specctl.ops.engine_http import EngineClient
from specctl.ops.engine_live import Engine
from specctl.ops.lease import leased
from specctl.ops.load import Progress, Show, run_level
from specctl.ops.reporter import Reporter

# A segment that stretches beyond its window by more than this is cut: the time that was promised comes first.
STRETCH, STRETCH_S = 3.0, 30.0
# So many segments in a row that measure nothing: the rest would neither.
MOST_EMPTY = 6
SEEDS = 1_000_003


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a calibration ended. `error`: why before its time; `restored`: what ran before runs again."""

    study: Study
    restored: bool
    error: SpecctlError | None = None
    interrupted: bool = False

    @property
    def whole(self) -> bool:
        """Claim that it ended by itself."""
        return self.error is None and not self.interrupted


class StoppedError(SpecctlError):
    """The operator asked for the end."""


@dataclass(slots=True)
class Work:
    """What every segment is measured with; `study` grows."""

    planned: Planned
    study: Study
    way: Way
    reporter: Reporter
    stop: Stop
    end_s: float
    empty: int = 0
    told: str = ""

    def left_s(self) -> float:
        """Return the seconds that are left for measuring; none once somebody asked for the end."""
        question = self.study.question
        kept_s = question.switch_s if question.by_mode else 0.0
        return 0.0 if self.stop.asked.is_set() else self.end_s - kept_s - time.monotonic()

    def measure(self, place: Place, number: int) -> Segment:
        """Measure one segment; raises the SpecctlError of what ends the calibration."""
        began_s = time.monotonic()
        host = self.study.host
        self.reporter.step(host, "calibrate", f"{self.study.names[place.mode]} at {place.concurrency}: {self._left()}")
        server = self.way.to(place.mode)
        client = EngineClient.of(self.planned.contact, server)
        run = run_level(
            client, self._level(place, number), self.planned.prompts, show=self._show(place), cancel=self.stop.asked
        )
        if self.stop.asked.is_set():
            raise StoppedError("interrupted by the operator")
        self.study = replace(self.study, facts=with_context(self.study.facts, run))
        return self._segment(place, number, run, time.monotonic() - began_s)

    def _level(self, place: Place, number: int) -> Level:
        ask = self.study.ask
        return Level(
            pace=Closed(concurrency=place.concurrency),
            tokens=ask.tokens,
            warmup=1,
            rounds=1,
            seconds=ask.window_s,
            limit_s=STRETCH * self.study.question.segment_s + STRETCH_S,
            # All modes of a round are asked the same; no two rounds are, so that no prefix cache knows them.
            seed=(ask.seed * SEEDS + number * MOST_CONCURRENCY + place.concurrency) % 2**31,
        )

    def _segment(self, place: Place, number: int, run: Run, took_s: float) -> Segment:
        found = figures(run)
        why = spoiled(place, run, found)
        self.empty = self.empty + 1 if found.tokens_s is None else 0
        if self.empty >= MOST_EMPTY:
            raise RemoteCommandError(
                f"{self.empty} segments in a row measured nothing: {why}", hint=f"specctl logs --host {self.study.host}"
            )
        return Segment(
            place=place,
            round=number,
            tokens_s=found.tokens_s or 0.0,
            took_s=took_s,
            accept_length=found.accept_length,
            spoiled=why,
        )

    def _show(self, place: Place) -> Show:
        name = self.study.names[place.mode]

        def show(now: Progress) -> None:
            text = f"{name} at {place.concurrency}: {now.tokens:,} tokens, {self._left()}"
            self.reporter.step(self.study.host, "calibrate", text)

        return show

    def _left(self) -> str:
        return f"{len(self.study.segments)} segments, {max(0.0, self.left_s()):.0f} s left"


def carry_out(planned: Planned, reporter: Reporter, stop: Stop, *, steal: bool = False) -> Ended:
    """Measure until the time is up or nothing is open, and bring back what ran before. Raises LockHeldError at the start."""
    contact, server, study = planned.contact, planned.server, planned.study
    end_s = time.monotonic() + planned.left_s
    keep(study)
    with (
        leased(contact, server, reason_of(study), steal=steal) as token,
        held(contact, server.name, reason_of(study), wanted=planned.hold),
    ):
        bench = _bench(planned, token, reporter, stop)
        way = way_of(planned, bench)
        work = Work(planned=planned, study=study, way=way, reporter=reporter, stop=stop, end_s=end_s)
        restored, error = carried(bench, lambda: _measure(work), lambda: _back(work), told=study.way == LIVE)
    return Ended(study=work.study, restored=restored, error=error, interrupted=stop.asked.is_set())


def _bench(planned: Planned, token: int, reporter: Reporter, stop: Stop) -> Bench:
    from specctl.adapters.templates import Templates

    return Bench(
        contact=planned.contact,
        server=planned.server,
        token=token,
        reporter=reporter,
        stop=stop,
        why=reason_of(planned.study),
        templates=Templates(()),
    )


def way_of(planned: Planned, bench: Bench) -> Way:
    """Return the way that a study goes by."""
    study = planned.study
    if study.way == LIVE:
        return LiveWay(Engine(planned.contact, planned.server), study.was)
    back = way_back(planned.contact, planned.inventory, study.before)
    return RestartWay(bench, planned.inventory, back, dict(study.releases))


def _measure(work: Work) -> None:
    """Measure segment after segment until the time is up, nothing is open, or the operator asks for the end."""
    with contextlib.suppress(StoppedError):
        for segment in sweep(work.study.question, work.study.segments, work.measure, work.left_s):
            segments = (*work.study.segments, segment)
            work.study = replace(work.study, segments=segments, releases={**work.study.releases, **known(work.way)})
            keep(work.study)
            _tell(work, segment)


def _tell(work: Work, segment: Segment) -> None:
    """Say what is new: a segment that does not count, and what is known once it changes."""
    host = work.study.host
    if segment.spoiled is not None:
        place = segment.place
        work.reporter.final(
            host, "dropped", f"{work.study.names[place.mode]} at {place.concurrency}: {segment.spoiled}"
        )
    said = known_so_far(work.study)
    if said and said != work.told:
        work.told = said
        work.reporter.final(host, "known", said)


def known_so_far(study: Study) -> str:
    """Say which mode is best where, as far as it is certain; empty before anything is."""
    parts = []
    for each in study.conclusion.stretches:
        if each.decided:
            levels = f"{each.low:g}" if each.low == each.high else f"{each.low:g} to {each.high:g}"
            parts.append(f"{levels}: {' or '.join(study.names[mode] for mode in each.modes)}")
    return "best at " + "; ".join(parts) if parts else ""


def spoiled(place: Place, run: Run, found: Figures) -> str | None:
    """Say why a segment does not count; None where it does."""
    if found.tokens_s is None or found.tokens_s <= 0:
        return run.stopped or "no steady stretch was measured"
    if found.failed:
        return f"{found.failed} requests failed"
    if found.foreign_requests is not None and found.foreign_requests > 0:
        return f"{found.foreign_requests:.0f} requests of others ran"
    if found.foreign_tokens is not None and found.foreign_tokens > 0:
        return "other requests ran"
    steps = [each.verify_steps for each in run.timings if each.whole]
    if ALGOS[place.mode.algo].drafts and steps and not any(steps):
        return f"no verify step was counted: the engine does not run {place.mode}"
    return None


def with_context(facts: Facts, run: Run) -> Facts:
    """Return the facts with the band of contexts that was measured."""
    sizes = [(each.prompt_tokens, each.output_tokens or 0) for each in run.timings if each.prompt_tokens]
    if not sizes:
        return facts
    low, high = min(prompt or 0 for prompt, _ in sizes), max((prompt or 0) + output for prompt, output in sizes)
    known_low, known_high = facts.context_tokens or (low, high)
    return replace(facts, context_tokens=(min(low, known_low), max(high, known_high)))


def _back(work: Work) -> None:
    """Bring back what ran before, and say so."""
    host = work.study.host
    work.reporter.step(host, "restore", "what ran before is brought back")
    work.way.back()
    work.reporter.final(host, "restored", f"{work.study.was} runs again")
