"""What a check answers to one piece of evidence; the tables of the test modules beside this are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specctl.control.sample import engine_loads, engine_metrics
from specctl.control.sample.engine import EngineCounters, EngineLoad, Look, Page
from specctl.doctor import lines
from specctl.doctor.catalogue import by_id
from specctl.doctor.evidence import Evidence, Log, Observation
from specctl.doctor.types import Beside, Clear, Hit, Unsure, Verdict
from specctl.engines._sglang_metrics import METRICS
from tests.unit.doctor.worlds import READER

RECORDED = Path(__file__).parents[3] / "data" / "sglang-0.5.23"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One check, one piece of evidence, the kind of answer, and words that it must hold."""

    id: str
    name: str
    kind: type[Hit | Clear | Unsure | Beside]
    evidence: Evidence = field(default_factory=Evidence)
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.id} {self.name}"

    def holds(self) -> None:
        """Assert that the check answers so."""
        verdict = by_id()[self.id].judge(self.evidence)
        hits = verdict if isinstance(verdict, tuple) else (verdict,)
        assert {type(one) for one in hits} == {self.kind}, verdict
        text = " ".join(_words(one) for one in hits)
        assert [words for words in self.words if words not in text] == [], text


def _words(verdict: Verdict) -> str:
    match verdict:
        case Hit():
            parts = (verdict.title, verdict.message, *verdict.evidence, verdict.effect, verdict.remedy)
            return " ".join(part for part in parts if part)
        case Unsure():
            return f"{verdict.reason} {verdict.decide}"
        case Clear():
            return verdict.note
        case Beside():
            return ""


def log(*texts: str) -> Log:
    """Return a log of these lines."""
    return lines.read(texts, READER, whole=True)


def recorded_log(*names: str) -> Log:
    """Return the log of recorded files, each a text of lines below tests/data/sglang-0.5.23."""
    return log(*(line for name in names for line in (RECORDED / name).read_text(encoding="utf-8").splitlines()))


def recorded_load(name: str, at_s: float = 0.0) -> Observation:
    """Return a look at a recorded answer of /v1/loads."""
    load = engine_loads.parse((RECORDED / "loads" / f"{name}.json").read_bytes())
    assert load is not None
    return Observation(at_s=at_s, look=Look(at_s=at_s, load=load, ready=True))


def recorded_page(name: str, at_s: float = 0.0) -> Observation:
    """Return a look at a recorded page of /metrics."""
    page = (RECORDED / "metrics" / f"{name}.txt").read_bytes()
    return Observation(at_s=at_s, page=Page(at_s=at_s, counters=engine_metrics.parse(page, METRICS)))


def look(at_s: float, counters: EngineCounters | None = None, **load: object) -> Observation:
    """Return a look of given figures."""
    made = EngineLoad(**{"running": 1, "waiting": 0, "max_running": 8, "age_s": 0.1, "ranks": 1, **load})  # type: ignore[arg-type]  # fields by name, as the tables give them
    page = None if counters is None else Page(at_s=at_s, counters=counters)
    return Observation(at_s=at_s, look=Look(at_s=at_s, load=made, ready=True), page=page)


def kinds(cases: Sequence[Case]) -> dict[str, set[type]]:
    """Return which kinds of answer each id is tested for."""
    found: dict[str, set[type]] = {}
    for case in cases:
        found.setdefault(case.id, set()).add(case.kind)
    return found
