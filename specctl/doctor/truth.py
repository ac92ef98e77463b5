"""Tell "the metric lies" from "tokens are thrown away" from "the request finished early": drafts, commit and tokens on one basis.

Pure. The log says how many drafts a step accepted (d) and what it committed (c); requests say what they got a verify step (a).
Accepted drafts and one bonus token are due: d + 1. Where a is d + 1, nothing is lost and whatever says otherwise lies; where a is
less, tokens that were accepted did not arrive, or drafts are overcounted; where requests are so short that their ends explain it,
they finished early. Without a, tokens a second at another mode's step time go as far as "if step times are equal", and no further.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specctl.doctor import basis, decide
from specctl.doctor.basis import Committed, Estimate, Told
from specctl.doctor.evidence import Evidence, Pair
from specctl.doctor.types import Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity

NOTHING_LOST = "none on tokens"


class Case(enum.Enum):
    """What a step's accepted drafts became, by what its requests got."""

    WHOLE = "whole"
    ENDED = "ended"
    LOST = "lost"
    OVER = "over"
    """Requests got more than the log's drafts explain: drafts are undercounted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What the log says and what requests got, set against each other."""

    told: Told
    due: float
    got: Committed
    case: Case


def windows_beside(evidence: Evidence) -> Sequence[Pair]:
    """Return the log windows of the time that tokens a step were measured in."""
    if evidence.served_log is not None and evidence.served_log.windows and evidence.served:
        return evidence.served_log.windows
    return () if evidence.log is None else evidence.log.windows


def weigh(evidence: Evidence) -> Weighed | None:
    """Set the log's drafts against what requests got; None where either is not known."""
    told, got = basis.told(windows_beside(evidence)), basis.committed(evidence)
    if told.drafts is None or got is None:
        return None
    due = told.drafts + 1
    return Weighed(told=told, due=due, got=got, case=_case(evidence, due, got))


def _case(evidence: Evidence, due: float, got: Committed) -> Case:
    if got.length > due + got.slack:
        return Case.OVER
    short = due - got.length
    if short <= got.slack:
        return Case.WHOLE
    most = basis.max_drafts(evidence.mode)
    ends = got.lost_to_ends(float(most)) if most is not None else 0.0
    return Case.ENDED if short <= ends + got.slack else Case.LOST


def with_effect(hit: Hit, evidence: Evidence) -> Hit:
    """Say of a wrong depth what it costs: throughput decides."""
    weighed = weigh(evidence)
    if weighed is not None and weighed.case in (Case.WHOLE, Case.ENDED):
        words = f"{NOTHING_LOST}: requests got {weighed.got.length:.2f} a verify step, drafts and bonus make {weighed.due:.2f}"
        return replace(hit, effect=words)
    if weighed is not None and weighed.case is Case.LOST:
        return replace(
            hit, effect=f"see M026: requests got {weighed.got.length:.2f} of {weighed.due:.2f} tokens a step"
        )
    told, rough = basis.told(windows_beside(evidence)), basis.estimate(evidence)
    if rough is not None and told.depth is not None and told.drafts is not None:
        return replace(hit, effect=_by_throughput(told.depth, told.drafts, rough))
    return replace(hit, effect="not decided: tokens a verify step were not measured")


def _by_throughput(depth: float, drafts: float, rough: Estimate) -> str:
    """Say which of two readings of a line the throughput fits: a commit of depth + 1, or of drafts + 1 at most."""
    near_drafts = abs(rough.length - (drafts + 1)) < abs(rough.length - (depth + 1))
    told = f"{rough.tokens_s:.1f} tok/s are about {rough.length:.3f} a step at {rough.reference.mode.algo}'s step time"
    if near_drafts:
        return (
            f"{NOTHING_LOST}, as far as throughput says: {told}, and a depth of {depth:.2f} would make {depth + 1:.2f}"
        )
    return f"not by throughput: {told}, nearer to the depth than to the drafts; drafts may be what is counted wrong"


def short_lines(evidence: Evidence) -> Hit | None:
    """Find more lines whose commit falls short of drafts and bonus than requests ended: an end makes one line short, and no more.

    A commit that is a little low passes the audit, which cannot know of ends; here they were counted.
    """
    found = _short(evidence)
    if found is None or len(found.short) <= found.ends:
        return None
    drafts, commit = found.short[-1]
    return Hit(
        message=f"{drafts:.2f} accepted drafts make a commit of {drafts + found.bonus:.2f}, and it says {commit:.2f}",
        evidence=(
            f"{len(found.short)} of {found.lines} tree lines fall short, and {found.ends} requests ended meanwhile",
        ),
    )


def ended(evidence: Evidence) -> Unsure | None:
    """Say that a short commit may be the ends of requests: a few lines of a few steps each, and as many requests ended in them.

    None where ends were not counted, or are too few for so many lines.
    """
    found = _short(evidence)
    if found is None or not found.short or len(found.short) > found.ends:
        return None
    reason = f"{len(found.short)} of {found.lines} tree lines fall short, and {found.ends} requests ended meanwhile"
    return Unsure(reason=reason, decide=decide.LOAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Short:
    """Drafts and commit of each tree line that falls short, of so many lines; requests that ended in their time."""

    short: tuple[tuple[float, float], ...]
    lines: int
    ends: int
    bonus: int


def _short(evidence: Evidence) -> _Short | None:
    """Return the lines that fall short and the ends of their time; None where ends were not counted, or nobody knows the bonus."""
    ends, windows = _ends(evidence)
    if ends is None or evidence.counts_bonus is None:
        return None
    bonus = 1 if evidence.counts_bonus else 0
    told = [(one.tree.accepted_drafts, one.tree.commit) for one in windows if one.tree is not None]
    pairs = [(drafts, commit) for drafts, commit in told if drafts is not None and commit is not None]
    short = tuple((drafts, commit) for drafts, commit in pairs if commit < drafts + bonus - 2 * basis.ROUNDING)
    return _Short(short=short, lines=len(pairs), ends=ends, bonus=bonus)


def _ends(evidence: Evidence) -> tuple[int | None, Sequence[Pair]]:
    """Return how many requests ended in the time of which log windows; None where that was not counted."""
    log = evidence.served_log
    if evidence.served and evidence.served_alone and log is not None and not log.lost:
        # The first window began before, and may hold the end of what was served then.
        return len(evidence.served) + 1, log.windows
    counters, whole = basis.counted(evidence), evidence.log
    if (
        counters is None
        or counters.requests is None
        or whole is None
        or not whole.whole
        or whole.lost
        or not evidence.steady
    ):
        return None, ()
    running = [one.look.load.running or 0 for one in evidence.observations if one.look is not None]
    return int(counters.requests) + max(running, default=0), whole.windows


def of_commit(hit: Hit, evidence: Evidence) -> Verdict:
    """Say of a commit that is not drafts and bonus which of the three it is, as far as the evidence goes."""
    weighed = weigh(evidence)
    told = basis.told(windows_beside(evidence))
    if weighed is None:
        words = _uncounted(told, evidence)
        return hit if words is None else replace(hit, message=f"{hit.message}: {words}")
    if weighed.case is Case.ENDED:
        return Clear(note="requests end inside their blocks (M027)")
    if weighed.case is Case.LOST:
        words = f"tokens are lost (M026): requests got {weighed.got.length:.2f} a step where {weighed.due:.2f} were accepted"
        remedy = "See M026; a verify trace says at which step tokens are cut (specctl doctor --trace FILE)."
        return replace(hit, effect=words, severity=Severity.ERROR, remedy=remedy)
    words = f"{NOTHING_LOST}: requests got {weighed.got.length:.2f} a verify step; the line's commit is wrong"
    return replace(hit, effect=words)


def _uncounted(told: Told, evidence: Evidence) -> str | None:
    """Name the pattern: a commit that equals the drafts where the bonus belongs to it."""
    if told.commit is None or told.drafts is None or evidence.counts_bonus is False:
        return None
    if abs(told.commit - told.drafts) <= 2 * basis.ROUNDING:
        return "commit = drafts means that the bonus token is uncounted, or cut"
    return None
