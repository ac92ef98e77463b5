"""What a calibration file says beside its figures, read and written: the facts that it holds for, and what was concluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from specctl.control.calibration_facts import Facts
from specctl.control.calibration_reader import Reader
from specctl.control.crossovers import Answer, Crossover, Stretch, Verdict

KEYS = frozenset({"holds_for", "stretches", "crossovers", "trees", "drafts"})
NUMBERS = {"gpu_count": 1024, "tensor_parallel": 1024}
MOST_TOKENS = 10_000_000
TEXT_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was concluded. `trees`, `drafts`: whether they pay, None where that was not asked."""

    stretches: tuple[Stretch, ...] = ()
    crossovers: tuple[Crossover, ...] = ()
    trees: Verdict | None = None
    drafts: Verdict | None = None


def facts(reader: Reader, value: object) -> Facts:
    """Read the facts that a file holds for; what is absent or null is not known."""
    told = {} if value is None else reader.mapping(value, "holds_for")
    names = {each.name for each in fields(Facts)}
    reader.problems += [f"holds_for.{name}: there is no such fact" for name in told if name not in names]
    found: dict[str, object] = {}
    for name in names:
        given = told.get(name)
        if given is None:
            continue
        if name in NUMBERS:
            found[name] = reader.whole(given, f"holds_for.{name}", high=NUMBERS[name])
        elif name == "context_tokens":
            found[name] = _band(reader, given)
        elif isinstance(given, str) and len(given) <= TEXT_CHARS:
            found[name] = given
        else:
            reader.problems.append(f"holds_for.{name}: a text of at most {TEXT_CHARS} characters is wanted")
    return Facts(**found)  # type: ignore[arg-type]  # each was read as what its field is


def _band(reader: Reader, value: object) -> tuple[int, int] | None:
    rows = reader.rows(value, "holds_for.context_tokens")
    ends = [reader.whole(row, "holds_for.context_tokens", high=MOST_TOKENS) for row in rows]
    whole = [end for end in ends if end is not None]
    if len(whole) == len(ends) == 2 and whole[0] <= whole[1]:
        return whole[0], whole[1]
    reader.problems.append("holds_for.context_tokens: the shortest and the longest context are wanted, [low, high]")
    return None


def said(reader: Reader, plain: Mapping[object, object]) -> Said:
    """Read what was concluded."""
    stretches, crossovers = plain.get("stretches"), plain.get("crossovers")
    return Said(
        stretches=tuple(
            _stretch(reader, row, f"stretches.{number}")
            for number, row in enumerate(() if stretches is None else reader.rows(stretches, "stretches"))
        ),
        crossovers=tuple(
            _crossover(reader, row, f"crossovers.{number}")
            for number, row in enumerate(() if crossovers is None else reader.rows(crossovers, "crossovers"))
        ),
        trees=_verdict(reader, plain.get("trees"), "trees"),
        drafts=_verdict(reader, plain.get("drafts"), "drafts"),
    )


def _stretch(reader: Reader, value: object, key: str) -> Stretch:
    row = reader.mapping(value, key)
    low, high = _ends(reader, row, key)
    return Stretch(
        low=low, high=high, modes=reader.modes(row.get("modes"), f"{key}.modes"), decided=row.get("decided") is True
    )


def _crossover(reader: Reader, value: object, key: str) -> Crossover:
    row = reader.mapping(value, key)
    low, high = _ends(reader, row, key)
    at = row.get("at")
    return Crossover(
        before=reader.modes(row.get("before"), f"{key}.before"),
        after=reader.modes(row.get("after"), f"{key}.after"),
        low=low,
        high=high,
        at=None if at is None else reader.level(at, f"{key}.at"),
    )


def _ends(reader: Reader, row: Mapping[object, object], key: str) -> tuple[float, float]:
    low, high = (reader.level(row.get(name), f"{key}.{name}") for name in ("low", "high"))
    if low is not None and high is not None and low <= high:
        return low, high
    reader.problems.append(f"{key}: low and high are wanted, rising")
    return 0.0, 0.0


def _verdict(reader: Reader, value: object, key: str) -> Verdict | None:
    if value is None:
        return None
    row = reader.mapping(value, key)
    answers = {each.value: each for each in Answer}
    answer = answers.get(str(row.get("answer")))
    if answer is None:
        reader.problems.append(f"{key}.answer: one of {', '.join(answers)} is wanted, not {row.get('answer')!r}")
        return None
    at, left = (reader.levels(row.get(name, ()), f"{key}.{name}") for name in ("at", "open"))
    return Verdict(answer=answer, at=at, open=left)


def facts_wire(told: Facts) -> dict[str, object]:
    """Return facts as a file keeps them; what is not known is left out."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(told).items()
        if value is not None
    }


def said_wire(told: Said) -> dict[str, object]:
    """Return what was concluded as a file keeps it, and as `--json` prints it."""
    return {
        "stretches": [
            {"low": each.low, "high": each.high, "modes": [str(mode) for mode in each.modes], "decided": each.decided}
            for each in told.stretches
        ],
        "crossovers": [
            {
                "before": [str(mode) for mode in each.before],
                "after": [str(mode) for mode in each.after],
                "low": each.low,
                "high": each.high,
                "at": each.at,
            }
            for each in told.crossovers
        ],
        "trees": _verdict_wire(told.trees),
        "drafts": _verdict_wire(told.drafts),
    }


def _verdict_wire(told: Verdict | None) -> dict[str, object] | None:
    return None if told is None else {"answer": told.answer.value, "at": list(told.at), "open": list(told.open)}
