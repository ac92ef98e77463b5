"""A study as JSON values and back, as it is kept between runs of the command; what cannot be meant is a MisreadError."""

from __future__ import annotations

from collections.abc import Mapping

from specctl.control import calibration_found
from specctl.control import mode as modes
from specctl.control.calibration_reader import Reader
from specctl.control.objective import Metric
from specctl.measure.calibrate import Ask, Study
from specctl.measure.sweep import Place, Question, Segment


class MisreadError(ValueError):
    """What is kept is no study of ours."""


def study_wire(study: Study) -> dict[str, object]:
    """Return the JSON object that is kept."""
    ask, question = study.ask, study.question
    return {
        "id": study.id,
        "began": study.began,
        "specctl": study.specctl,
        "host": study.host,
        "server": study.server,
        "way": study.way,
        "before": list(study.before),
        "was": str(study.was),
        "max_running": study.max_running,
        "releases": dict(study.releases),
        "facts": calibration_found.facts_wire(study.facts),
        "ask": {
            "low": ask.low,
            "high": ask.high,
            "limit_s": ask.limit_s,
            "tokens": ask.tokens,
            "prompts": ask.prompts,
            "window_s": ask.window_s,
            "metric": ask.metric.value,
            "seed": ask.seed,
        },
        "question": {
            "modes": [str(mode) for mode in question.modes],
            "grid": list(question.grid),
            "segment_s": question.segment_s,
            "switch_s": question.switch_s,
            "by_mode": question.by_mode,
        },
        "segments": [segment_wire(each) for each in study.segments],
    }


def segment_wire(each: Segment) -> dict[str, object]:
    """Return one segment's JSON object (docs/json.md)."""
    return {
        "mode": str(each.place.mode),
        "concurrency": each.place.concurrency,
        "round": each.round,
        "tokens_s": each.tokens_s,
        "took_s": each.took_s,
        "accept_length": each.accept_length,
        "spoiled": each.spoiled,
    }


def study_of(fields: Mapping[str, object]) -> Study:
    """Read what was kept; raises MisreadError."""
    try:
        return _study(fields)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MisreadError(f"it is no study: {error}") from error


def _study(fields: Mapping[str, object]) -> Study:
    ask, question = _part(fields, "ask"), _part(fields, "question")
    reader = Reader()
    facts = calibration_found.facts(reader, fields["facts"])
    if reader.problems:
        raise ValueError(reader.problems[0])
    release, algo = _texts(fields["before"])
    rows = fields["segments"]
    return Study(
        id=str(fields["id"]),
        began=str(fields["began"]),
        specctl=str(fields["specctl"]),
        host=str(fields["host"]),
        server=str(fields["server"]),
        way=str(fields["way"]),
        before=(release, algo),
        was=modes.parse(str(fields["was"])),
        max_running=None if fields["max_running"] is None else _whole(fields["max_running"]),
        releases={name: str(value) for name, value in _part(fields, "releases").items()},
        facts=facts,
        ask=Ask(
            low=_whole(ask["low"]),
            high=_whole(ask["high"]),
            limit_s=_number(ask["limit_s"]),
            tokens=_whole(ask["tokens"]),
            prompts=str(ask["prompts"]),
            window_s=_number(ask["window_s"]),
            metric=Metric(ask["metric"]),
            seed=_whole(ask["seed"]),
        ),
        question=Question(
            modes=tuple(modes.parse(text) for text in _texts(question["modes"])),
            grid=tuple(_whole(each) for each in _list(question["grid"])),
            segment_s=_number(question["segment_s"]),
            switch_s=_number(question["switch_s"]),
            by_mode=question["by_mode"] is True,
        ),
        segments=tuple(_segment(row) for row in _list(rows)),
    )


def _segment(row: object) -> Segment:
    if not isinstance(row, Mapping):
        raise TypeError("a segment is an object")
    length, spoiled = row["accept_length"], row["spoiled"]
    place = Place(mode=modes.parse(str(row["mode"])), concurrency=_whole(row["concurrency"]))
    rate = _number(row["tokens_s"])
    if spoiled is None and rate <= 0:
        raise ValueError("a segment that counts has tokens")
    return Segment(
        place=place,
        round=_whole(row["round"]),
        tokens_s=rate,
        took_s=_number(row["took_s"]),
        accept_length=None if length is None else _number(length),
        spoiled=None if spoiled is None else str(spoiled),
    )


def _part(fields: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = fields[name]
    if not isinstance(found, Mapping):
        raise TypeError(f"{name} is an object")
    return found


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("a list is wanted")
    return value


def _texts(value: object) -> list[str]:
    return [str(each) for each in _list(value)]


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is no count")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise TypeError(f"{value!r} is no number")
    return float(value)
