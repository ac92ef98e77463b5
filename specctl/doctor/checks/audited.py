"""The metric audit's checks (control/audit.py, M001 to M015), put to the doctor's evidence: the agent asks the same code.

What is of one log line is asked of every tree line of the log, so that a person reads how many of them say it; what a mode must
bear out, of the lines that came in that mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from specctl.algos.types import Shape
from specctl.control.audit import CHECKS as AUDIT
from specctl.control.audit_types import AuditInput, Finding, Unknown
from specctl.control.sample.engine import TreeLine
from specctl.doctor import basis, decide, truth, windows
from specctl.doctor.checks import _audit_words as words
from specctl.doctor.evidence import Evidence, Log, Pair
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Unsure, Verdict

Ask = Callable[[AuditInput], Finding | Unknown | None]
Windows = Callable[[Evidence], Sequence[Pair]]

MOST_PARTS = 0.5
"""A commit may fall short of its drafts where requests end; where most lines do, it is how the figure is made."""


def _of_windows(ask: Ask, needed: str, evidence: Evidence) -> Verdict:
    """Ask once of each stretch of time; a contradiction in any of them counts."""
    answers = [(when, ask(given)) for when, given in windows.inputs(evidence)]
    for when, answer in answers:
        if isinstance(answer, Finding):
            return Hit(message=answer.reason, evidence=(when,) if when else (), title=answer.title)
    if any(answer is None for _, answer in answers):
        return Clear(note=", ".join(when for when, answer in answers if answer is None and when))
    reasons = [answer.reason for _, answer in answers if isinstance(answer, Unknown)]
    return Unsure(reason=reasons[0], decide=needed)


def _all_windows(evidence: Evidence) -> Sequence[Pair]:
    return () if evidence.log is None else evidence.log.windows


def _of_lines(ask: Ask, needed: str, least: float, evidence: Evidence, of: Windows = _all_windows) -> Verdict:
    """Ask of every tree line of some windows; `least`: the share of lines from which it is a finding."""
    lines = [one.tree for one in of(evidence) if one.tree is not None]
    given = windows.inputs(evidence)[0][1]
    if not lines:
        return _without_lines(ask, needed, evidence)
    answers = [ask(windows.with_line(given, line)) for line in lines]
    found = [answer for answer in answers if isinstance(answer, Finding)]
    judged = [answer for answer in answers if not isinstance(answer, Unknown)]
    if not judged:
        reasons = [answer.reason for answer in answers if isinstance(answer, Unknown)]
        return Unsure(reason=reasons[0], decide=needed)
    share = f"{len(found)} of {len(judged)} tree lines"
    if found and len(found) >= least * len(judged):
        return Hit(message=found[-1].reason, evidence=(share, *_text(evidence.log)), title=found[-1].title)
    return Clear(note=share if found else f"{len(judged)} tree lines")


def _without_lines(ask: Ask, needed: str, evidence: Evidence) -> Verdict:
    """A server that is no tree prints no tree's line; of a tree without one nothing is known."""
    shape = basis.shape_of(evidence.mode)
    if shape is not None and shape is not Shape.TREE:
        return Beside()
    return _of_windows(ask, needed, evidence)


def _text(log: Log | None) -> Sequence[str]:
    return () if log is None or log.text is None else (log.text,)


def _depth(ask: Ask, needed: str, evidence: Evidence) -> Verdict:
    """M003: a depth that is no number of drafts; whether tokens are lost with it, throughput says."""
    verdict = _of_lines(ask, needed, 0.0, evidence)
    return truth.with_effect(verdict, evidence) if isinstance(verdict, Hit) else verdict


def _commit(ask: Ask, needed: str, evidence: Evidence) -> Verdict:
    """M004: a commit that is not the drafts and a bonus; requests that end inside their blocks explain one that is short."""
    verdict = _of_lines(ask, needed, MOST_PARTS, evidence)
    if isinstance(verdict, Clear):
        verdict = truth.short_lines(evidence) or verdict
    elif isinstance(verdict, Hit) and truth.weigh(evidence) is None:
        verdict = truth.ended(evidence) or verdict
    return truth.of_commit(verdict, evidence) if isinstance(verdict, Hit) else verdict


def _steps(ask: Ask, needed: str, evidence: Evidence) -> Verdict:
    """M005: the mean commit of all lines against the sums over steps: one line of 40 steps may honestly differ."""
    told = basis.told(basis.present(evidence))
    if told.commit is None:
        return _without_lines(ask, needed, evidence)
    line = TreeLine(accepted_drafts=told.drafts, commit=told.commit, depth=told.depth)
    answers = [(when, ask(windows.with_line(given, line))) for when, given in windows.inputs(evidence)]
    # The mean of a log that reaches back is of the time since the start, not of the last seconds.
    when, answer = answers[0]
    if isinstance(answer, Finding):
        weighed = truth.weigh(evidence)
        if weighed is not None and weighed.case is truth.Case.LOST:
            return Clear(note="tokens are lost on the way: see M026")
        return Hit(message=answer.reason, evidence=tuple(part for part in (when, f"{told.lines} tree lines") if part))
    if isinstance(answer, Unknown):
        return Unsure(reason=answer.reason, decide=needed)
    return Clear(note=f"{told.lines} tree lines")


SPECIAL: dict[str, Callable[[Ask, str, Evidence], Verdict]] = {
    "M003": _depth,
    "M004": _commit,
    "M005": _steps,
    "M013": lambda ask, needed, evidence: _of_lines(ask, needed, 0.0, evidence, basis.present),
    "M015": lambda ask, needed, evidence: _of_lines(ask, needed, 0.0, evidence, basis.present),
}


def _judged(check_id: str, ask: Ask, evidence: Evidence) -> Verdict:
    """Ask ourselves; where that does not decide, the agent's own audit may have, which looks longer than we do."""
    needed = words.WORDS[check_id].decide
    if needed == decide.METRICS and evidence.configuration.metrics_enabled:
        needed = decide.LOAD
    verdict = SPECIAL.get(check_id, _of_windows)(ask, needed, evidence)
    if not isinstance(verdict, Unsure) or check_id not in (evidence.agent_finds or ()):
        return verdict
    return Hit(message="the agent on the host finds it, three audits running", evidence=("specctl agent status",))


def _check(check_id: str, ask: Ask) -> Check:
    said = words.WORDS[check_id]
    return Check(
        id=check_id,
        title=said.title,
        meaning=said.meaning,
        looks_at=said.looks_at,
        effect=said.effect,
        remedy=said.remedy,
        severity=said.severity,
        judge=functools.partial(_judged, check_id, ask),
    )


CHECKS = CheckSet(
    name="audited",
    title="Figures that contradict each other (the agent's own audit)",
    checks=tuple(_check(check_id, ask) for check_id, ask in AUDIT),
)
