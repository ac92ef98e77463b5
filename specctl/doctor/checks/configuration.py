"""Desired, deployed, on disk and running: where they part; what the linter says; whether the engine has the algo at all."""

from __future__ import annotations

from specctl.doctor import basis, decide
from specctl.doctor.evidence import Evidence
from specctl.doctor.types import Beside, Check, CheckSet, Clear, Hit, Unsure, Verdict
from specctl.lint.types import Severity


def _drift(evidence: Evidence) -> Verdict | tuple[Hit, ...]:
    """Repeat what the host itself finds when it compares its unit with its release."""
    found = evidence.configuration.drift
    if found is None:
        return Unsure(reason="the host was not asked", decide=decide.HOST)
    return tuple(Hit(message=words) for words in found) or Clear(note="unit and process are what the release says")


def _running(evidence: Evidence) -> Verdict:
    """Hold what the engine says of itself against the release that it was started from, or what it was told since."""
    wanted, claimed = evidence.configuration.deployed, evidence.configuration.claimed
    if wanted is None or claimed is None:
        return Unsure(
            reason="the release, or what /server_info claims, is not known",
            decide=decide.ANSWERS,
        )
    parts = [
        f"{name}: {said}, {due} in the release"
        for name, (due, said) in (evidence.configuration.arguments or {}).items()
    ]
    if not basis.fits(claimed, wanted):
        return Hit(message=f"/server_info says {claimed}, the release {wanted}", evidence=tuple(parts))
    if parts:
        return Hit(message=f"/server_info says {parts[0]}", evidence=tuple(parts[1:]))
    return Clear(note=str(claimed))


def _deployed(evidence: Evidence) -> Verdict:
    """Hold what runs against what the inventory asks for."""
    desired, deployed = evidence.configuration.desired, evidence.configuration.deployed
    if desired is None or deployed is None:
        return Unsure(reason="the inventory's mode, or the deployed one, is not known", decide=decide.HOST)
    if evidence.configuration.moved_live:
        return Clear(note=f"set live to {deployed}; a start would run what the release says")
    if basis.fits(desired, deployed):
        return Clear(note=str(deployed))
    return Hit(message=f"the inventory asks for {desired}, and {deployed} is deployed")


def _lint(evidence: Evidence) -> Verdict | tuple[Hit, ...]:
    """Repeat the linter's findings on this server, those that nobody waived."""
    found = evidence.configuration.lint
    if found is None:
        return Unsure(reason="the inventory was not linted", decide=decide.HOST)
    hits = tuple(
        Hit(
            message=f"{one.rule.id} {one.message}",
            evidence=(one.rule.reason,),
            remedy=one.remedy,
            severity=one.severity,
            title=one.rule.title,
        )
        for one in found
        if one.waived is None
    )
    return hits or Clear(note="clean")


def _capable(evidence: Evidence) -> Verdict:
    """Find an engine that does not know the algo that it is to run."""
    knows = evidence.configuration.knows
    if not knows:
        return Unsure(reason="whether the engine's build knows the algo was not asked", decide=decide.HOST)
    lacking = [name for name, known in knows.items() if not known]
    if lacking:
        return Hit(message=f"the engine's build does not know {', '.join(lacking)}")
    return Clear(note=", ".join(knows))


def _metrics(evidence: Evidence) -> Verdict:
    """Find an engine without metrics, of which half of these checks can say nothing."""
    told = evidence.configuration.metrics_enabled
    if told is None:
        return Unsure(reason="/server_info does not say whether metrics are on", decide=decide.ANSWERS)
    return Clear(note="metrics are on") if told else Hit(message="the engine runs without --enable-metrics")


def _answers(evidence: Evidence) -> Verdict:
    """Find a server that does not serve: nothing else can be judged then."""
    serving = evidence.configuration.serving
    if serving is None:
        return Beside() if evidence.host is None else Unsure(reason="the host was not asked", decide=decide.HOST)
    return Clear() if serving else Hit(message="the server does not answer as ready")


def _texts(evidence: Evidence) -> Verdict | tuple[Hit, ...]:
    """Repeat the texts worth knowing that the engine's log has."""
    if evidence.log is None:
        return Unsure(reason="no log was read", decide=decide.HOST)
    hits = tuple(
        Hit(message=f"{one.id} {one.title}", evidence=(f"{one.count} in the log",), remedy=_sentence(one.remedy))
        for one in evidence.log.texts
        if one.is_note
    )
    return hits or Clear(note=f"{evidence.log.lines} lines")


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


CHECKS = CheckSet(
    name="configuration",
    title="Desired, deployed, running",
    checks=(
        Check(
            id="C001",
            title="the host has drifted from its release",
            meaning="The unit on disk, or the process, is not what the current release says: edited, or not restarted.",
            looks_at="unit file, drop-ins and process beside the current release, as the host compares them",
            effect="what runs is not what was proven",
            remedy="Deploy again (specctl deploy --host H), or take the edit back.",
            severity=Severity.WARNING,
            judge=_drift,
        ),
        Check(
            id="C002",
            title="the engine says another mode than was deployed",
            meaning="Arguments that the engine resolved are not those of its release: overridden, ignored, or set live.",
            looks_at="/server_info beside the current release's arguments and knobs",
            effect="tokens come as fast as what really runs",
            remedy="Prove what runs (specctl health --host H); specctl restart --host H starts the release as it is.",
            severity=Severity.WARNING,
            judge=_running,
        ),
        Check(
            id="C003",
            title="the inventory asks for another mode than is deployed",
            meaning="A change of the inventory was not deployed, or the agent or an operator switched.",
            looks_at="the inventory's algo and knobs beside the current release's",
            effect="none until somebody deploys",
            remedy="Deploy (specctl deploy --host H), or write what runs into the inventory.",
            severity=Severity.NOTE,
            judge=_deployed,
        ),
        Check(
            id="C004",
            title="the linter finds something",
            meaning="A value of the inventory that the engine or the machine would not take as meant (docs/troubleshooting.md).",
            looks_at="every launch that the server can run, by the linter's rules",
            effect="as the rule says",
            remedy="As the rule says.",
            severity=Severity.WARNING,
            judge=_lint,
        ),
        Check(
            id="C005",
            title="the engine does not have the algo",
            meaning="The build behind the interpreter does not know the algorithm's name: it would die after the whole load.",
            looks_at="the capability probe's answer",
            effect="the algo cannot run on this host",
            remedy="Use an engine profile whose build has it (specctl inventory show names the profile in use).",
            severity=Severity.ERROR,
            judge=_capable,
        ),
        Check(
            id="C006",
            title="engine metrics are off",
            meaning="Without metrics the engine tells no counters, and zeros in place of throughput and accept rate.",
            looks_at="enable_metrics in /server_info",
            effect="none on tokens; most figures stay unknown",
            remedy="Give options: {enable-metrics: true} and deploy.",
            severity=Severity.NOTE,
            judge=_metrics,
        ),
        Check(
            id="C007",
            title="the engine's log has a known warning",
            meaning="A text of the engine that is worth knowing of a start that goes on (docs/gate.md).",
            looks_at="the log since the start, by the engine's grammar",
            effect="as the text says",
            remedy="As the text says.",
            severity=Severity.NOTE,
            judge=_texts,
        ),
        Check(
            id="C008",
            title="the server does not serve",
            meaning="It is stopped, loads, or refuses /ready: most other checks can say nothing.",
            looks_at="unit, port and /ready",
            effect="no tokens come",
            remedy="See where it stands: specctl status --host H, specctl logs --host H.",
            severity=Severity.ERROR,
            judge=_answers,
        ),
    ),
)
