"""Whether the engine's tokens are its target's, and what is broken where they are not: by the probe of `--live`."""

from __future__ import annotations

from collections.abc import Callable

from specctl.algos.types import Shape
from specctl.doctor import basis, lossless, lossless_drafts
from specctl.doctor.evidence import Evidence
from specctl.doctor.lossless_types import Break, Cell, History, Lossless, Place, Probe
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Confidence, Hit, Judge, Unsure, Verdict
from specctl.lint.types import Severity

MEND = "mend the wrong tokens first, then specctl doctor --host H --live"
PROBE = "specctl doctor --host H --live"
TRACE = "a verify trace of the engine (docs/verify-trace.md), and specctl doctor --host H --live"
LEAST_CHECKED = 64
"""Tokens held against the target without which nothing wrong among them says little."""
WRONG_TOKENS = "the text is not the target's: users get other answers than without speculation"


def _probed(evidence: Evidence) -> Probe | Unsure:
    """Return the probe, or what there is instead."""
    if evidence.probe is None:
        return Unsure(reason="no answers were held against the target's own tokens", decide=PROBE)
    if evidence.probe.silent is not None:
        return Unsure(reason=evidence.probe.silent, decide="an engine whose answers tell token ids")
    return evidence.probe


def _where(judged: Lossless) -> tuple[str, ...]:
    """Return the evidence of a judgement, one line each."""
    lines = [str(cell) for cell in judged.cells if cell.wrong]
    first = judged.first
    if first is not None:
        node = "" if first.node is None else f", node {first.node}"
        lines.append(
            f"first: request {first.rid}, step {first.step}{node}: {first.said} where the target says {judged.wanted} "
            f"(after {len(first.context)} tokens)"
        )
    return tuple(lines)


def _equal(evidence: Evidence) -> Verdict:
    """Judge whether tokens are the target's; where they are not and the cause is named, that check speaks."""
    probe = _probed(evidence)
    if isinstance(probe, Unsure):
        return probe
    judged = lossless.judge(probe)
    ties = f", {judged.ties} near-ties aside" if judged.ties else ""
    if judged.named is not None and judged.named is not Break.TARGET:
        return Beside()
    if judged.named is Break.TARGET:
        title = "the engine's own tokens are not its target's"
        return Hit(title=title, message=f"of tokens put to the target {judged.why}", evidence=_where(judged))
    if judged.candidates:
        return Hit(
            message=f"{judged.wrong} of {judged.checked} tokens are not what the target says{ties}",
            evidence=(
                *_where(judged),
                f"left open: {judged.why}",
                *(f"may be: {each.value}" for each in judged.candidates),
            ),
            remedy=f"Record a verify trace, which names the cause ({TRACE}); until then run without speculation.",
        )
    if judged.checked < LEAST_CHECKED:
        return Unsure(reason=f"only {judged.checked} tokens could be held against the target", decide=PROBE)
    noise = f"; {judged.wrong} differ, as near-ties do" if judged.wrong else ""
    return Clear(note=f"{judged.checked} tokens are what the target says{ties}{noise}")


def _named(named: Break, *, shapes: frozenset[Shape], shows: Callable[[Cell], bool]) -> Judge:
    """Return the check of one cause: a hit where it is named, open where another one hides it.

    `shows` tells the cells in which it would show first.
    """

    def judge(evidence: Evidence) -> Verdict:
        probe = evidence.probe
        if basis.shape_of(evidence.mode) not in shapes or probe is None or not probe.traced:
            return Beside() if probe is None or not probe.picks else _untraced(probe, named)
        judged = lossless.judge(probe)
        if judged.named is named:
            return Hit(message=f"of tokens put to the target {judged.why}", evidence=_where(judged))
        if judged.named is not None or judged.candidates:
            return Unsure(reason="other tokens are wrong before this could be seen", decide=MEND)
        checked = sum(cell.checked for cell in judged.cells if shows(cell))
        if not checked:
            return Unsure(reason="no step of the probe came to where this would show", decide="a wider tree, or again")
        return Clear(note=f"{checked} tokens where this would show are what the target says")

    return judge


def _untraced(probe: Probe, named: Break) -> Verdict:
    """Judge without a trace: positions of a chain can be named, the rest is told by the first check."""
    judged = lossless.judge(probe)
    return (
        Hit(message=f"of tokens put to the target {judged.why}", evidence=_where(judged))
        if judged.named is named
        else Beside()
    )


def _features(evidence: Evidence) -> Verdict:
    """Judge whether a running request's drafts are those of a fresh one with the same text."""
    probe = evidence.probe
    if probe is None or basis.shape_of(evidence.mode) is not Shape.TREE:
        return Beside()
    judged = lossless.judge(probe)
    if judged.named is not None or judged.candidates:
        return Unsure(reason="wrong tokens make wrong drafts", decide=MEND)
    drafts = lossless_drafts.judge(probe.drafts)
    if drafts.wrong_features is None:
        return Unsure(
            reason=drafts.why, decide=TRACE if not probe.traced else "a wider tree, whose paths are moved more often"
        )
    if not drafts.wrong_features:
        return Clear(note=drafts.why)
    loss = () if drafts.loss is None else (f"such steps accept {drafts.loss:.2f} drafts less than fresh requests do",)
    return Hit(message=drafts.why, evidence=loss, confidence=Confidence.CERTAIN if probe.traced else Confidence.LIKELY)


def _counted(evidence: Evidence) -> Verdict:
    """Hold the drafts that answers count as right against the tokens that came of them."""
    probe = evidence.probe
    if probe is None or basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    if probe.max_drafts is None:
        return Unsure(reason="how much a step can accept is not known", decide="state the knobs in the inventory")
    lost = lossless_drafts.thrown_away(probe.answered, probe.max_drafts)
    if lost is None:
        return Unsure(reason="answers do not tell how many drafts were right", decide=TRACE)
    due = (lost.verify_calls + lost.correct) / lost.verify_calls if lost.verify_calls else 0.0
    got = lost.tokens / lost.verify_calls if lost.verify_calls else 0.0
    if not lost.lost:
        return Clear(note=f"{lost.requests} answers: {got:.2f} tokens a verify step, {due:.2f} by their right drafts")
    return Hit(
        message=f"{due:.2f} tokens a verify step by the drafts that answers count as right, {got:.2f} came",
        evidence=(
            f"{lost.requests} answers: {lost.verify_calls} verify calls, {lost.correct} right drafts, {lost.tokens} tokens",
            f"{lost.lost} tokens more are missing than their last steps can have cut off",
        ),
        confidence=Confidence.CERTAIN if _confirmed(evidence) else Confidence.LIKELY,
    )


def _confirmed(evidence: Evidence) -> bool:
    return evidence.replay is not None and evidence.replay.diverged > 0


def _ends(evidence: Evidence) -> Verdict:
    """Hold the lengths of answers against what was asked for."""
    probe = evidence.probe
    if probe is None:
        return Beside()
    early = lossless_drafts.ended_early(probe.answered)
    if not early:
        return Clear(note=f"{len(probe.answered)} answers have the length that was asked for")
    first = early[0]
    return Hit(
        message=f"{len(early)} of {len(probe.answered)} answers ended before their limit and say that they reached it",
        evidence=(f"request {first.rid}: {first.tokens} of {first.asked} tokens, finish_reason {first.finish}",),
    )


DRAFTING = frozenset({Shape.CHAIN, Shape.TREE})
TREES = frozenset({Shape.TREE})


def _cause(check_id: str, title: str, meaning: str, remedy: str, judge: Judge) -> Check:
    return Check(
        id=check_id,
        title=title,
        meaning=meaning,
        looks_at="the target's tokens after the same texts, by plain prefills, at nodes of a verify trace",
        effect=WRONG_TOKENS,
        remedy=f"{remedy} Until it is mended run without speculation: specctl switch --host H --algo none.",
        severity=Severity.ERROR,
        judge=judge,
    )


CHECKS = CheckSet(
    name="lossless",
    title="Losslessness",
    checks=(
        Check(
            id="L001",
            title="greedy output is not what the target says",
            meaning="Speculation must not change the text; here it does, or the target itself answers differently.",
            looks_at="greedy answers, and the target's tokens after the same texts by plain prefills",
            effect=WRONG_TOKENS,
            remedy="Compare attention backend, dtype and kernels of verify and prefill; until then run without speculation.",
            severity=Severity.ERROR,
            judge=_equal,
        ),
        _cause(
            "L002",
            "the tree's mask is wrong",
            "Nodes see nodes that are no ancestors of theirs: the target judges a draft after text that is not its own.",
            "Let a node see its row's prefix, its ancestors and itself, and nothing else.",
            _named(Break.MASK, shapes=TREES, shows=lambda cell: cell.place is Place.BRANCH),
        ),
        _cause(
            "L003",
            "drafts are verified at wrong positions",
            "The target judges drafts as if they stood elsewhere in the text.",
            "Give a node the position prefix length + depth, not its index.",
            _named(Break.POSITION, shapes=DRAFTING, shows=lambda cell: cell.place is Place.CHAIN),
        ),
        _cause(
            "L004",
            "the accepted path's KV cache is not moved",
            "Keys and values of drafts that were not accepted stay where those of the accepted path belong.",
            "Move keys and values of the accepted path behind the prefix before the next step.",
            _named(Break.KV, shapes=TREES, shows=lambda cell: cell.history is History.MOVED),
        ),
        Check(
            id="L005",
            title="the drafter is fed wrong features",
            meaning="After a path that had to be moved, running requests are drafted otherwise than fresh ones with the same text.",
            looks_at="drafts (or accepted drafts) of running requests beside those of fresh requests with the same text",
            effect="none on tokens; fewer drafts are accepted, so that each verify step brings less",
            remedy="Gather the target's hidden states along the accepted path before the drafter reads them.",
            severity=Severity.WARNING,
            judge=_features,
        ),
        Check(
            id="L006",
            title="accepted drafts do not become tokens",
            meaning="Answers count more right drafts than tokens came of them: they are thrown away, or the count is wrong.",
            looks_at="spec_num_correct_drafts, spec_verify_ct and completion_tokens of whole answers",
            effect="verify steps bring less than was accepted, and throughput falls by as much",
            remedy="Record a verify trace and replay it (specctl doctor --trace FILE): it names the step.",
            severity=Severity.WARNING,
            judge=_counted,
        ),
        Check(
            id="L007",
            title="answers end early",
            meaning="Requests end before their limit though they say that they reached it, with end tokens ignored.",
            looks_at="completion_tokens and finish_reason of the probe's answers",
            effect="answers are cut short; averages over their last steps look like lost tokens and are none",
            remedy="Look at the check that ends requests inside a committed block, and at the token limit that it uses.",
            severity=Severity.ERROR,
            judge=_ends,
        ),
    ),
)
