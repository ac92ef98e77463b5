"""Two benches side by side: what must be equal, what differs, and each figure's difference with its interval.

A difference of throughputs at other lengths, prompts or paces says nothing: such benches are refused. Other differences (another
host, another mode: often what is compared) are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specctl.measure.bench import METRICS, Bench, Measured, Metric, summary, values
from specctl.measure.intervals import Interval, relative_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of one level in both; `difference`: by which part B is more than A, None where it cannot be told."""

    level: str
    metric: Metric
    a: Interval
    b: Interval
    difference: Interval | None

    @property
    def verdict(self) -> str:
        """Say in a word what the interval says; an interval that holds zero shows no difference, which is no proof of none."""
        found = self.difference
        if found is None or found.low is None or found.high is None:
            return "unknown"
        if found.low <= 0 <= found.high:
            return "none shown"
        if self.metric.better == 0:
            return "differs"
        return "better" if (found.centre > 0) == (self.metric.better > 0) else "worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`refusals`: why it means nothing; `differences`: what else differs (name, in A, in B); `rows`: levels that both have."""

    a: Bench
    b: Bench
    refusals: tuple[str, ...]
    differences: tuple[tuple[str, str, str], ...]
    rows: tuple[Row, ...]
    alone: tuple[str, ...] = ()


def compare(a: Bench, b: Bench) -> Comparison:
    """Compare two benches, figure by figure."""
    shared = [(one, other) for one in a.levels for other in b.levels if one.name == other.name]
    names = {one.name for one, _ in shared}
    return Comparison(
        a=a,
        b=b,
        refusals=tuple(_refusals(a, b, bool(shared))),
        differences=tuple(_differences(a, b)),
        rows=tuple(row for one, other in shared for row in _rows(one, other)),
        alone=tuple(level.name for level in (*a.levels, *b.levels) if level.name not in names),
    )


def _refusals(a: Bench, b: Bench, shared: bool) -> list[str]:  # noqa: FBT001  # one claim, private
    one, other = a.setting, b.setting
    found = []
    if one.tokens != other.tokens:
        found.append(f"the answers have other lengths ({one.tokens} and {other.tokens} tokens)")
    if one.prompts_digest != other.prompts_digest:
        found.append(
            f"the prompts differ ({one.prompts} {one.prompts_digest} and {other.prompts} {other.prompts_digest})"
        )
    if one.pace != other.pace or one.trace != other.trace:
        found.append(f"the load is of another kind ({one.trace or one.pace} and {other.trace or other.pace})")
    if one.temperature != other.temperature:
        found.append(f"the temperatures differ ({one.temperature:g} and {other.temperature:g})")
    if not shared:
        levels = " and ".join(" ".join(level.name for level in bench.levels) or "none" for bench in (a, b))
        found.append(f"no level is in both ({levels})")
    return found


def _differences(a: Bench, b: Bench) -> list[tuple[str, str, str]]:
    pairs: Sequence[tuple[str, object, object]] = (
        ("host", a.subject.host, b.subject.host),
        ("server", a.subject.server, b.subject.server),
        ("mode", a.subject.mode, b.subject.mode),
        ("profile", a.subject.profile, b.subject.profile),
        ("engine", a.subject.engine_version, b.subject.engine_version),
        ("release", a.subject.release, b.subject.release),
        ("launch", a.subject.launch_digest, b.subject.launch_digest),
        ("target", a.subject.target, b.subject.target),
        ("draft", a.subject.draft, b.subject.draft),
        ("GPUs", a.subject.gpus, b.subject.gpus),
        ("driver", a.subject.driver, b.subject.driver),
        ("kernel", a.subject.kernel, b.subject.kernel),
        ("specctl", a.subject.specctl, b.subject.specctl),
        ("start", a.subject.engine_seed, b.subject.engine_seed),
        ("warm-up", a.setting.warmup, b.setting.warmup),
        ("rounds", a.setting.rounds, b.setting.rounds),
        ("seconds", a.setting.seconds, b.setting.seconds),
    )
    return [(name, _word(one), _word(other)) for name, one, other in pairs if one != other]


def _word(value: object) -> str:
    return "—" if value is None else str(value)


def _rows(one: Measured, other: Measured) -> list[Row]:
    rows = []
    for metric in METRICS:
        a, b = summary(one, metric.name), summary(other, metric.name)
        if a is not None and b is not None:
            difference = relative_difference(values(one, metric.name), values(other, metric.name))
            rows.append(Row(level=one.name, metric=metric, a=a, b=b, difference=difference))
    return rows
