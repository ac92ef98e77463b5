"""Checks of claims: what an engine says that it runs, against what only that algo shows while it decodes."""

from __future__ import annotations

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.audit_types import AuditInput, Finding, Unknown, Verdict, straight

LEAST_LINES = 3
"""Decode lines without which nothing follows from what did not come between them."""
LEAST_TOKENS = 256.0
MOST_PLAIN = 1.02
"""Tokens a step of plain decoding: one, and what two counts read a moment apart differ by."""


def _shape(given: AuditInput) -> Shape | None:
    return None if given.mode is None else ALGOS[given.mode.algo].shape


def tree_lines(given: AuditInput) -> Verdict:
    """Hold the algo against the lines that only a tree prints; one without branches may print what a chain prints."""
    shape, lines = _shape(given), given.lines
    if shape is None or lines is None or lines.last_is_tree is None or given.settled is None:
        return Unknown(reason="the mode is not known or new, or no decode line was seen")
    if shape is not Shape.TREE and lines.last_is_tree:
        reason = f"it claims {given.mode}, and its log has lines that only a tree prints"
        return Finding(id="M011", title="another algo decodes than is claimed", reason=reason)
    branches = shape is Shape.TREE and given.mode is not None and not straight(given.mode)
    if branches and given.has_tree_line and lines.since_tree >= LEAST_LINES:
        reason = f"it claims {given.mode}, and its last {lines.since_tree} decode lines came without a tree's"
        return Finding(id="M011", title="another algo decodes than is claimed", reason=reason)
    return None


def verifies(given: AuditInput) -> Verdict:
    """Hold the algo against the accept length: plain decoding commits one a step, be it by verify passes of roots alone."""
    shape, settled = _shape(given), given.settled
    sums = None if settled is None else settled.decoded
    if shape is None or sums is None or sums.tokens < LEAST_TOKENS:
        return Unknown(reason=f"fewer than {LEAST_TOKENS:.0f} tokens were decoded in this mode")
    length = sums.accept_length
    if shape is Shape.NONE and length is not None and length > MOST_PLAIN:
        reason = f"it claims {given.mode}, and a step commits {length:.2f} tokens"
        return Finding(id="M012", title="another algo decodes than is claimed", reason=reason)
    lines = given.lines
    drafted = None if lines is None or lines.last_decode is None else lines.last_decode.accept_length
    if shape is not Shape.NONE and length is not None and length <= 1.0 and lines is not None and drafted is None:
        reason = f"it claims {given.mode}, each step commits one token, and its decode lines tell no accept length"
        return Finding(id="M012", title="another algo decodes than is claimed", reason=reason)
    return None


def budget(given: AuditInput) -> Verdict:
    """Hold the budget of a tree's line against the mode's."""
    if _shape(given) is not Shape.TREE:
        return None if given.mode is not None else Unknown(reason="the mode is not known")
    wanted = dict(given.mode.knobs).get("tree_budget") if given.mode is not None else None
    line = given.lines.last_tree if given.lines is not None and given.lines.last_is_tree else None
    if wanted is None or line is None or line.tree_budget is None or given.settled is None:
        return Unknown(reason="no tree line tells a budget, or the mode has none")
    if wanted == line.tree_budget:
        return None
    return Finding(
        id="M013",
        title="another budget is used than is claimed",
        reason=f"the tree line says {line.tree_budget}, the mode {wanted}",
    )


def draft_tokens(given: AuditInput) -> Verdict:
    """Hold the engine's draft tokens (root or anchor included where the build counts it) against the mode's.

    Plain decoding has none; where it is made of verify passes too, each has its root.
    """
    told = None if given.counters is None else given.counters.draft_tokens
    checked = given.checked
    if told is None or checked is None or given.counts_root is None or given.settled is None:
        return Unknown(reason="draft tokens, the mode's knobs, or how the build counts a root are not known")
    due = checked - (0 if given.counts_root else 1)
    plain = _shape(given) is Shape.NONE
    if told == due or (plain and told == 0):
        return None
    has = "drafts nothing" if plain else f"has {due}"
    return Finding(
        id="M014",
        title="draft tokens are not the mode's",
        reason=f"the engine says {told:.0f}, {given.mode} {has}",
    )
