"""What a step commits by the log against what requests got: the metric that lies, the tokens thrown away, the early end."""

from __future__ import annotations

from specctl.algos.types import Shape
from specctl.doctor import basis, decide, truth
from specctl.doctor.basis import Committed, Estimate, Told
from specctl.doctor.evidence import Evidence
from specctl.doctor.truth import Case
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Confidence, Hit, Unsure, Verdict
from specctl.lint.types import Severity


def _said(evidence: Evidence, told: Told) -> float | None:
    """Return the commit that the log reports, with the bonus where the build leaves it out; None where it may or may not."""
    if told.commit is None or evidence.counts_bonus is None:
        return None
    return told.commit + (0 if evidence.counts_bonus else 1)


def _reported(evidence: Evidence) -> tuple[float, str] | None:
    """Return the tokens a step that the server reports, and which figure that is."""
    windows = truth.windows_beside(evidence)
    said = _said(evidence, basis.told(windows))
    if said is not None:
        return said, "the tree line's commit"
    lengths = [
        (one.decode.accept_length, float(one.decode.running or 1))
        for one in windows
        if one.decode is not None and one.decode.accept_length is not None
    ]
    length = basis.mean(lengths)
    if length is not None:
        return length, "the decode lines' accept length"
    own = basis.best(basis.of_mode(evidence, evidence.mode))
    return None if own is None or own.accept_length is None else (own.accept_length, "the accept length told of it")


def _commit(evidence: Evidence) -> Verdict:
    """Hold the reported commit against tokens over verify steps."""
    if basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    reported, got = _reported(evidence), basis.committed(evidence)
    if reported is None:
        return Unsure(reason="nothing reports what a step commits", decide=decide.LIVE)
    if got is None:
        return _rough(reported, basis.estimate(evidence))
    return _against(evidence, reported, got)


def _against(evidence: Evidence, reported: tuple[float, str], got: Committed) -> Verdict:
    said, name = reported
    apart = abs(said - got.length)
    weighed = truth.weigh(evidence)
    most = basis.max_drafts(evidence.mode)
    allowed = got.slack + (got.lost_to_ends(float(most)) if most is not None and said > got.length else 0.0)
    if apart <= allowed:
        return Clear(note=f"reported {said:.2f}, got {got.length:.2f} tokens a verify step")
    lost = weighed is not None and weighed.case is Case.LOST and said > got.length
    if lost:
        return Clear(note=f"reported {said:.2f}: see M026")
    side = "low" if said < got.length else "high"
    return Hit(
        message=f"{name} is {said:.2f}, {_percent(said, got.length)} {side}: requests got {got.length:.2f} tokens a verify step",
        evidence=(got.source,),
        effect=truth.NOTHING_LOST,
    )


def _percent(said: float, true: float) -> str:
    return f"{abs(said - true) / true * 100:.1f} %"


def _rough(reported: tuple[float, str], rough: Estimate | None) -> Verdict:
    """Go as far as throughput goes without verify steps a second, and say what would decide the rest."""
    said, name = reported
    if rough is None:
        return Unsure(reason=f"{name} is {said:.2f}, and nobody counted verify steps beside tokens", decide=decide.LIVE)
    other = rough.reference.mode.algo
    base = "" if rough.base_steps is None else f", {rough.base_steps:.2f} base steps"
    step = f"at {other}'s step time ({rough.step_s * 1000:.1f} ms{base})"
    least = "at least " if rough.at_least else "about "
    made = f"{step} {rough.tokens_s:.1f} tok/s are {least}{rough.length:.3f} tokens a step"
    if abs(said - rough.length) <= basis.NOISE_RATIO * rough.length:
        verdict = f"{name} {said:.2f} agrees"
    else:
        side = "low" if said < rough.length else "high"
        verdict = f"{name} {said:.2f} is {_percent(said, rough.length)} {side}"
    return Unsure(reason=f"{made}: {verdict} if step times are equal", decide=decide.LIVE, partly=True)


def _thrown_away(evidence: Evidence) -> Verdict:
    """Find accepted drafts that never reached a client."""
    if basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    weighed = truth.weigh(evidence)
    if weighed is None:
        told = basis.told(truth.windows_beside(evidence))
        if told.drafts is None:
            return Unsure(reason="no line says how many drafts a step accepts", decide=decide.LOG)
        return Unsure(reason="tokens a verify step were not measured beside the log's drafts", decide=decide.LIVE)
    if weighed.case is not Case.LOST:
        return Clear(note=f"{weighed.due:.2f} accepted with the bonus, {weighed.got.length:.2f} got")
    share = (weighed.due - weighed.got.length) / weighed.due * 100
    return Hit(
        message=f"a step accepts {weighed.told.drafts:.2f} drafts, which with the bonus make {weighed.due:.2f} tokens, "
        f"and requests got {weighed.got.length:.2f}",
        evidence=(weighed.got.source, f"drafts of {weighed.told.lines} lines"),
        effect=f"{share:.0f} % of what verification accepts is thrown away, unless drafts are overcounted",
        confidence=Confidence.LIKELY,
    )


def _ended(evidence: Evidence) -> Verdict:
    """Say where short requests explain a commit below drafts and bonus."""
    if basis.shape_of(evidence.mode) is Shape.NONE:
        return Beside()
    weighed = truth.weigh(evidence)
    if weighed is None:
        return Unsure(reason="tokens a verify step were not measured beside the log's drafts", decide=decide.LIVE)
    if weighed.case is not Case.ENDED:
        return Clear(note=f"{weighed.got.steps:.0f} steps of {weighed.got.requests:.0f} requests")
    steps = weighed.got.steps / weighed.got.requests
    return Hit(
        message=f"requests take {steps:.1f} verify steps each, so that {weighed.due:.2f} tokens accepted a step "
        f"become {weighed.got.length:.2f}: what is accepted beyond a request's end is nobody's",
        evidence=(weighed.got.source,),
    )


CHECKS = CheckSet(
    name="commit",
    title="What a step commits, on one basis",
    checks=(
        Check(
            id="M021",
            title="the reported commit is not what requests get",
            meaning="Reported tokens a step and tokens over verify calls of whole requests count the same thing and must agree.",
            looks_at="commit of tree lines, accept length of decode lines, beside tokens and verify calls of whole requests",
            effect="none on tokens",
            remedy="Trust tokens over verify steps; correct counts_bonus in the profile where this build leaves the bonus out.",
            severity=Severity.WARNING,
            judge=_commit,
        ),
        Check(
            id="M026",
            title="accepted tokens are thrown away",
            meaning="Verification accepts drafts that no request gets: the commit loop stops early, or drafts are overcounted.",
            looks_at="accepted drafts of tree lines beside tokens and verify calls of whole requests",
            effect="tokens are lost with each step",
            remedy="Record a verify trace and replay it (specctl doctor --trace FILE): it names the step.",
            severity=Severity.ERROR,
            judge=_thrown_away,
        ),
        Check(
            id="M027",
            title="requests end inside their blocks",
            meaning="A request that ends in a block leaves accepted drafts behind: short requests have low commits.",
            looks_at="verify steps a request beside accepted drafts and tokens a step",
            effect="none: those tokens are beyond what was asked for",
            remedy="Judge accept lengths on longer outputs; a smaller block wastes less on short ones.",
            severity=Severity.NOTE,
            judge=_ended,
        ),
    ),
)
