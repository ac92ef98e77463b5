"""What the reference verifier says of a recorded verify trace (docs/verify-trace.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specctl.doctor.evidence import Evidence
from specctl.doctor.replay_types import Kind, ReplayResult
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Judge, Unsure, Verdict
from specctl.lint.types import Severity

SHOWN = 3
"""Divergences of one kind that are told as evidence."""
TOKENS = (
    Kind.NOT_A_CHILD,
    Kind.NOT_TARGETS,
    Kind.BONUS,
    Kind.COMMIT_LONG,
    Kind.COMMIT_WRONG,
    Kind.PREFIX,
    Kind.ROOT,
    Kind.AFTER_END,
    Kind.STREAMED,
)
LOST = (Kind.WALK_SHORT, Kind.BONUS_DROPPED, Kind.THROWN_AWAY)
COUNTS = (Kind.DRAFTS, Kind.DEPTH, Kind.NODES)
SHAPE = (Kind.TOPOLOGY, Kind.TOO_MANY)


def _of(kinds: Iterable[Kind], *, needs: tuple[str, ...] = ()) -> Judge:
    """Return the check of some kinds of divergence; `needs` are fields without which it says nothing."""
    wanted = frozenset(kinds)

    def judge(evidence: Evidence) -> Verdict:
        found = evidence.replay
        if found is None:
            return Beside()
        if not found.sums.steps:
            return Unsure(reason="the trace has no verify step", decide="record one while a speculative mode decodes")
        counts = {kind: count for kind, count in found.by_kind.items() if kind in wanted}
        if counts:
            return _hit(found, counts)
        told = [name for name in needs if not any(gap.startswith(f"{name}: ") for gap in found.unchecked)]
        if needs and not told:
            return Unsure(
                reason=f"the trace does not tell {' or '.join(needs)}", decide="see docs/verify-trace.md, Fields"
            )
        return Clear(note=f"{found.sums.steps} verify steps of {found.requests} requests agree with the reference")

    return judge


def _hit(found: ReplayResult, counts: Mapping[Kind, int]) -> Hit:
    shown = [one for one in found.divergences if one.kind in counts]
    total = sum(counts.values())
    kinds = ", ".join(f"{count} × {kind.value}" for kind, count in counts.items())
    first = (
        f"the first in step {shown[0].step}, request {shown[0].rid}"
        if shown
        else "beyond the first hundred divergences"
    )
    return Hit(
        message=f"{total} of {found.sums.steps} verify steps; {first}",
        evidence=(kinds, *(f"line {one.line}, {one}" for one in shown[:SHOWN])),
    )


def _legible(evidence: Evidence) -> Verdict:
    """Tell how much of a trace could be read."""
    found = evidence.replay
    if found is None:
        return Beside()
    if found.malformed:
        return Hit(message=f"{found.malformed} of {found.lines} lines are no records", evidence=found.complaints)
    return Clear(note=f"{found.lines} lines{', the file was full' if found.full else ''}")


_LOOKS = "a verify trace, replayed step by step against the reference"
CHECKS = CheckSet(
    name="replayed",
    title="Verify trace",
    checks=(
        Check(
            id="L010",
            title="verification takes what the target did not say",
            meaning="A step accepted or committed tokens that the accept rule does not give, or lost the thread of a request.",
            looks_at=_LOOKS,
            effect="the text is not the target's",
            remedy="Mend the walk at the step that is named; until then run without speculation.",
            severity=Severity.ERROR,
            judge=_of(TOKENS),
        ),
        Check(
            id="L011",
            title="accepted tokens are thrown away",
            meaning="The target agreed with more drafts than were committed, and the request went on.",
            looks_at=_LOOKS,
            effect="none on the text; each such step brings less than it paid for, and throughput falls by as much",
            remedy="Commit all accepted drafts and the bonus: look at the loop that commits, and at the walk's end.",
            severity=Severity.WARNING,
            judge=_of(LOST),
        ),
        Check(
            id="L012",
            title="the trace has drafts at wrong positions",
            meaning="A node's position is not the prefix's length plus its depth.",
            looks_at=_LOOKS,
            effect="the target judges drafts as if they stood elsewhere: the text is not the target's",
            remedy="Give a node the position prefix length + depth, not its index.",
            severity=Severity.ERROR,
            judge=_of((Kind.POSITION,), needs=("positions",)),
        ),
        Check(
            id="L013",
            title="what is verified is not what the knobs say",
            meaning="A step's nodes are no tree, or are more, deeper or wider than budget, block and top-k allow.",
            looks_at=_LOOKS,
            effect="each node costs: steps take longer than the budget allows for",
            remedy="Compare the knobs of the release with those that the engine uses when it drafts.",
            severity=Severity.WARNING,
            judge=_of(SHAPE, needs=("budget", "block", "topk")),
        ),
        Check(
            id="L014",
            title="the engine counts its own steps wrong",
            meaning="Accepted drafts, depth or nodes that it counted are not those of the path that it took.",
            looks_at=_LOOKS,
            effect="none on tokens; figures made of these counts lie",
            remedy="Count the accepted path: depth = drafts = its nodes besides the root.",
            severity=Severity.WARNING,
            judge=_of(COUNTS, needs=("drafts", "depth")),
        ),
        Check(
            id="L015",
            title="the trace cannot be read in whole",
            meaning="Lines that are no records of the format; what follows them is not held against what came before.",
            looks_at="the lines of the trace",
            effect="none; less was checked",
            remedy="Compare the writer with docs/verify-trace.md, or copy the file again.",
            severity=Severity.NOTE,
            judge=_legible,
        ),
    ),
)
