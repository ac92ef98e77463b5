"""The doctor's short load (`--live`): a few greedy requests of one length, with looks at engine, GPUs and log meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from specctl.control.sample.engine import EngineInfo
from specctl.doctor import lines
from specctl.doctor.evidence import OWN_RUN, Evidence, GpuLook, Log, Observation, Served, Speed
from specctl.measure.figures import decoding_s, figures, foreign
from specctl.measure.load import Closed, Level, Prompt, Run
from specctl.ops import doctor_gpus, doctor_look
from specctl.ops.doctor_files import reader_of
from specctl.ops.doctor_gather import Subject, log_lines, read_log
from specctl.ops.engine_http import EngineClient
from specctl.ops.load import Progress, run_level
from specctl.rollout.smoke import PROMPTS

TOKENS = 256
LEAST_TOKENS = 32
ROUNDS = 6
LIMIT_S = 90.0
LOOK_EACH_S = 1.0
LOG_LAG_S = 1.0
"""A line is in the log this long after it was printed, at the most.

There is no line to wait for: a decode line comes each forty steps, none need come after the last, and the engine prints it when it
has answered already.
"""
CONTEXT_SHARE = 0.5

Show = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meanwhile:
    """What was seen while the load ran."""

    run: Run
    looks: Sequence[Observation]
    gpus: Sequence[GpuLook]


def loaded(found: Subject, evidence: Evidence, *, show: Show | None = None) -> Evidence:
    """Return the evidence with a load of our own in it; as it was where the server does not answer."""
    if found.client is None:
        return evidence
    before = log_lines(found)
    level = Level(pace=Closed(concurrency=1), tokens=_tokens(evidence.info), rounds=ROUNDS, limit_s=LIMIT_S)
    seen = _put(found, found.client, level, show)
    time.sleep(LOG_LAG_S)
    now = log_lines(found)
    speeds = _speed(evidence, seen.run)
    return replace(
        evidence,
        observations=(*evidence.observations, *seen.looks),
        served=_served(seen.run),
        served_alone=_alone(evidence, seen.run),
        served_log=_since(found, before, now),
        log=read_log(found, now),
        speeds=(*evidence.speeds, *speeds),
        gpus=(*evidence.gpus, *seen.gpus),
    )


def _tokens(info: EngineInfo | None) -> int:
    """Return the new tokens of each request: as many as fit beside a prompt, where the context is small."""
    limit = None if info is None else info.context_limit
    return TOKENS if limit is None else max(LEAST_TOKENS, min(TOKENS, int(limit * CONTEXT_SHARE)))


def _put(found: Subject, client: EngineClient, level: Level, show: Show | None) -> _Meanwhile:
    """Run the load, and look once a second in a thread of its own."""
    done = threading.Event()
    looks: list[Observation] = []
    gpus: list[GpuLook] = []
    failed: list[Exception] = []

    def watch() -> None:
        try:
            while not done.wait(LOOK_EACH_S):
                looks.append(doctor_look.look(client))
                gpus.extend(doctor_gpus.look(found.contact))
        except Exception as error:  # noqa: BLE001  # raised again by whoever waits
            failed.append(error)

    thread = threading.Thread(target=watch, daemon=True, name="specctl-doctor-watch")
    thread.start()
    prompts = tuple(Prompt(id=str(number), kind="smoke", text=text) for number, text in enumerate(PROMPTS))
    try:
        run = run_level(client, level, prompts, show=show)
    finally:
        done.set()
        thread.join()
    if failed:
        raise failed[0]
    looks.append(doctor_look.look(client))
    return _Meanwhile(run=run, looks=looks, gpus=gpus)


def _served(run: Run) -> tuple[Served, ...]:
    """Return every request that came to its end, warm-up included: the log's windows are of all of them."""
    return tuple(
        Served(
            tokens=one.output_tokens,
            verify_calls=one.verify_steps,
            decode_s=decoding_s(one),
            finish=one.finish,
        )
        for one in run.timings
        if one.failure is None and not one.unfinished and one.output_tokens is not None
    )


def _alone(evidence: Evidence, run: Run) -> bool:
    """Claim that nobody else's request ran meanwhile, by the engine's own counters."""
    requests, _ = foreign(run)
    idle = not evidence.observations or all(
        one.look is None or not (one.look.load.running or one.look.load.waiting) for one in evidence.observations
    )
    return idle and requests == 0


def _speed(evidence: Evidence, run: Run) -> tuple[Speed, ...]:
    found = figures(run)
    if evidence.mode is None or found.tokens_s is None or found.tokens_s <= 0 or not _alone(evidence, run):
        return ()
    speed = Speed(
        mode=evidence.mode,
        tokens_s=found.tokens_s,
        concurrency=1.0,
        tokens_per_step=found.accept_length,
        steps_s=found.verify_steps_s,
        run=OWN_RUN,
        source=OWN_RUN,
    )
    return (speed,)


def _since(found: Subject, before: Sequence[str], now: Sequence[str]) -> Log:
    """Return the log windows that came after what was there before."""
    last = next((line for line in reversed(before) if line.strip()), None)
    places = [place for place, line in enumerate(now) if line == last]
    new = now if last is None else now[places[-1] + 1 :] if places else ()
    return lines.read(new, reader_of(found.server.profile), lost=0 if places or last is None else 1)
