"""What the doctor says to people of each of the audit's ids: meaning, evidence, effect, remedy, and what would decide it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specctl.doctor import decide
from specctl.lint.types import Severity

NO_TOKENS = "none on tokens; decisions taken from the figure are wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words for one id."""

    title: str
    meaning: str
    looks_at: str
    remedy: str
    decide: str
    effect: str = NO_TOKENS
    severity: Severity = Severity.WARNING


WORDS: Mapping[str, Words] = {
    "M001": Words(
        title="more is accepted than the mode can draft",
        meaning="A step commits at most 1 + min(budget, block − 1) tokens; the figure counts something else, or other knobs run.",
        looks_at="accept length of steps, decode lines and gauges; the knobs",
        remedy="Compare the knobs in /server_info with the release's; see whether the build counts the anchor.",
        decide=decide.LOAD,
    ),
    "M002": Words(
        title="steps commit less than a token",
        meaning="Each verify step of a request commits one token at least: the sums over steps are counted wrong.",
        looks_at="sums over decode steps (/v1/loads)",
        remedy="Count from requests (--live) and report the engine's counters.",
        decide=decide.LOAD,
    ),
    "M003": Words(
        title="the depth metric lies",
        meaning="A path holds one node a depth, so accepted depth is accepted drafts; a larger one is of another node of the tree.",
        looks_at="each tree line's depth beside its drafts",
        remedy="Ignore the accepted depth of this build, or take the accepted node's depth in place of the tree's deepest.",
        decide=decide.LOG,
    ),
    "M004": Words(
        title="commit and drafts of the tree line disagree",
        meaning="A step commits its accepted drafts and one bonus token, unless the request ends in it.",
        looks_at="each tree line's commit beside its drafts",
        remedy="Count the bonus in the commit, or say counts_bonus: false in the profile; where tokens are cut, mend the loop.",
        decide=decide.LOG,
        effect="not decided by the line alone; M021 and M026 say",
    ),
    "M005": Words(
        title="the tree line's commit is not what is committed",
        meaning="The line's commit and the sums over decode steps count the same steps and must agree.",
        looks_at="the mean of all tree lines beside /v1/loads' sums over steps",
        remedy="Trust tokens over verify steps; report the line's commit as wrong.",
        decide=decide.LOAD,
    ),
    "M006": Words(
        title="steps committed more tokens than were generated",
        meaning="Tokens by steps × batch × commit exceed the counter of tokens: accept length or steps are overcounted.",
        looks_at="sums over decode steps beside realtime_tokens_total",
        remedy="Trust the counter; take throughput from the clients' side (specctl bench).",
        decide=decide.METRICS,
    ),
    "M007": Words(
        title="finished requests and steps tell two commits",
        meaning="Tokens over verify calls of finished requests must be the tokens a step: one of the two bases is counted wrong.",
        looks_at="generation_tokens_total, num_requests_total and spec_verify_calls_total beside sums over steps",
        remedy="Trust finished requests: they are what clients got.",
        decide=decide.LOAD,
    ),
    "M008": Words(
        title="more time was decoded than passed",
        meaning="A rank cannot decode longer than the clock: step times, and what is made of them, are too long.",
        looks_at="seconds of decode steps beside the clock",
        remedy="Take step times from verify steps a second instead.",
        decide=decide.LOAD,
    ),
    "M009": Words(
        title="counters went back without a restart",
        meaning="Counters only grow while a process lives: another process answers on this port, or the counters are not counters.",
        looks_at="counters of two looks beside the unit's start",
        remedy="See who listens on the port (specctl status --host H), and whether two servers share a metrics folder.",
        decide=decide.METRICS,
    ),
    "M010": Words(
        title="more requests run than may",
        meaning="The engine says that more requests run than its own limit allows.",
        looks_at="running requests beside max_running_requests (/v1/loads)",
        remedy="Ignore the running gauge of this build; watch the queue.",
        decide=decide.ANSWERS,
    ),
    "M011": Words(
        title="another algo decodes than is claimed",
        meaning="The log has what only a tree prints, or lacks what a tree always prints.",
        looks_at="decode lines and tree lines beside the claimed algo",
        remedy="Deploy again and let the proof decide (specctl health --host H); an engine that falls back says so at its start.",
        decide=decide.LOAD,
        effect="tokens come as fast as the algo that really runs",
        severity=Severity.ERROR,
    ),
    "M012": Words(
        title="another algo decodes than is claimed",
        meaning="Only speculation has an accept length over 1; plain decoding commits exactly one token a step.",
        looks_at="tokens a step and decode lines beside the claimed algo",
        remedy="Deploy again and let the proof decide (specctl health --host H).",
        decide=decide.LOAD,
        effect="tokens come as fast as the algo that really runs",
        severity=Severity.ERROR,
    ),
    "M013": Words(
        title="another budget is used than is claimed",
        meaning="The tree line's budget is not the mode's.",
        looks_at="each tree line's budget beside the claimed knob",
        remedy="Set the knob anew, or deploy again; see which flag or variable this build reads.",
        decide=decide.LOAD,
        effect="verification costs as much as the budget that really runs",
    ),
    "M014": Words(
        title="draft tokens are not the mode's",
        meaning="The engine verifies another number of tokens a step than the knobs make.",
        looks_at="spec_num_draft_tokens beside the knobs (root or anchor as the profile counts it)",
        remedy="Correct counts_root in the profile if the build counts otherwise; else the knob did not arrive.",
        decide=decide.METRICS,
        effect="verification costs as much as what really runs",
    ),
    "M015": Words(
        title="the tree is larger than its budget",
        meaning="A tree has at most its budget of nodes and one root.",
        looks_at="each tree line's nodes beside the claimed budget",
        remedy="Correct counts_root in the profile if the build counts otherwise; else the budget is not kept: report it.",
        decide=decide.LOAD,
        effect="verification costs more than the budget says",
    ),
}
