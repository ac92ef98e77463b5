"""Checks of lengths: what a step accepted and committed, against what its mode can, and against each other.

Conventions of design.md §7: nodes include the root, a path holds one node a depth, so accepted depth is accepted drafts; a commit
is the accepted drafts and one bonus token, unless the request ended inside the block.
"""

from __future__ import annotations

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.audit_types import AuditInput, Finding, Unknown, Verdict
from specctl.control.sample.engine import TreeLine

LEAST_STEPS = 64
"""Verify steps of single requests without which a length is no figure (the smoke's own count, docs/gate.md)."""
ROUNDING = 0.006
"""Lines print two decimals."""
SLACK = 0.02
"""Sums of tokens and of steps are read a step apart at most: 2 % over LEAST_STEPS."""
APART = 0.25
"""Two accept lengths of different minutes differ by task; by more than a quarter is a contradiction."""


def longest(given: AuditInput) -> Verdict:
    """Hold the accept length against 1 + min(budget, block − 1), the most that a step can commit."""
    most = given.max_drafts
    if most is None:
        return Unknown(reason="the mode, or a knob that bounds its drafts, is not known")
    told = _lengths(given)
    if not told:
        return Unknown(reason="no accept length was told")
    for name, length, slack in told:
        if length > (1 + most) * (1 + slack) + ROUNDING:
            return Finding(
                id="M001",
                title="more is accepted than the mode can draft",
                reason=f"{name} is {length:.2f}, and {given.mode} commits at most {1 + most} tokens a step",
            )
    return None


def _lengths(given: AuditInput) -> list[tuple[str, float, float]]:
    """Return each accept length of the present mode that is told: its name, its value, its slack."""
    found: list[tuple[str, float, float]] = []
    steps = _of_steps(given)
    if steps is not None:
        found.append(("accept length over decode steps", steps, SLACK))
    if given.settled is None:
        return found
    if given.lines is not None and given.lines.last_decode is not None and given.lines.last_decode.accept_length:
        found.append(("accept len of the last decode line", given.lines.last_decode.accept_length, 0.0))
    if given.counters is not None and given.counters.accept_length is not None:
        found.append(("spec_accept_length", given.counters.accept_length, 0.0))
    return found


def _of_steps(given: AuditInput) -> float | None:
    steady = given.steady
    sums = None if steady is None else steady.decoded
    return None if sums is None or sums.requests < LEAST_STEPS else sums.accept_length


def shortest(given: AuditInput) -> Verdict:
    """Hold the accept length against 1: each verify step commits a token at least, and plain decoding exactly one."""
    length = _of_steps(given)
    if length is None:
        return Unknown(reason=f"fewer than {LEAST_STEPS} decode steps were counted in this mode")
    if length < 1 - SLACK:
        return Finding(
            id="M002",
            title="steps commit less than a token",
            reason=f"{length:.2f} tokens a step of a request, where each commits one at least",
        )
    return None


def _tree(given: AuditInput) -> TreeLine | None:
    """Return the newest tree line, where a tree still prints them."""
    lines = given.lines
    return lines.last_tree if lines is not None and lines.last_is_tree else None


def depth(given: AuditInput) -> Verdict:
    """Hold a tree line's accepted depth against its accepted drafts: on a path they are the same number."""
    line = _tree(given)
    if line is None or line.depth is None or (line.accepted_drafts is None and line.commit is None):
        return Unknown(reason="no tree line tells a depth beside drafts or a commit")
    most = line.accepted_drafts if line.accepted_drafts is not None else line.commit
    if most is not None and line.depth > most + 2 * ROUNDING:
        return Finding(
            id="M003",
            title="the depth metric lies",
            reason=f"accepted depth {line.depth:.2f} with {most:.2f} drafts; on any path depth = drafts",
            blocks=False,
        )
    return None


def commit_of_drafts(given: AuditInput) -> Verdict:
    """Hold a tree line's commit against its accepted drafts: the bonus token more, a little less where requests ended."""
    line = _tree(given)
    if line is None or line.accepted_drafts is None or line.commit is None or given.counts_bonus is None:
        return Unknown(reason="no tree line tells drafts and a commit, or how the build counts the bonus token")
    due = line.accepted_drafts + (1 if given.counts_bonus else 0)
    if due * (1 - APART) <= line.commit <= due + 2 * ROUNDING:
        return None
    return Finding(
        id="M004",
        title="commit and drafts of the tree line disagree",
        reason=f"{line.accepted_drafts:.2f} accepted drafts make a commit of {due:.2f}, and it says {line.commit:.2f}",
        blocks=False,
    )


def commit_of_steps(given: AuditInput) -> Verdict:
    """Hold a tree line's commit against the tokens that its steps committed by the engine's own sums."""
    line, length = _tree(given), _of_steps(given)
    if line is None or line.commit is None or length is None or given.counts_bonus is None or given.settled is None:
        return Unknown(reason="no tree line with a commit, or too few decode steps were counted")
    said = line.commit + (0 if given.counts_bonus else 1)
    if abs(said - length) <= APART * length:
        return None
    return Finding(
        id="M005",
        title="the tree line's commit is not what is committed",
        reason=f"it says {said:.2f} tokens a step, the sums over decode steps {length:.2f}",
        blocks=False,
    )


def nodes(given: AuditInput) -> Verdict:
    """Hold a tree line's nodes against the budget, the root counted as the build counts it."""
    line = _tree(given)
    if given.mode is None:
        return Unknown(reason="the mode is not known")
    if ALGOS[given.mode.algo].shape is not Shape.TREE:
        return None
    budget = dict(given.mode.knobs).get("tree_budget")
    if line is None or line.nodes is None or budget is None or given.counts_root is None or given.settled is None:
        return Unknown(reason="no tree line tells nodes, or the budget or how the root is counted is not known")
    most = budget + (1 if given.counts_root else 0)
    if line.nodes <= most + ROUNDING:
        return None
    return Finding(
        id="M015",
        title="the tree is larger than its budget",
        reason=f"{line.nodes:.2f} nodes a step, and the budget allows {most}",
        blocks=False,
    )
