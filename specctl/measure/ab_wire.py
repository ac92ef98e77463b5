"""Write an experiment as a JSON object and read it back, so that it can go on after an interruption; pure.

What is read was written by ourselves, perhaps by an older specctl or edited by hand: a field that makes no sense ends in
MisreadError, never in a half-read experiment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from specctl.measure.ab_diff import Deviation
from specctl.measure.ab_trial import Ask, Trial
from specctl.measure.ab_types import Arm, Around, LevelSeen, Output, Segment
from specctl.measure.figures import Figures, GpuFigures, Spread
from specctl.rollout import reading

Wire = Mapping[str, object]


class MisreadError(ValueError):
    """A kept experiment that cannot be read; carries which part."""


def trial_wire(trial: Trial) -> dict[str, object]:
    """Return the JSON object of an experiment (docs/json.md)."""
    fields = dataclasses.asdict(trial)
    return {name: _plain(value) for name, value in fields.items()}


def _plain(value: object) -> object:
    """Turn tuples into lists and mappings into dicts, as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def trial_of(row: Wire) -> Trial:
    """Read an experiment; raises MisreadError."""
    order, before = reading.wholes(row.get("order")), reading.texts(row.get("before"))
    pairs = tuple(reading.wholes(pair) for pair in _list(row, "pairs"))
    if len(before) != 2 or not pairs or any(len(pair) != 2 for pair in pairs):
        raise MisreadError("before and pairs are pairs")
    trial = Trial(
        id=_text(row, "id"),
        began=_text(row, "began"),
        specctl=_text(row, "specctl"),
        host=_text(row, "host"),
        server=_text(row, "server"),
        ask=_ask(_object(row, "ask")),
        arms=tuple(_arm(each) for each in reading.rows(row.get("arms"))),
        order=order,
        pairs=tuple((pair[0], pair[1]) for pair in pairs),
        before=(before[0], before[1]),
        named=reading.text(row.get("named")),
        beside=tuple(_deviation(each) for each in reading.rows(row.get("beside"))),
        releases=_texts(row, "releases"),
        facts=_texts(row, "facts"),
        exact=row.get("exact") is True,
        gpu=row.get("gpu") is not False,
        resumed=reading.whole(row.get("resumed")) or 0,
        segments=tuple(_segment(each) for each in reading.rows(row.get("segments"))),
    )
    places = range(len(trial.arms))
    if not order or any(arm not in places for arm in [*order, *(arm for pair in trial.pairs for arm in pair)]):
        raise MisreadError("the order names an arm that there is not")
    if [(s.place, s.arm) for s in trial.segments] != list(enumerate(order))[: len(trial.segments)]:
        raise MisreadError("the segments are not those of the order")
    return trial


def _ask(row: Wire) -> Ask:
    concurrency = reading.wholes(row.get("concurrency"))
    numbers = {name: reading.whole(row.get(name)) for name in ("tokens", "cycles", "runs", "rounds", "warmup", "seed")}
    seconds, wanted = reading.number(row.get("seconds")), reading.number(row.get("wanted"))
    missing = [name for name, value in numbers.items() if value is None]
    if missing or not concurrency or seconds is None or wanted is None:
        raise MisreadError(f"ask: {', '.join(missing) or 'a number'} is missing")
    known = {name: value for name, value in numbers.items() if value is not None}
    return Ask(
        a=_text(row, "a"),
        b=_text(row, "b"),
        concurrency=concurrency,
        prompts=_text(row, "prompts"),
        seconds=seconds,
        wanted=wanted,
        options_b=reading.texts(row.get("options_b")),
        env_b=reading.texts(row.get("env_b")),
        confounded=row.get("confounded") is True,
        third_arm=row.get("third_arm") is True,
        live=row.get("live") is True,
        **known,
    )


def _arm(row: Wire) -> Arm:
    return Arm(
        letter=_text(row, "letter"),
        mode=_text(row, "mode"),
        note=reading.text(row.get("note")) or "",
        words=reading.texts(row.get("words")),
        env=_texts(row, "env"),
    )


def _deviation(row: Wire) -> Deviation:
    return Deviation(
        kind=_text(row, "kind"),
        name=_text(row, "name"),
        a=_or_none(row, "a"),
        b=_or_none(row, "b"),
        origin=_text(row, "origin"),
    )


def _segment(row: Wire) -> Segment:
    place, arm = reading.whole(row.get("place")), reading.whole(row.get("arm"))
    if place is None or arm is None:
        raise MisreadError("a segment has a place and an arm")
    around = _object(row, "around")
    return Segment(
        place=place,
        arm=arm,
        began=_text(row, "began"),
        load_s=reading.number(row.get("load_s")),
        waited_s=reading.number(row.get("waited_s")) or 0.0,
        settled=reading.claim(row.get("settled")),
        levels=tuple(_level(each) for each in reading.rows(row.get("levels"))),
        outputs=tuple(_output(each) for each in reading.rows(row.get("outputs"))),
        around=Around(
            strangers=reading.texts(around.get("strangers")) if isinstance(around.get("strangers"), list) else None,
            cores=reading.whole(around.get("cores")),
            upset=reading.text(around.get("upset")),
            **{
                name: reading.number(around.get(name))
                for name in ("foreign_cores", "stolen_ratio", "temperature_c", "clock_hz", "power_w")
            },
        ),
    )


def _level(row: Wire) -> LevelSeen:
    concurrency = reading.whole(row.get("concurrency"))
    if concurrency is None:
        raise MisreadError("a level has a concurrency")
    return LevelSeen(concurrency=concurrency, runs=tuple(figures_of(each) for each in reading.rows(row.get("runs"))))


def _output(row: Wire) -> Output:
    tokens = row.get("tokens")
    gaps = [gap for each in _list(row, "gaps") if (gap := reading.number(each)) is not None]
    said: Sequence[int] | str = tokens if isinstance(tokens, str) else reading.wholes(tokens)
    return Output(prompt=_text(row, "prompt"), tokens=said, gaps=tuple(gaps))


def figures_of(row: Wire) -> Figures:
    """Read the figures of a run."""

    def number(name: str) -> float | None:
        return reading.number(row.get(name))

    return Figures(
        window_s=number("window_s"),
        requests=reading.whole(row.get("requests")) or 0,
        failed=reading.whole(row.get("failed")) or 0,
        bursts=reading.whole(row.get("bursts")) or 0,
        output_tokens=reading.whole(row.get("output_tokens")) or 0,
        tokens_s=number("tokens_s"),
        request_tokens_s=number("request_tokens_s"),
        requests_s=number("requests_s"),
        ttft=_spread(row.get("ttft")),
        latency=_spread(row.get("latency")),
        gap=_spread(row.get("gap")),
        itl=_spread(row.get("itl")),
        tpot_s=number("tpot_s"),
        accept_length=number("accept_length"),
        verify_steps_s=number("verify_steps_s"),
        in_flight=number("in_flight"),
        prompt_tokens=number("prompt_tokens"),
        cached_ratio=number("cached_ratio"),
        foreign_requests=number("foreign_requests"),
        foreign_tokens=number("foreign_tokens"),
        client_busy_ratio=number("client_busy_ratio"),
        late_s=number("late_s"),
        client_lag_s=number("client_lag_s"),
        gpus=_gpus(row.get("gpus")),
    )


def _spread(value: object) -> Spread | None:
    row = reading.mapping(value)
    p50, p95, p99 = (reading.number(row.get(name)) for name in ("p50", "p95", "p99"))
    return None if p50 is None or p95 is None or p99 is None else Spread(p50=p50, p95=p95, p99=p99)


def _gpus(value: object) -> GpuFigures | None:
    row = reading.mapping(value)
    count = reading.whole(row.get("count"))
    if count is None:
        return None
    names = ("power_w", "sm_clock_hz", "sm_clock_least_hz", "temperature_c", "busy_ratio")
    throttle = row.get("throttle")
    return GpuFigures(
        count=count,
        throttle=reading.texts(throttle) if isinstance(throttle, list) else None,
        **{name: reading.number(row.get(name)) for name in names},
    )


def _text(row: Wire, name: str) -> str:
    found = row.get(name)
    if not isinstance(found, str):
        raise MisreadError(f"{name} is no text")
    return found


def _or_none(row: Wire, name: str) -> str | None:
    found = row.get(name)
    return found if isinstance(found, str) else None


def _list(row: Wire, name: str) -> Sequence[object]:
    found = row.get(name)
    return found if isinstance(found, list) else ()


def _object(row: Wire, name: str) -> Wire:
    found = row.get(name)
    if not isinstance(found, Mapping):
        raise MisreadError(f"{name} is no object")
    return found


def _texts(row: Wire, name: str) -> dict[str, str]:
    return {str(key): value for key, value in reading.mapping(row.get(name)).items() if isinstance(value, str)}
