"""Measure one segment of an experiment: an arm that was started anew, at every concurrency, and all that was so around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from specctl.errors import RemoteCommandError, SpecctlError
from specctl.fleet.types import Server
from specctl.measure.ab_planned import figures_for
from specctl.measure.ab_trial import Ask, Trial
from specctl.measure.ab_types import LevelSeen, Output, Segment
from specctl.measure.figures import Figures
from specctl.measure.load import Closed, Level, Prompt
from specctl.ops import ab_around, ab_rest
from specctl.ops.ab_answers import answers
from specctl.ops.ab_switch import Bench
from specctl.ops.engine_http import EngineClient
from specctl.ops.load import Progress, Watch, run_level
from specctl.ops.load_gpus import GpuWatch

# Levels and runs have seeds of their own, so that no prompt comes twice to one start of an engine; arms have the same.
SEEDS_A_LEVEL = 100
LEAST_LIMIT_S = 600.0


class EndedError(SpecctlError):
    """The operator asked for the end of the experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What every segment of an experiment is measured with."""

    bench: Bench
    prompts: Sequence[Prompt]

    def say(self, trial: Trial, place: int, text: str) -> None:
        """Show how far a segment is."""
        self.bench.reporter.step(self.bench.contact.host.name, name_of(trial, place), text)

    def heed(self) -> None:
        """End here where the operator asked for it."""
        if self.bench.stop.asked.is_set():
            raise EndedError("interrupted by the operator")


def name_of(trial: Trial, place: int) -> str:
    """Return a segment's name: B 3/8."""
    return f"{trial.letters[trial.order[place]]} {place + 1}/{len(trial.order)}"


def measure(work: Measuring, trial: Trial, server: Server, load_s: float | None) -> Segment:
    """Measure the next segment of a trial on a server that was just started; raises EndedError, or what went wrong."""
    place, contact = len(trial.segments), work.bench.contact
    client = EngineClient.of(contact, server)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    first = trial.segments[0].around if trial.segments else None
    with GpuWatch(contact) as watch:
        rested = (
            ab_rest.rest(watch, first, work.bench.stop.asked.wait, lambda text: work.say(trial, place, text))
            if trial.gpu
            else ab_rest.Rested(state={}, waited_s=0.0, settled=None)
        )
        work.heed()
        outputs = _answers(work, trial, place, client)
        before = ab_around.look(contact, server, gpu=trial.gpu)
        levels = tuple(_level(work, trial, client, watch, number) for number in range(len(trial.ask.concurrency)))
        after = ab_around.look(contact, server, gpu=trial.gpu)
    return Segment(
        place=place,
        arm=trial.order[place],
        began=began,
        load_s=load_s,
        waited_s=rested.waited_s,
        settled=rested.settled,
        levels=levels,
        outputs=outputs,
        around=ab_around.around(before, after, rested.state),
    )


def _answers(work: Measuring, trial: Trial, place: int, client: EngineClient) -> tuple[Output, ...]:
    work.say(trial, place, "greedy answers")
    found = answers(client, work.prompts, trial.ask.tokens)
    work.heed()
    return found


def _level(work: Measuring, trial: Trial, client: EngineClient, watch: Watch, number: int) -> LevelSeen:
    concurrency = trial.ask.concurrency[number]
    runs = tuple(_run(work, trial, client, watch, number, run) for run in range(trial.ask.runs))
    return LevelSeen(concurrency=concurrency, runs=runs)


def _run(work: Measuring, trial: Trial, client: EngineClient, watch: Watch, number: int, run: int) -> Figures:
    ask, place = trial.ask, len(trial.segments)
    level = level_of(ask, number, run)

    def show(progress: Progress) -> None:
        text = f"{level.concurrency} at once, run {run + 1} of {ask.runs}, {progress.tokens} tokens"
        work.say(trial, place, text)

    measured = run_level(client, level, work.prompts, show=show, cancel=work.bench.stop.asked, watch=watch)
    work.heed()
    found = figures_for(measured)
    if measured.stopped is not None or found.tokens_s is None:
        raise RemoteCommandError(
            f"arm {name_of(trial, place)} at {level.concurrency}: {measured.stopped or 'no steady stretch was measured'}",
            hint=f"specctl logs --host {trial.host}",
        )
    return found


def level_of(ask: Ask, number: int, run: int) -> Level:
    """Return the load of one run: the same for every arm and every segment."""
    return Level(
        pace=Closed(concurrency=ask.concurrency[number]),
        tokens=ask.tokens,
        warmup=ask.warmup,
        rounds=ask.rounds,
        seconds=ask.seconds,
        limit_s=max(LEAST_LIMIT_S, 10 * ask.seconds),
        seed=(ask.seed * SEEDS_A_LEVEL + number) * SEEDS_A_LEVEL + run,
    )
