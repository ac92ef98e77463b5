"""The calibration file that a study comes to: the figures, their errors, what they hold for, and what was concluded.

Read by specctl.control.calibration: by the agent, and by `specctl simulate --model`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specctl.control import calibration_found
from specctl.control.mode import Mode
from specctl.measure.calibrate import Study
from specctl.measure.sweep_order import Mean

SPREAD = 0.02
"""What another day differs by, beside the errors of measuring: as much as the agent allows its own measurements; a choice."""


def content(study: Study) -> dict[str, object]:
    """Return the file as JSON values; raises ValueError where nothing was measured."""
    facts = study.facts
    modes = points(study, lambda mean: round(mean.tokens_s, 3))
    if not modes:
        raise ValueError("nothing was measured")
    known = {
        "target": facts.target,
        "draft": facts.draft,
        "gpu": None if facts.gpu is None else f"{facts.gpu_count}× {facts.gpu}",
        "engine": " ".join(filter(None, (facts.profile, facts.engine_version))) or None,
        "max_running": study.max_running,
    }
    return {
        "about": f"specctl calibrate, {study.id}",
        "host": study.host,
        "when": study.began,
        **{name: value for name, value in known.items() if value is not None},
        "spread": SPREAD,
        "modes": modes,
        "errors": points(study, lambda mean: None if mean.error is None else round(mean.error, 4)),
        "segments": points(study, lambda mean: mean.segments),
        "accept_lengths": _lengths(study),
        "holds_for": calibration_found.facts_wire(facts),
        **calibration_found.said_wire(study.said),
    }


def points(study: Study, figure: Callable[[Mean], float | None]) -> dict[str, dict[str, float]]:
    """Return a figure of every measured point, by mode and concurrency; what is not known is left out."""
    rows: dict[str, dict[str, float]] = {}
    for mode in study.question.modes:
        told = {at: figure(each.means[mode]) for at, each in study.conclusion.orders.items() if mode in each.means}
        known = {str(at): value for at, value in told.items() if value is not None}
        if known:
            rows[str(mode)] = known
    return rows


def _lengths(study: Study) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for mode, at in _measured(study):
        length = study.accept_length(mode, at)
        if length is not None:
            found.setdefault(str(mode), {})[str(at)] = round(length, 4)
    return found


def _measured(study: Study) -> tuple[tuple[Mode, int], ...]:
    orders = study.conclusion.orders
    return tuple((mode, at) for mode in study.question.modes for at, each in orders.items() if mode in each.means)
