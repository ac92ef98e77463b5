"""What an experiment's segments come to: differences, verdicts, confounders, answers compared; from a kept trial alone."""

from __future__ import annotations

from dataclasses import dataclass

from specctl.measure import ab_confounders, ab_outputs, ab_verdict
from specctl.measure.ab_confounders import Confounder, Seen, Standing
from specctl.measure.ab_outputs import Agreement
from specctl.measure.ab_trial import Trial
from specctl.measure.ab_verdict import Analysis, Call, Compared, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The conclusion. `answers`: for each compared pair, between the two and of the first alone, and a sentence."""

    trial: Trial
    analysis: Analysis
    confounders: tuple[Confounder, ...]
    answers: tuple[tuple[Agreement, Agreement, str], ...]

    def standing(self, standing: Standing) -> tuple[Confounder, ...]:
        """Return the confounders that stand so."""
        return tuple(each for each in self.confounders if each.standing is standing)

    @property
    def lossless(self) -> bool | None:
        """Claim that no arm said another token; None where it was not compared, or the engine need not compute alike."""
        if not self.trial.exact or not any(between.pairs for between, _, _ in self.answers):
            return None
        return not any(between.partings for between, _, _ in self.answers)


def conclude(trial: Trial) -> Result:
    """Judge what was measured so far."""
    ask = trial.ask
    analysis = ab_verdict.analyse(trial.segments, trial.pairs, ask.concurrency, cycles=ask.cycles, wanted=ask.wanted)
    seen = Seen(
        segments=trial.segments,
        concurrencies=ask.concurrency,
        letters=trial.letters,
        tokens=ask.tokens,
        gpu=trial.gpu,
    )
    answers = []
    for base, other in trial.pairs:
        between = ab_outputs.agreement(trial.segments, base, other)
        alone = ab_outputs.agreement(trial.segments, base, base)
        said = ab_outputs.said(between, alone, exact=trial.exact, letters=trial.letters)
        answers.append((between, alone, said))
    confounders = ab_confounders.judge(seen) if trial.segments else ()
    return Result(trial=trial, analysis=analysis, confounders=confounders, answers=tuple(answers))


def as_wire(result: Result) -> dict[str, object]:
    """Return the JSON object of a conclusion, without the segments themselves (docs/json.md)."""
    trial = result.trial
    return {
        "id": trial.id,
        "host": trial.host,
        "server": trial.server,
        "began": trial.began,
        "named": trial.named,
        "beside": [each.as_wire() for each in trial.beside],
        "arms": [{"letter": arm.letter, "mode": arm.mode, "note": arm.note or None} for arm in trial.arms],
        "order": [trial.letters[arm] for arm in trial.order],
        "segments": len(trial.segments),
        "resumed": trial.resumed,
        "before": list(trial.before),
        "verdicts": [_verdict(trial, each) for each in result.analysis.verdicts],
        "compared": [_compared(trial, each) for each in result.analysis.compared],
        "family": result.analysis.family,
        "confounders": [each.as_wire() for each in result.confounders],
        "answers": [said for _, _, said in result.answers],
        "lossless": result.lossless,
    }


def _verdict(trial: Trial, each: Verdict) -> dict[str, object]:
    return {
        "concurrency": each.concurrency,
        "base": trial.letters[each.base],
        "other": trial.letters[each.other],
        "call": each.call.value,
        "text": each.text,
        "cycles": each.cycles,
    }


def _compared(trial: Trial, each: Compared) -> dict[str, object]:
    found = each.difference
    return {
        "concurrency": each.concurrency,
        "base": trial.letters[each.base],
        "other": trial.letters[each.other],
        "quantity": each.key,
        "base_value": each.base_value,
        "other_value": each.other_value,
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "p_family": each.p_family,
        "detectable": found.seen,
        "spread": found.spread,
        "drift": found.drift,
        "freedom": found.freedom,
    }


def decided(result: Result) -> bool:
    """Claim that every primary comparison says something: a difference, or none that matters."""
    return bool(result.analysis.verdicts) and all(each.call is not Call.OPEN for each in result.analysis.verdicts)
