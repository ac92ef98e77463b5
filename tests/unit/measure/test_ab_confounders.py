"""What else it could have been: every planted confounder is named, and a quiet experiment rules all of them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from specctl.measure.ab_confounders import Confounder, Seen, Standing, judge
from specctl.measure.ab_trial import Trial
from specctl.measure.ab_types import Segment
from specctl.measure.figures import Figures, GpuFigures
from tests.abtrials import figures, trial, with_run, with_segment

QUIET = trial((100.0, 101.0, 100.5, 100.2), (100.3, 100.9, 100.1, 100.6))
ONE_OF_B = 1


def found(whole: Trial, *, gpu: bool = True) -> dict[str, Confounder]:
    """Return the confounders by name."""
    seen = Seen(segments=whole.segments, concurrencies=(1,), letters="AB", tokens=512, gpu=gpu)
    return {each.name: each for each in judge(seen)}


def changed(place: int, change: Callable[[Segment], Segment]) -> Trial:
    """Return the quiet trial with one segment changed."""
    return with_segment(QUIET, place, change(QUIET.segments[place]))


def running(**values: object) -> Callable[[Segment], Segment]:
    """Return a change of every run's figures."""
    return lambda one: with_run(one, replace(figures(100.0), **values))  # type: ignore[arg-type]  # the field's own type


def on_gpus(**values: object) -> Callable[[Segment], Segment]:
    """Return a change of the GPUs' figures of every run."""
    gpus = figures(100.0).gpus
    assert gpus is not None
    return running(gpus=replace(gpus, **values))  # type: ignore[arg-type]  # the field's own type


def around(**values: object) -> Callable[[Segment], Segment]:
    """Return a change of what was around a segment."""
    return lambda one: replace(one, around=replace(one.around, **values))  # type: ignore[arg-type]  # the field's own type


def test_a_quiet_experiment_rules_everything_out() -> None:
    """Where nothing is wrong every confounder is ruled out, each with its evidence."""
    assert {each.standing for each in found(QUIET).values()} == {Standing.RULED_OUT}
    assert all(each.evidence for each in found(QUIET).values())


PLANTED = [
    ("throttling", on_gpus(throttle=("sw_power_cap", "hw_thermal")), "segment 2 (B) (hw_thermal)"),
    ("clocks", on_gpus(sm_clock_hz=2.0e9), "A 2300 MHz, B 2225 MHz"),
    ("thermal state", lambda one: replace(one, settled=False), "segment 2 (B)"),
    ("other processes on the GPUs", around(strangers=("python 4121",)), "segment 2 (B) (python 4121)"),
    ("other load on the processors", around(foreign_cores=2.5), "segment 2 (B) (2.5 of 8 cores)"),
    ("other load on the processors", around(stolen_ratio=0.2), "the hypervisor took time from segment 2 (B)"),
    ("other requests", running(foreign_requests=3.0, foreign_tokens=900.0), "segment 2 (B) (3)"),
    ("prompts and context", running(prompt_tokens=4000.0), "tokens of a prompt at 1: A 90.0, B 1067.5"),
    ("lengths", running(failed=1), "segment 2 (B)"),
    ("concurrency", running(in_flight=0.5), "requests in flight at 1: A 1.0, B 0.9"),
    ("prefix cache", running(cached_ratio=0.6), "15 % more in one arm"),
    ("the sender's own speed", running(client_busy_ratio=0.97), "97 % of a core"),
    ("the sender's own speed", running(requests=8, bursts=8), "8 of"),
    ("restarts", around(upset="the server was started anew"), "segment 2 (B) (the server was started anew)"),
]


@pytest.mark.parametrize(("name", "change", "words"), PLANTED, ids=[f"{p[0]}-{n}" for n, p in enumerate(PLANTED)])
def test_a_planted_confounder_is_named(name: str, change: Callable[[Segment], Segment], words: str) -> None:
    """One segment of B with something wrong is found, by the right name and place, and nothing else is accused."""
    seen = found(changed(ONE_OF_B, change))
    assert (seen[name].standing, words in seen[name].evidence) == (Standing.FOUND, True), seen[name]
    assert {each.name for each in seen.values() if each.standing is Standing.FOUND} == {name}


def test_drift_is_said_although_the_order_takes_it_out() -> None:
    """An arm that ends far from where it began is named, with how far."""
    seen = found(trial((100.0, 103.0, 106.0, 112.0), (101.0, 102.0, 104.0, 108.0)))
    assert seen["drift"].standing is Standing.FOUND
    assert "A's last segment differs from its first by 12.0 %" in seen["drift"].evidence


def test_a_power_cap_of_one_arm_alone_is_a_confounder() -> None:
    """A cap that holds both arms is how a full GPU lives; one that holds B alone is not."""
    gpus = figures(100.0).gpus
    assert gpus is not None
    free = replace(figures(100.0), gpus=replace(gpus, throttle=()))
    whole = QUIET
    for place, one in enumerate(QUIET.segments):
        if one.arm == 0:
            whole = with_segment(whole, place, with_run(one, free))
    assert found(whole)["throttling"].standing is Standing.FOUND
    assert "A 0 of 4, B 4 of 4" in found(whole)["throttling"].evidence


def bare() -> Trial:
    """Return the quiet trial on a host that tells nothing."""
    unknown = Figures(tokens_s=100.0, gpus=None)
    whole = QUIET
    for place, one in enumerate(QUIET.segments):
        silent = replace(with_run(one, unknown), settled=None)
        blank = replace(silent.around, strangers=None, foreign_cores=None, cores=None, stolen_ratio=None)
        whole = with_segment(whole, place, replace(silent, around=blank))
    return whole


def test_what_nobody_tells_is_not_known() -> None:
    """A host without figures leaves its confounders open: none is ruled out for want of evidence."""
    standing = {name: each.standing for name, each in found(bare()).items()}
    assert {name for name, each in standing.items() if each is Standing.RULED_OUT} == {"lengths", "drift", "restarts"}
    assert Standing.FOUND not in standing.values()


def test_an_engine_without_gpus_has_no_confounders_of_gpus() -> None:
    """An engine that computes on processors is not disturbed by GPUs, and that is the evidence."""
    of_gpus = ("clocks", "throttling", "thermal state", "other processes on the GPUs")
    assert {found(bare(), gpu=False)[name].standing for name in of_gpus} == {Standing.RULED_OUT}


def test_gpu_figures_without_reasons_tell_no_throttling() -> None:
    """A driver that tells clocks and no reasons leaves throttling open."""
    whole = changed(0, running(gpus=GpuFigures(count=1, sm_clock_hz=2.3e9)))
    assert found(whole)["throttling"].standing is Standing.UNKNOWN
