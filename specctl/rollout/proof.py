"""Judge whether the algo that was asked for is the one that decodes: proven, claimed or refuted (docs/gate.md, "Proof").

Pure. An argument that the engine echoes proves nothing; a profile's `live_proof` names what only that algo shows. Patterns come
from a profile, that is from an operator: one that does not compile is missing evidence, not a crash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specctl.algos import ALGOS
from specctl.engines._log_types import MAX_LINE
from specctl.engines.types import AlgoProfile, Evidence, EvidenceKind
from specctl.rollout.loadlog import clean
from specctl.rollout.smoke import SmokeResult

# The field's tree line; a profile's `tree_line` with the same group takes its place.
TREE_LINE = r"DDTREE metrics:.{0,80}\bbudget=(?P<tree_budget>\d{1,6})\b"
_NODES = re.compile(r"\bavg_actual_nodes=([\d.]{1,12})")
_ACCEPT_SLACK = 0.005  # accept lengths are printed with two decimals
_MAX_NOTES = 8
_MIN_WORDS = 6
_LITERAL = re.compile(r"(?:[\w :=,/-]|\\[^A-Za-z0-9])*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """Every evidence that the profile names was seen."""

    evidence: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Nothing speaks against the algo, but evidence is missing: claimed, not proven, and never healthy."""

    missing: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuted:
    """Something shows that the algo, or a knob of it, is not what was asked for, or that the engine does not generate."""

    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()


Proof = Proven | Claimed | Refuted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """What came of one evidence: exactly one of the three is set."""

    seen: str | None = None
    missing: str | None = None
    against: str | None = None


def judge(
    algo: AlgoProfile,
    knobs: Mapping[str, int],
    lines_since_start: Sequence[str],
    lines_since_smoke: Sequence[str],
    smoke: SmokeResult,
    info: Mapping[str, object] | None = None,
    *,
    tree_line: str | None = None,
) -> Proof:
    """Return whether the algo is proven live.

    `info` is the body of /server_info, None where it was not asked. `tree_line`: how this build spells its tree line (group
    tree_budget), for the notes alone.
    """
    windows = {"start": lines_since_start, "smoke": lines_since_smoke}
    findings = [_of_smoke(algo, smoke), *(_find(each, knobs, windows, smoke, info) for each in algo.live_proof)]
    if not algo.live_proof:
        findings.append(_Finding(missing="the engine profile names nothing that would prove it"))
    notes = _notes(algo, knobs, lines_since_smoke, smoke, tree_line or TREE_LINE)
    against = tuple(f.against for f in findings if f.against is not None)
    missing = tuple(f.missing for f in findings if f.missing is not None)
    seen = tuple(f.seen for f in findings if f.seen is not None)
    if against:
        return Refuted(reasons=against, notes=notes)
    if missing:
        return Claimed(missing=missing, evidence=seen, notes=notes)
    return Proven(evidence=seen, notes=notes)


def _of_smoke(algo: AlgoProfile, smoke: SmokeResult) -> _Finding:
    """Ask for a real generation, long enough for the algo's kind."""
    if smoke.failures or not smoke.text_ok:
        said = "; ".join(dict.fromkeys(smoke.failures)) or "an answer without text"
        return _Finding(against=f"the smoke generation failed: {said}")
    if smoke.requests == 0:
        return _Finding(missing="no smoke generation was made")
    known = ALGOS.get(algo.algo)
    if known is not None and not known.drafts:
        return _Finding(seen=f"{smoke.completion_tokens} tokens generated")
    if smoke.verify_steps is None:
        return _Finding(missing="the answers do not count verify steps")
    if not smoke.enough:
        return _Finding(missing=f"{smoke.verify_steps} of {smoke.needed_steps} verify steps were seen")
    accept = "" if smoke.accept_length is None else f", accept {smoke.accept_length:.2f}"
    return _Finding(seen=f"{smoke.verify_steps} verify steps{accept}")


def _find(
    evidence: Evidence,
    knobs: Mapping[str, int],
    windows: Mapping[str, Sequence[str]],
    smoke: SmokeResult,
    info: Mapping[str, object] | None,
) -> _Finding:
    match evidence.kind:
        case EvidenceKind.LOG:
            return _in_log(evidence, knobs, windows.get(evidence.during, ()))
        case EvidenceKind.META:
            value = smoke.meta.get(evidence.pattern, 0.0)
            return _turned(evidence, found=value > 0, what=f"{evidence.pattern} {value:g}")
        case EvidenceKind.INFO:
            return _in_info(evidence, info)


def _turned(evidence: Evidence, *, found: bool, what: str) -> _Finding:
    """Turn "found or not" into a finding, the other way round for evidence that must be absent."""
    if evidence.absent:
        return _Finding(against=f"{what}, which must not be") if found else _Finding(seen=f"no {evidence.pattern}")
    return _Finding(seen=what) if found else _Finding(missing=f"no {evidence.pattern} in the answers")


def _in_log(evidence: Evidence, knobs: Mapping[str, int], lines: Sequence[str]) -> _Finding:
    try:
        pattern = re.compile(evidence.pattern)
    except re.error as error:
        return _Finding(missing=f"the profile's pattern {evidence.pattern!r} is no regular expression ({error})")
    matches = [found for line in lines if (found := pattern.search(line[:MAX_LINE]))]
    since = "the start" if evidence.during == "start" else "the smoke test began"
    if not matches:
        if evidence.absent:
            return _Finding(seen=f"no line {_short(evidence.pattern)}")
        return _Finding(missing=f"no line {_short(evidence.pattern)} since {since}")
    if evidence.absent:
        return _Finding(against=f"the log says: {clean(matches[-1].string)}, which must not be")
    # A start line tells what the engine was made with: its last word counts. During the smoke test every line must agree.
    for found in matches[-1:] if evidence.during == "start" else matches:
        wrong = _wrong_knobs(found, knobs)
        if wrong:
            return _Finding(against=f"{wrong} (the log says: {clean(found.string)})")
    return _Finding(seen=f"line {_short(evidence.pattern)}{_shown_knobs(matches[-1], knobs)}")


def _shown_knobs(found: re.Match[str], knobs: Mapping[str, int]) -> str:
    """Say which knobs a line confirms."""
    shown = [f"{name} {knobs[name]}" for name, text in found.groupdict().items() if name in knobs and text is not None]
    return f" with {', '.join(shown)}" if shown else ""


def _wrong_knobs(found: re.Match[str], knobs: Mapping[str, int]) -> str | None:
    """Say which knob the engine shows at another value than was asked for, both values named."""
    wrong = []
    for name, text in found.groupdict().items():
        if name not in knobs or text is None:
            continue
        if _whole(text) != knobs[name]:
            wrong.append(f"{name} is {clean(text)}, asked for was {knobs[name]}")
    return "; ".join(wrong) or None


def _whole(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None


def _in_info(evidence: Evidence, info: Mapping[str, object] | None) -> _Finding:
    if info is None:
        return _Finding(missing=f"/server_info was not read for {evidence.pattern}")
    value: object = info
    for key in evidence.pattern.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    shown = None if value is None else clean(str(value))
    equal = shown is not None and (evidence.equals is None or shown == evidence.equals)
    if evidence.absent:
        what = f"/server_info says {evidence.pattern} = {shown}"
        return (
            _Finding(against=f"{what}, which must not be")
            if equal
            else _Finding(seen=f"no {evidence.pattern} in /server_info")
        )
    if equal:
        return _Finding(seen=f"{evidence.pattern} = {shown}")
    if shown is None:
        return _Finding(missing=f"/server_info does not tell {evidence.pattern}")
    return _Finding(against=f"/server_info says {evidence.pattern} = {shown}, asked for was {evidence.equals}")


def _notes(
    algo: AlgoProfile, knobs: Mapping[str, int], lines: Sequence[str], smoke: SmokeResult, tree_line: str
) -> tuple[str, ...]:
    """Say which figures break the conventions (design: nodes <= budget + 1, accept length <= 1 + the deepest path)."""
    notes = list(_tree_notes(knobs.get("tree_budget"), lines, tree_line))
    known = ALGOS.get(algo.algo)
    deepest = known.max_drafts(knobs) if known is not None else None
    if deepest is not None and smoke.accept_length is not None and smoke.accept_length > 1 + deepest + _ACCEPT_SLACK:
        notes.append(
            f"accept length {smoke.accept_length:.2f} is over {1 + deepest}, the most that these knobs allow: "
            "the engine counts otherwise, or runs other knobs"
        )
    return tuple(notes[:_MAX_NOTES])


def _tree_notes(budget: int | None, lines: Sequence[str], tree_line: str) -> tuple[str, ...]:
    try:
        pattern = re.compile(tree_line)
    except re.error:
        return ()
    notes: dict[str, None] = {}
    for line in lines:
        found = pattern.search(line[:MAX_LINE])
        if found is None:
            continue
        groups = found.groupdict()
        shown = _whole(groups.get("tree_budget") or groups.get("budget") or "")
        if budget is None:
            notes["a tree line was printed though no tree budget was asked for"] = None
        elif shown is not None and shown != budget:
            notes[f"the tree line says budget {shown}, asked for was {budget}"] = None
        counted = _NODES.search(line[:MAX_LINE])
        nodes = _number(counted[1] if counted else None)
        if budget is not None and nodes is not None and nodes > budget + 1 + _ACCEPT_SLACK:
            notes[f"the tree line counts {nodes:g} nodes, over the budget of {budget} and its root"] = None
    return tuple(notes)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _short(pattern: str) -> str:
    """Return a pattern fit for a sentence: the literal words that it begins with, where there are enough of them."""
    literal = _LITERAL.match(pattern)
    words = re.sub(r"\\([^A-Za-z0-9])", r"\1", literal[0]) if literal else ""
    return f'"{words}…"' if len(words) >= _MIN_WORDS else repr(pattern[:60])
