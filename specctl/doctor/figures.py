"""Read a figures file: what somebody measured or copied, as evidence without a host (docs/doctor.md).

Pure: a mapping in, evidence or all problems out. Numbers must be finite and not negative; a list of runs becomes its median.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from specctl.control import mode as modes
from specctl.control.mode import Mode
from specctl.control.sample.numbers import LARGEST
from specctl.doctor.evidence import Configuration, Evidence, GpuLook, Served, Speed

KEYS = ("about", "mode", "concurrency", "counts_root", "counts_bonus", "speeds", "served", "gpus", "log", "overlap")
MOST_ROWS = 4096
_SPEED = ("tokens_s", "accept_length", "accept_rate", "steps_s", "tokens_per_step", "concurrency")
_SERVED = ("tokens", "verify_calls", "decode_s", "finish")
_GPU = tuple(each.name for each in fields(GpuLook))
_WHOLE = frozenset(name for name in _GPU if name == "index" or name.endswith("_bytes") or name.startswith("link_"))


class FiguresError(ValueError):
    """The file cannot be used; carries every problem, each with its key."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A file that was found good: evidence, and the log lines that stand in it."""

    evidence: Evidence
    lines: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reader:
    """Reads values and keeps what is wrong with them."""

    problems: list[str] = field(default_factory=list)

    def number(self, value: object, key: str, *, most: float = LARGEST) -> float | None:
        """Return a number; a list of numbers (runs) becomes its median."""
        if isinstance(value, list) and value and len(value) <= MOST_ROWS:
            runs = [self.number(each, f"{key}[{place}]", most=most) for place, each in enumerate(value)]
            told = [run for run in runs if run is not None]
            return statistics.median(told) if len(told) == len(runs) else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and isinstance(value, int | float) and 0 <= value <= most:
            return float(value)
        self.problems.append(f"{key}: a number from 0 on is wanted, not {value!r:.60}")
        return None

    def mode(self, value: object, key: str) -> Mode | None:
        """Return a mode as `specctl` spells it."""
        try:
            return modes.parse(str(value))
        except ValueError as error:
            self.problems.append(f"{key}: {error}")
            return None

    def claim(self, value: object, key: str) -> bool | None:
        """Return true or false."""
        if isinstance(value, bool):
            return value
        self.problems.append(f"{key}: true or false is wanted, not {value!r:.60}")
        return None

    def text(self, value: object, key: str) -> str | None:
        """Return a text."""
        if isinstance(value, str):
            return value
        self.problems.append(f"{key}: a text is wanted, not {value!r:.60}")
        return None

    def rows(self, value: object, key: str, known: tuple[str, ...]) -> list[tuple[str, Mapping[str, object]]]:
        """Return the objects of a list, each with its key; unknown keys in them are problems."""
        if not isinstance(value, list) or len(value) > MOST_ROWS:
            self.problems.append(f"{key}: a list of at most {MOST_ROWS} is wanted")
            return []
        found = []
        for place, row in enumerate(value):
            name = f"{key}[{place}]"
            if not isinstance(row, Mapping):
                self.problems.append(f"{name}: a mapping is wanted, not {row!r:.60}")
                continue
            self.unknown(row, name, known)
            found.append((name, row))
        return found

    def unknown(self, row: Mapping[str, object], name: str, known: tuple[str, ...]) -> None:
        """Keep the keys that there are not."""
        strangers = [str(key) for key in row if key not in known]
        self.problems += [f"{name}.{key}: there is no such key (there is {', '.join(known)})" for key in strangers]


def parse(plain: object) -> Figures:
    """Read a file's mapping; raises FiguresError with all that is wrong."""
    reader = _Reader()
    if not isinstance(plain, Mapping):
        raise FiguresError(("figures are a mapping: mode, speeds, log …",))
    strangers = [str(key) for key in plain if key not in KEYS]
    reader.problems += [f"{key}: there is no such key (there is {', '.join(KEYS)})" for key in strangers]
    own = None if plain.get("mode") is None else reader.mode(plain["mode"], "mode")
    load = None if plain.get("concurrency") is None else reader.number(plain["concurrency"], "concurrency")
    evidence = Evidence(
        mode=own,
        counts_root=_claim(reader, plain, "counts_root"),
        counts_bonus=_claim(reader, plain, "counts_bonus"),
        has_tree_line=True,
        steady=True,
        speeds=_speeds(reader, plain.get("speeds"), load),
        served=_served(reader, plain.get("served")),
        served_alone=True,
        gpus=_gpus(reader, plain.get("gpus")),
        configuration=Configuration(claimed=own, overlap=_claim(reader, plain, "overlap", default=None)),
    )
    log = None if plain.get("log") is None else reader.text(plain["log"], "log")
    if reader.problems:
        raise FiguresError(tuple(reader.problems))
    return Figures(evidence=evidence, lines=() if log is None else tuple(log.splitlines()))


def _claim(reader: _Reader, plain: Mapping[str, object], key: str, *, default: bool | None = True) -> bool | None:
    """Return a claim; conventions that are not told are SGLang's own: root and bonus are counted."""
    return default if plain.get(key) is None else reader.claim(plain[key], key)


def _speeds(reader: _Reader, value: object, load: float | None) -> tuple[Speed, ...]:
    found = []
    for name, row in reader.rows(
        [] if value is None else value, "speeds", ("mode", *_SPEED, "run", "graphs", "overlap")
    ):
        told = _numbers(reader, row, name, _SPEED)
        mode = reader.mode(row.get("mode"), f"{name}.mode")
        tokens_s = told.pop("tokens_s", None)
        if tokens_s is None or tokens_s <= 0:
            reader.problems.append(f"{name}.tokens_s: tokens a second, above 0, are wanted")
            continue
        if mode is None:
            continue
        run = None if row.get("run") is None else str(row["run"])
        found.append(
            Speed(
                mode=mode,
                tokens_s=tokens_s,
                concurrency=told.get("concurrency", load),
                accept_length=told.get("accept_length"),
                accept_rate=told.get("accept_rate"),
                steps_s=told.get("steps_s"),
                tokens_per_step=told.get("tokens_per_step"),
                run=run,
                graphs=_claim(reader, row, "graphs", default=None),
                overlap=_claim(reader, row, "overlap", default=None),
            )
        )
    return tuple(found)


def _served(reader: _Reader, value: object) -> tuple[Served, ...]:
    found = []
    for name, row in reader.rows([] if value is None else value, "served", _SERVED):
        told = _numbers(reader, row, name, ("tokens", "verify_calls", "decode_s"))
        if "tokens" not in told:
            reader.problems.append(f"{name}.tokens: the request's completion tokens are wanted")
            continue
        calls = told.get("verify_calls")
        finish = None if row.get("finish") is None else str(row["finish"])
        found.append(
            Served(
                tokens=int(told["tokens"]),
                verify_calls=None if calls is None else int(calls),
                decode_s=told.get("decode_s"),
                finish=finish,
            )
        )
    return tuple(found)


def _numbers(reader: _Reader, row: Mapping[str, object], name: str, keys: tuple[str, ...]) -> dict[str, float]:
    read = {key: reader.number(row[key], f"{name}.{key}") for key in keys if row.get(key) is not None}
    return {key: value for key, value in read.items() if value is not None}


def _gpus(reader: _Reader, value: object) -> tuple[GpuLook, ...]:
    found = []
    for name, row in reader.rows([] if value is None else value, "gpus", _GPU):
        plain = tuple(key for key in _GPU if key not in ("model", "throttles", "xids"))
        told: dict[str, float | int] = {
            key: int(number) if key in _WHOLE else number for key, number in _numbers(reader, row, name, plain).items()
        }
        if "index" not in told:
            reader.problems.append(f"{name}.index: the GPU's number is wanted")
            continue
        throttles = _texts(reader, row.get("throttles"), f"{name}.throttles")
        model = None if row.get("model") is None else str(row["model"])
        found.append(_gpu(told, model, throttles, _whole_list(reader, row.get("xids"), f"{name}.xids")))
    return tuple(found)


def _gpu(
    told: Mapping[str, float | int], model: str | None, throttles: tuple[str, ...] | None, xids: tuple[int, ...]
) -> GpuLook:
    made: Callable[..., GpuLook] = GpuLook
    return made(model=model, throttles=throttles, xids=xids, **told)


def _texts(reader: _Reader, value: object, key: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(str(each) for each in value[:MOST_ROWS])
    reader.problems.append(f"{key}: a list is wanted")
    return None


def _whole_list(reader: _Reader, value: object, key: str) -> tuple[int, ...]:
    numbers = [reader.number(each, key) for each in value[:MOST_ROWS]] if isinstance(value, list) else []
    return tuple(int(number) for number in numbers if number is not None)
