"""Checks of memory: weights against GPUs, and the host's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.fleet.types import UnitSettings
from specctl.rollout.observation import UnitState
from specctl.rollout.preflight.types import Level
from tests.unit.rollout.preflight.subjects import ARGV, FACTS, GIB, SERVER, finding, gpu, said, subject

assert FACTS.target is not None
TARGET_FACTS = FACTS.target


def weighing(gigabytes: float) -> dict[str, object]:
    """Return facts of a target of this size."""
    return {"target": replace(TARGET_FACTS, size_bytes=int(gigabytes * GIB))}


@pytest.mark.parametrize(
    ("gigabytes", "level"),
    [(550.0, Level.PASS), (606.0, Level.PASS), (607.0, Level.WARN), (644.0, Level.WARN), (645.0, Level.FAIL)],
)
def test_weights_and_draft_against_the_static_part(gigabytes: float, level: Level) -> None:
    """8 × 96 GiB × 0.85 hold 652.8 GiB of weights and draft (8 GiB); with under 5 % of a GPU left it warns."""
    assert said(subject(facts=weighing(gigabytes)), "P030")[0] is level


def test_the_reason_has_every_figure() -> None:
    """Weights, draft, memory, fraction and what is left are all there to be argued with."""
    assert said(subject(), "P030") == (
        Level.PASS,
        "weights 68.8 GiB + draft 1.0 GiB on each GPU, of 81.6 GiB (96.0 GiB × 0.85): 11.8 GiB are left for the KV cache",
    )


def test_the_smallest_gpu_decides() -> None:
    """One GPU of less memory is what the weights do not fit."""
    gpus = tuple(gpu(index, memory_bytes=(48 if index == 5 else 96) * GIB) for index in range(8))
    assert said(subject(graphics={"gpus": gpus}), "P030")[0] is Level.FAIL


def test_without_a_fraction_all_memory_counts() -> None:
    """The engine derives the fraction itself: only what cannot fit at all fails."""
    argv = tuple(word for word in ARGV if word not in ("--mem-fraction-static", "0.85"))
    assert said(subject(argv=argv, facts=weighing(700)), "P030")[0] is Level.PASS
    assert said(subject(argv=argv, facts=weighing(770)), "P030")[0] is Level.FAIL


def test_a_flag_that_shrinks_weights_never_fails() -> None:
    """Quantised while it is loaded, a model takes less than its files: that is warned of, not refused."""
    argv = (*ARGV, "--quantization", "fp8")
    level, reason = said(subject(argv=argv, facts=weighing(900)), "P030")
    assert (level, "only if --quantization" in reason) == (Level.WARN, True)


def test_a_flag_with_an_equals_sign_and_an_alias_are_read() -> None:
    """What the engine would take, preflight takes too."""
    argv = (
        "/opt/venv/bin/python",
        "-m",
        "engine",
        "--model-path=/models/big",
        "--tp-size=8",
        "--mem-fraction-static=0.5",
    )
    assert said(subject(argv=argv, algo="none"), "P030")[0] is Level.FAIL


def test_a_size_from_the_inventory_serves_where_the_host_has_none() -> None:
    """A model that the host cannot measure has the size that the inventory says; without one nothing is claimed."""
    unmeasured: dict[str, object] = {"target": replace(TARGET_FACTS, size_bytes=None)}
    assert said(subject(facts=unmeasured), "P030")[0] is Level.UNKNOWN
    heavy = replace(SERVER, target=replace(SERVER.target, size_bytes=900 * GIB))
    assert said(replace(subject(facts=unmeasured), server=heavy), "P030")[0] is Level.FAIL


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"memory_bytes": 16 * GIB, "memory_free_bytes": 12 * GIB}, "8 ranks need about 32.0 GiB"),
        ({"memory_free_bytes": 10 * GIB}, "10.0 GiB of 1.0 TiB are free"),
        ({"memory_bytes": 256 * GIB}, "cannot keep 550.0 GiB of weights in its page cache"),
        ({"hugepages_bytes": 800 * GIB}, "are set aside for hugepages"),
    ],
)
def test_little_host_memory_warns(machine: dict[str, object], words: str) -> None:
    """Each kind of shortage in its own words; never a refusal, since it may only be slow."""
    level, reason = said(subject(machine=machine, facts={"unit": UnitState(active="inactive")}), "P031")
    assert level is Level.WARN
    assert words in reason


def test_memory_that_the_running_server_holds_counts_as_free() -> None:
    """It is stopped before the new one starts."""
    assert said(subject(machine={"memory_free_bytes": 10 * GIB}), "P031")[0] is Level.PASS


def test_a_units_own_cap_counts() -> None:
    """MemoryMax below the weights is told as such."""
    capped = replace(SERVER, unit=UnitSettings(memory_max=str(100 * GIB)))
    assert said(replace(subject(), server=capped), "P031")[1].startswith("MemoryMax of 100.0 GiB cannot keep")


def test_no_gpus_no_claim_about_them() -> None:
    """Where nothing is known of GPUs the weights are compared with nothing."""
    assert finding(subject(graphics={"gpus": None}), "P030") is None
