"""What verification costs and whether it pays: by throughput of several modes at one concurrency (bench, calibration, figures)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from specctl.algos.types import Shape
from specctl.doctor import basis, decide
from specctl.doctor.evidence import Evidence, Speed
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity


def _plain(evidence: Evidence, speed: Speed) -> Speed | None:
    """Return plain decoding at the same load."""
    found = [one for one in evidence.speeds if basis.shape_of(one.mode) is Shape.NONE and basis.same_load(one, speed)]
    return found[-1] if found else None


def _drafting(evidence: Evidence) -> list[Speed]:
    return [one for one in evidence.speeds if basis.shape_of(one.mode) is not Shape.NONE]


def _pays(evidence: Evidence) -> Verdict:
    """Hold the present mode's throughput against plain decoding's: a step must commit more than it costs."""
    if basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    pairs = [
        (one, plain) for one in basis.of_mode(evidence, evidence.mode) if (plain := _plain(evidence, one)) is not None
    ]
    if not pairs:
        return Unsure(reason="no throughput of this mode beside one without speculation", decide=decide.BENCH)
    slow = [(one, plain) for one, plain in pairs if one.tokens_s < plain.tokens_s * (1 - basis.SAME_RATIO)]
    if not slow:
        return Clear(note=_cost(*pairs[-1]))
    one, plain = slow[-1]
    return Hit(
        message=f"{one.mode} serves {one.tokens_s:.1f} tok/s{_at(one)} and none {plain.tokens_s:.1f}: "
        f"{(1 - one.tokens_s / plain.tokens_s) * 100:.0f} % are lost by speculating",
        evidence=(_cost(one, plain),),
    )


def _cost(one: Speed, plain: Speed) -> str:
    """Say what a step costs in steps without speculation, which is also what it must commit to pay."""
    mine, base, length = basis.step_s(one), basis.step_s(plain), basis.accepted(one)
    if mine is None or base is None or length is None:
        return f"{one.tokens_s:.1f} tok/s, {plain.tokens_s:.1f} without speculation"
    return (
        f"a step of {basis.checked(one.mode) or '?'} tokens takes {mine * 1000:.1f} ms, {mine / base:.2f} steps without "
        f"speculation, and commits {length:.2f}: it pays from {mine / base:.2f}"
    )


def _at(one: Speed) -> str:
    return "" if one.concurrency is None else f" at concurrency {one.concurrency:g}"


def _narrower(evidence: Evidence) -> Iterator[tuple[Speed, Speed]]:
    """Yield a tree and a narrower mode (chain or smaller tree) at one load, that verifies fewer tokens a step."""
    for one, other in combinations(_drafting(evidence), 2):
        if not basis.same_load(one, other):
            continue
        mine, theirs = basis.checked(one.mode), basis.checked(other.mode)
        if mine is None or theirs is None or mine == theirs:
            continue
        wide, narrow = (one, other) if mine > theirs else (other, one)
        if basis.shape_of(wide.mode) is Shape.TREE:
            yield wide, narrow


def _wide(evidence: Evidence) -> Verdict:
    """Hold a wide tree's gain in accept length against what its nodes cost."""
    pairs = list(_narrower(evidence))
    if not pairs:
        is_tree = basis.shape_of(evidence.mode) is Shape.TREE
        return (
            Unsure(reason="no throughput of two widths at one concurrency", decide=decide.BENCH)
            if is_tree
            else Beside()
        )
    worse = [(wide, narrow) for wide, narrow in pairs if wide.tokens_s < narrow.tokens_s * (1 - basis.SAME_RATIO)]
    worse = [pair for pair in worse if evidence.mode is None or basis.fits(pair[0].mode, evidence.mode)] or worse
    if not worse:
        return Clear(note=_nodes_cost(pairs) or f"{len(pairs)} pairs of widths")
    wide, narrow = min(worse, key=lambda pair: pair[0].tokens_s / pair[1].tokens_s)
    mine = evidence.mode is None or basis.fits(wide.mode, evidence.mode)
    return Hit(
        message=f"verifying {basis.checked(wide.mode)} tokens a step serves {wide.tokens_s:.1f} tok/s{_at(wide)}, "
        f"verifying {basis.checked(narrow.mode)} serves {narrow.tokens_s:.1f}{_gain(wide, narrow)}",
        evidence=tuple(part for part in (f"{wide.mode} against {narrow.mode}", _nodes_cost([(wide, narrow)])) if part),
        severity=Severity.WARNING if mine else Severity.NOTE,
        effect=f"{(1 - wide.tokens_s / narrow.tokens_s) * 100:.0f} % of the narrower mode's tokens/s"
        + ("" if mine else ", where the wide tree runs"),
    )


def _gain(wide: Speed, narrow: Speed) -> str:
    more, less = basis.accepted(wide), basis.accepted(narrow)
    return (
        "" if more is None or less is None else f"; accept {more:.2f} and {less:.2f} ({(more / less - 1) * 100:+.0f} %)"
    )


def _nodes_cost(pairs: Sequence[tuple[Speed, Speed]]) -> str:
    """Return what one node more costs a step, by two widths; empty where step times are not known."""
    for wide, narrow in reversed(pairs):
        long, short = basis.step_s(wide), basis.step_s(narrow)
        many, few = basis.checked(wide.mode), basis.checked(narrow.mode)
        if long is None or short is None or many is None or few is None:
            continue
        each_ms = (long - short) / (many - few) * 1000
        return f"verify steps: {long * 1000:.1f} ms of {many} tokens, {short * 1000:.1f} ms of {few}: {each_ms:.2f} ms a node"
    return ""


CHECKS = CheckSet(
    name="cost",
    title="What verification costs",
    checks=(
        Check(
            id="S001",
            title="speculation costs more than it gains",
            meaning="A verify step takes longer than plain steps for the tokens that it commits would.",
            looks_at="tokens a second of the mode and of none at one concurrency",
            effect="the server would be faster without speculation",
            remedy="Switch to none at this load (specctl switch --algo none), narrow the block, or train the drafter first.",
            severity=Severity.WARNING,
            judge=_pays,
        ),
        Check(
            id="S002",
            title="wide trees cost more than they gain",
            meaning="More nodes accept a little more and take longer to verify: the narrower mode serves more tokens.",
            looks_at="tokens a second and accept length of two widths at one concurrency",
            effect="fewer tokens a second than the narrower mode",
            remedy="Use the narrower mode at this load: specctl calibrate finds where, if anywhere, the tree pays.",
            severity=Severity.WARNING,
            judge=_wide,
        ),
    ),
)
