"""A study that was measured on a made-up machine, for the tests of all that is made of one."""

from __future__ import annotations

from dataclasses import replace

from specctl.control.calibration_facts import Facts
from specctl.measure.calibrate import Ask, Pace, Study, question
from specctl.measure.chance import seeded
from specctl.measure.sweep import grid
from tests.unit.measure.sweep_worlds import CHAIN, NONE, TREES, Machine, Truth

MODES = (NONE, CHAIN, TREES[1])
WORLD = Truth(fixed_s=0.02, packed_s=3e-4, knee=64, accept={NONE: 1.0, CHAIN: 3.0, TREES[1]: 4.0})
FACTS = Facts(
    gpu="NVIDIA H200",
    gpu_count=8,
    driver="590.48",
    profile="lab",
    engine_version="0.5.23",
    packages="0123456789ab",
    target="lab-target",
    draft="lab-draft",
    context_tokens=(20, 180),
    prompts="mixed 8ba84c7fa7e0",
)
ASK = Ask(low=1, high=64, limit_s=1800.0, tokens=128, prompts="mixed", window_s=8.0)
EMPTY = Study(
    id="calibrate-20261130-031026-ce90",
    began="2026-11-30T03:10:26+00:00",
    specctl="0.1.0",
    host="gpu1",
    server="lab",
    ask=ASK,
    question=question(MODES, grid(1, 64, 4), 8.0, Pace(around_s=2.0, switch_s=0.5, by_mode=False)),
    facts=FACTS,
    way="live",
    before=("1", "dflash"),
    was=CHAIN,
    max_running=64,
)


def measured(limit_s: float = 1800.0, *, noise: float = 0.01) -> Study:
    """Return a study of so many seconds."""
    machine = Machine(truth=WORLD, chance=seeded(11), noise=noise, segment_s=10.0)
    segments = [
        replace(each, accept_length=WORLD.accept[each.place.mode]) for each in machine.swept(EMPTY.question, limit_s)
    ]
    return replace(EMPTY, segments=tuple(segments))
