"""Figures that must agree or must not be compared: two lines of one window, mixed batch sizes, rates of chain and tree, twins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from specctl.algos.types import Shape
from specctl.control.audit_claims import MOST_PLAIN
from specctl.control.audit_types import straight
from specctl.control.mode import Mode
from specctl.doctor import basis, decide
from specctl.doctor.basis import ROUNDING
from specctl.doctor.evidence import Evidence, Pair, Speed
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity

APART_RATIO = 0.15
"""Accept lengths of two batch sizes that differ by more mask each other in one mean; no source, a choice."""
LEAST_LINES = 5
LEAST_TOKENS = 64
"""Of our own requests, without which the count of verify calls says nothing."""


def _windows(evidence: Evidence) -> Sequence[Pair]:
    return () if evidence.log is None else evidence.log.windows


def _two_lines(evidence: Evidence) -> Verdict:
    """Hold a tree line's drafts and bonus against the accept length of the decode line before it: one window, the same steps.

    Where a build counts the two from different steps on, hardly any two lines agree, and the means of all of them do.
    """
    judged = [both for one in _windows(evidence) if (both := _both(one)) is not None]
    if not judged:
        is_tree = basis.shape_of(evidence.mode) in (None, Shape.TREE)
        return Unsure(reason="no tree line follows a decode line", decide=decide.LOG) if is_tree else Beside()
    apart = [one for one in judged if abs(one[0] + 1 - one[1]) > 2 * ROUNDING]
    if 2 * len(apart) < len(judged) or not apart:
        return Clear(note=f"{len(judged)} windows" if not apart else f"{len(apart)} of {len(judged)} windows differ")
    drafts, length = apart[-1]
    words = f"accept len {length:.2f}, and {drafts:.2f} accepted drafts with the bonus are {drafts + 1:.2f}"
    share = f"{len(apart)} of {len(judged)} windows"
    mine, theirs = (sum(column) / len(judged) for column in zip(*judged, strict=True))
    edges = min(2 / len(judged), 1.0) * basis.EDGE_RATIO
    if abs(mine + 1 - theirs) > theirs * (basis.NOISE_RATIO + edges):
        return Hit(message=words, evidence=(share,))
    means = f"means over all of them are {theirs:.2f} and {mine + 1:.2f}"
    if len(judged) < LEAST_LINES:
        return Unsure(reason=f"{words}: their windows may not begin together", decide=decide.LOAD, partly=True)
    return Clear(note=f"{share} differ, whose lines do not begin together; {means}")


def _both(one: Pair) -> tuple[float, float] | None:
    """Return accepted drafts by the tree's line and the accept length by the decode line; None where one is not told."""
    drafts = None if one.tree is None else one.tree.accepted_drafts
    length = None if one.decode is None else one.decode.accept_length
    return None if drafts is None or length is None else (drafts, length)


def _mixed(evidence: Evidence) -> Verdict:
    """Find figures of one algo at two concurrencies set beside each other; a log of mixed batches is worth a note."""
    if basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    of_speeds = _mixed_speeds(evidence.speeds)
    if of_speeds is not None:
        return of_speeds
    by_batch: dict[int, list[float]] = defaultdict(list)
    for one in _windows(evidence):
        if one.decode is not None and one.decode.running and one.decode.accept_length is not None:
            by_batch[one.decode.running].append(one.decode.accept_length)
    means = {batch: sum(found) / len(found) for batch, found in by_batch.items() if len(found) >= LEAST_LINES}
    if not means:
        return Unsure(
            reason=f"fewer than {LEAST_LINES} decode lines with an accept length at any batch size", decide=decide.LOG
        )
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    if means[high] <= means[low] * (1 + APART_RATIO):
        return Clear(note=f"{len(means)} batch sizes")
    # A server whose load changes is no fault of it: the note warns whoever would average.
    apart = f"{means[low]:.2f} at batch {low}, {means[high]:.2f} at batch {high}"
    return Clear(note=f"accept length is {apart}: one mean over both says neither")


def _mixed_speeds(speeds: Sequence[Speed]) -> Hit | None:
    """Return a hit for two figures of one algo at two concurrencies whose accept lengths are far apart."""
    told = [one for one in speeds if one.accept_length is not None and one.concurrency is not None]
    for one in told:
        for other in told:
            if one.mode.algo != other.mode.algo or basis.same_load(one, other):
                continue
            if (one.accept_length or 0) > (other.accept_length or 0) * (1 + APART_RATIO):
                low, high = _figure(other), _figure(one)
                return Hit(
                    message=f"{one.mode.algo} accepts {high} and {low}: figures of two concurrencies are two figures",
                    evidence=(high, low),
                )
    return None


def _figure(speed: Speed) -> str:
    return f"{speed.accept_length:.2f} at concurrency {speed.concurrency:g}"


def _rates(evidence: Evidence) -> Verdict:
    """Find accept rates of modes that verify different numbers of tokens beside each other."""
    told = [one for one in evidence.speeds if one.accept_rate is not None]
    shapes = {basis.shape_of(one.mode) for one in told}
    if not {Shape.CHAIN, Shape.TREE} <= shapes:
        return Clear(note=f"{len(told)} rates, no chain's beside a tree's") if told else Beside()
    words = tuple(f"{one.mode}: rate {one.accept_rate:.2f} of {_drafted(one.mode)} drafts" for one in told)
    return Hit(
        message="a chain's accept rate is per draft and a tree's per node: the two are no comparison", evidence=words
    )


def _drafted(mode: Mode) -> str:
    tokens = basis.checked(mode)
    return "unknown" if tokens is None else str(tokens - 1)


def _is_chain(mode: Mode) -> bool:
    """Claim that a tree is one chain: one alternative a depth, and nodes for every depth."""
    knobs = dict(mode.knobs)
    budget, block = knobs.get("tree_budget"), knobs.get("block_size")
    return knobs.get("topk_cap") == 1 and budget is not None and (block is None or budget >= block - 1)


def _twins(evidence: Evidence) -> Verdict:
    """Hold a tree of one chain against the chain itself: mask and inputs are the same, and so must the lengths be."""
    trees = [one for one in evidence.speeds if basis.shape_of(one.mode) is Shape.TREE and _is_chain(one.mode)]
    chains = [one for one in evidence.speeds if basis.shape_of(one.mode) is Shape.CHAIN]
    pairs = [
        (tree, chain)
        for tree in trees
        for chain in chains
        if basis.same_load(tree, chain) and _same_drafts(tree, chain)
    ]
    if not pairs:
        return Beside()
    tree, chain = pairs[-1]
    mine, theirs = _counted(tree), _counted(chain)
    if mine is None or theirs is None:
        return _by_throughput(tree, chain)
    if abs(mine - theirs) <= 2 * basis.NOISE_RATIO * theirs:
        return Clear(note=f"{mine:.2f} and {theirs:.2f} tokens a verify step")
    return Hit(
        message=f"a tree of one chain commits {mine:.2f} tokens a verify step and the chain {theirs:.2f}, on the same drafts",
        evidence=(f"{tree.mode}", f"{chain.mode}"),
    )


def _same_drafts(tree: Speed, chain: Speed) -> bool:
    mine, theirs = basis.max_drafts(tree.mode), basis.max_drafts(chain.mode)
    return mine is not None and mine == theirs


def _counted(speed: Speed) -> float | None:
    if speed.steps_s is not None and speed.steps_s > 0:
        return basis.per_request(speed) / speed.steps_s
    return speed.tokens_per_step


def _by_throughput(tree: Speed, chain: Speed) -> Verdict:
    """Equal throughput of twins says that they commit the same, if their steps take the same time."""
    apart = tree.tokens_s / chain.tokens_s - 1
    words = f"{tree.tokens_s:.1f} and {chain.tokens_s:.1f} tok/s ({apart * 100:+.1f} %)"
    if abs(apart) <= basis.SAME_RATIO:
        return Clear(note=f"a tree of one chain and the chain are as fast: {words}")
    return Unsure(
        reason=f"a tree of one chain and the chain differ: {words}; whether in steps or in tokens a step is not known",
        decide="count verify steps of both: specctl ab --host H --a dflash --b ddtree:topk_cap=1",
        partly=True,
    )


def _own_load(evidence: Evidence) -> Verdict:
    """Hold what our own requests showed against the algo: verify calls of speculation, and the lines that only a tree prints."""
    shape, served = basis.shape_of(evidence.mode), evidence.served
    decoded = sum(one.tokens - 1 for one in served)
    if shape is None or decoded < LEAST_TOKENS:
        return Unsure(reason="no load of our own was served in a known mode", decide=decide.LIVE)
    calls = sum(one.verify_calls or 0 for one in served)
    windows = () if evidence.served_log is None else evidence.served_log.windows
    lines = sum(one.decode is not None for one in windows)
    trees = sum(one.tree is not None for one in windows)
    told = f"{decoded} tokens of {len(served)} requests, {calls} verify calls, {lines} decode lines, {trees} tree lines"
    words = _by_calls(shape, decoded, calls) or _by_lines(evidence, lines, trees)
    if words is None:
        return Clear(note=told)
    return Hit(message=f"it claims {evidence.mode}, and {words}", evidence=(told,))


def _by_calls(shape: Shape, decoded: int, calls: int) -> str | None:
    """Say what speaks against an algo in tokens and verify calls: plain decoding has none, or one a token (roots alone)."""
    if shape is not Shape.NONE:
        return None if calls else "its answers count no verify calls"
    return (
        f"its answers have {decoded} tokens of {calls} verify calls" if decoded > calls * MOST_PLAIN and calls else None
    )


def _by_lines(evidence: Evidence, lines: int, trees: int) -> str | None:
    """Say what speaks against a mode in a tree's lines, or in that there are none: without branches a chain's may be printed."""
    mode = evidence.mode
    is_tree = basis.shape_of(mode) is Shape.TREE
    if trees and not is_tree:
        return f"it printed {trees} lines that only a tree prints"
    due = is_tree and mode is not None and not straight(mode) and evidence.has_tree_line and lines >= LEAST_LINES
    return f"it printed {lines} decode lines and no tree's" if due and not trees else None


CHECKS = CheckSet(
    name="agreement",
    title="What must agree, and what must not be compared",
    checks=(
        Check(
            id="M020",
            title="tree line and decode line of one window disagree",
            meaning="The accept length is the accepted drafts and one bonus token; where windows begin apart, in the mean.",
            looks_at="each tree line beside the decode line before it",
            effect="none on tokens; one of the two figures is wrong",
            remedy="See M021 for which of them requests agree with.",
            severity=Severity.WARNING,
            judge=_two_lines,
        ),
        Check(
            id="M023",
            title="one mean stands for mixed batch sizes",
            meaning="Accept lengths of different batch sizes or concurrencies are of different requests: one mean hides both.",
            looks_at="decode lines by batch size; figures by concurrency",
            effect="none on tokens; comparisons made with the mean are wrong",
            remedy="Compare at equal concurrency only (specctl bench, specctl ab).",
            severity=Severity.NOTE,
            judge=_mixed,
        ),
        Check(
            id="M024",
            title="accept rates of chain and tree are compared",
            meaning="A rate is per draft in a chain and per node in a tree, so it falls as the budget grows.",
            looks_at="accept rates of figures by mode",
            effect="none on tokens; the comparison is wrong",
            remedy="Compare accept lengths, and tokens a second.",
            severity=Severity.NOTE,
            judge=_rates,
        ),
        Check(
            id="M025",
            title="a tree of one chain is not the chain",
            meaning="With one alternative a depth the mask is causal and all inputs are the same: lengths must be equal.",
            looks_at="counted tokens a step of a chain and of a tree with topk_cap 1 at one concurrency",
            effect="tokens are lost with each step of the tree, or it drafts from other inputs",
            remedy="Replay a verify trace of the tree (specctl doctor --trace FILE): mask, positions or the commit loop differ.",
            severity=Severity.ERROR,
            judge=_twins,
        ),
        Check(
            id="M028",
            title="our own load shows another algo than is claimed",
            meaning="Speculation counts verify calls, plain decoding none or one a token, and only branches print a tree's lines.",
            looks_at="verify calls of our own requests, and the log lines that came meanwhile",
            effect="tokens come as fast as the algo that really runs",
            remedy="Prove what runs (specctl health --host H) and deploy again; an engine that falls back says so at its start.",
            severity=Severity.ERROR,
            judge=_own_load,
        ),
    ),
)
