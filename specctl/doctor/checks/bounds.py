"""What a log line can say at all: nodes against its own budget, drafts against budget and block, rates in 0..1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specctl.algos.types import Shape
from specctl.doctor import basis, decide
from specctl.doctor.basis import ROUNDING
from specctl.doctor.evidence import Evidence, Pair
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity

Say = Callable[[Pair], str | None]


def _windows(evidence: Evidence) -> Sequence[Pair]:
    return () if evidence.log is None else evidence.log.windows


def _over(evidence: Evidence, judged: Sequence[Pair], say: Say, what: str) -> Verdict:
    """Put every line to a question; the newest that fails is the one told."""
    found = [words for words in map(say, judged) if words is not None]
    if not judged:
        return Unsure(reason=f"no {what} was seen", decide=decide.LOG)
    if not found:
        return Clear(note=f"{len(judged)} {what}s")
    text = () if evidence.log is None or evidence.log.text is None else (evidence.log.text,)
    return Hit(message=found[-1], evidence=(f"{len(found)} of {len(judged)} {what}s", *text))


def _is_no_tree(evidence: Evidence, windows: Sequence[Pair]) -> bool:
    shape = basis.shape_of(evidence.mode)
    return shape is not None and shape is not Shape.TREE and all(one.tree is None for one in windows)


def _nodes(evidence: Evidence) -> Verdict:
    """Hold nodes against the budget that the same line names; the root is one more, where the build counts it."""
    windows = _windows(evidence)
    if _is_no_tree(evidence, windows):
        return Beside()
    root = 0 if evidence.counts_root is False else 1
    judged = [one for one in windows if one.tree is not None and None not in (one.tree.nodes, one.tree.tree_budget)]

    def say(one: Pair) -> str | None:
        line = one.tree
        if (
            line is None
            or line.nodes is None
            or line.tree_budget is None
            or line.nodes <= line.tree_budget + root + ROUNDING
        ):
            return None
        return f"{line.nodes:.2f} nodes a step with a budget of {line.tree_budget} and {root} root"

    return _over(evidence, judged, say, "tree line")


def _drafts(evidence: Evidence) -> Verdict:
    """Hold accepted drafts, depth, commit and accept length against the longest path: min(budget, block − 1)."""
    if basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    most = basis.max_drafts(evidence.mode) if evidence.steady else None
    judged = [one for one in _windows(evidence) if _deepest(one, most) is not None]

    def say(one: Pair) -> str | None:
        deepest = _deepest(one, most)
        told = max(_told(one, bonus=evidence.counts_bonus), default=(0.0, ""))
        if deepest is None or told[0] <= deepest + ROUNDING:
            return None
        return f"{told[1]} {told[0]:.2f} with at most {deepest} drafts on a path"

    return _over(evidence, judged, say, "decode line")


def _deepest(one: Pair, most: int | None) -> int | None:
    budget = one.tree.tree_budget if one.tree is not None else None
    known = [limit for limit in (most, budget) if limit is not None]
    return min(known) if known and _told(one, bonus=None) else None


def _told(one: Pair, *, bonus: bool | None) -> list[tuple[float, str]]:
    """Return what a line says of drafts a step, each by its name; a commit only where it is known how it counts the bonus."""
    found: list[tuple[float, str]] = []
    if one.tree is not None:
        found += [
            (value, name) for value, name in ((one.tree.accepted_drafts, "accepted drafts"),) if value is not None
        ]
        if one.tree.commit is not None and bonus is not None:
            found.append((one.tree.commit - (1 if bonus else 0), "commit less its bonus"))
    if one.decode is not None and one.decode.accept_length is not None:
        found.append((one.decode.accept_length - 1, "accept length less its bonus"))
    return found


def _rate(evidence: Evidence) -> Verdict:
    """Hold accept rates against 0..1: a rate over 1 counts the bonus token among the drafts."""
    if basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    told = [(str(one.mode), one.accept_rate) for one in evidence.speeds if one.accept_rate is not None]
    over = [f"{name}: {rate:.2f}" for name, rate in told if rate > 1]
    if over:
        return Hit(message=f"an accept rate of {over[-1]}", evidence=tuple(over))
    judged = [one for one in _windows(evidence) if one.accept_rate is not None]
    if told and not judged:
        return Clear(note=f"{len(told)} figures")

    def say(one: Pair) -> str | None:
        rate = one.accept_rate
        return f"an accept rate of {rate:.2f}" if rate is not None and rate > 1 else None

    return _over(evidence, judged, say, "decode line")


def _pair(evidence: Evidence) -> Verdict:
    """Hold a chain's accept rate against its accept length: rate = (length − 1) ÷ (block − 1) (recordings, surprise 23).

    In place of the block there may be the widest step that the engine allows, and then of all lines.
    """
    if basis.shape_of(evidence.mode) not in (None, Shape.CHAIN):
        return Beside()
    told = [(one.accept_rate, _length(one)) for one in basis.present(evidence)]
    judged = [(rate, length) for rate, length in told if rate is not None and length is not None]
    most = basis.max_drafts(evidence.mode)
    if most is None or not judged:
        return Unsure(reason="the block, or a line with rate and length, is not known", decide=decide.LOG)
    apart = {drafts: [one for one in judged if not _is_share(*one, drafts)] for drafts in basis.proposed(evidence)}
    if not all(apart.values()):
        return Clear(note=f"{len(judged)} decode lines")
    rate, length = apart[most][-1]
    words = f"accept rate {rate:.2f} with an accept length of {length:.2f}: of {most} drafts that is {(length - 1) / most:.2f}"
    return Hit(message=words, evidence=(f"{len(apart[most])} of {len(judged)} decode lines",))


def _is_share(rate: float, length: float, drafts: int) -> bool:
    """Claim that a rate is the accepted drafts of so many, but for how the two are rounded."""
    return abs((length - 1) / drafts - rate) <= ROUNDING * (1 + 1 / drafts)


def _length(one: Pair) -> float | None:
    return None if one.decode is None else one.decode.accept_length


CHECKS = CheckSet(
    name="bounds",
    title="What a line can say at all",
    checks=(
        Check(
            id="M016",
            title="the tree is larger than its own line's budget",
            meaning="Nodes are at most the budget and one root; the budget is not kept, or nodes are counted otherwise.",
            looks_at="nodes and budget of each tree line",
            effect="verification costs more than the budget says",
            remedy="Correct counts_root in the profile if the build counts otherwise; else the budget is not kept: report it.",
            severity=Severity.WARNING,
            judge=_nodes,
        ),
        Check(
            id="M017",
            title="more drafts are accepted than a path can hold",
            meaning="No path is longer than min(budget, block − 1): the figure counts nodes, or another step's block.",
            looks_at="drafts and commit of each tree line, accept length of each decode line, budget and block",
            effect="none on tokens; the figure is wrong",
            remedy="Do not compare this figure; take tokens over verify steps (specctl doctor --live).",
            severity=Severity.WARNING,
            judge=_drafts,
        ),
        Check(
            id="M018",
            title="an accept rate is over 1",
            meaning="A rate is accepted over drafted: over 1 it counts the bonus token, or another step's drafts.",
            looks_at="accept rate of decode lines and of figures",
            effect="none on tokens; the figure is wrong",
            remedy="Use the accept length; never compare rates of chain and tree.",
            severity=Severity.WARNING,
            judge=_rate,
        ),
        Check(
            id="M019",
            title="accept rate and accept length of one line disagree",
            meaning="In a chain the rate is (length − 1) ÷ (block − 1), or ÷ the most drafts that the engine allows a step.",
            looks_at="accept rate and accept length of each decode line of a chain, and the block",
            effect="none on tokens; another block runs, or one of the figures is wrong",
            remedy="Compare the block size in /server_info with the release's; trust tokens over verify steps.",
            severity=Severity.WARNING,
            judge=_pair,
        ),
    ),
)
