"""Rules on memory and GPUs: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept

CASES = (
    Case(
        rule="W045",
        broken=Made(server={"tp": 4}, target={"size_bytes": None}),
        says="8 GPUs are given and 4 used",
        kept=Made(server={"tp": 4}, options={"--dp-size": 2}, algo="none"),
        key="gpus",
    ),
    Case(
        rule="E040",
        broken=Made(options={"--mem-fraction-static": 1.5}),
        says="--mem-fraction-static is 1.5",
        kept=Made(options={"--mem-fraction-static": 0.85}),
        key="options.--mem-fraction-static",
    ),
    Case(
        rule="W040",
        broken=Made(options={"--mem-fraction-static": 0.9}),
        says="is 0.9 with a draft, which leaves 9.6 GiB a GPU",
        kept=Made(options={"--mem-fraction-static": 0.9}, algo="none"),
    ),
    Case(
        rule="W040",
        broken=Made(options={"--mem-fraction-static": 0.92}, hardware=None),
        says="is 0.92 with a draft",
        kept=Made(options={"--mem-fraction-static": 0.9}, hardware={"gpu_memory_bytes": 288_000_000_000}),
    ),
    Case(
        rule="E041",
        broken=Made(server={"tp": 4}, options={"--mem-fraction-static": 0.85}),
        says="the weights take 149.0 GB of each of 4 GPUs, and the static share is 87.6 GB",
        kept=Made(server={"tp": 4}, options={"--pp-size": 2}, algo="none"),
        also=("W045",),
    ),
    Case(
        rule="E041",
        broken=Made(server={"tp": 4, "gpus": (0, 1, 2, 3)}),
        says="149.0 GB of each of 4 GPUs",
        kept=Made(server={"tp": 4, "gpus": (0, 1, 2, 3)}, options={"--quantization": "fp8"}),
    ),
    Case(
        rule="E042",
        broken=Made(server={"tp": 8, "gpus": (0, 1, 2, 3)}),
        says="8 GPUs are needed and 4 are given",
        kept=Made(server={"tp": 8, "gpus": ()}),
        key="gpus",
    ),
    Case(
        rule="W043",
        broken=Made(server={"tp": 7, "gpus": ()}, hardware=None),
        says="tp is 7, no power of two",
        kept=Made(server={"tp": None}, hardware=None),
    ),
    Case(
        rule="E043",
        broken=Made(options={"--chunked-prefill-size": 1000, "--page-size": 64}),
        says="--chunked-prefill-size 1000 is no multiple of --page-size 64",
        kept=Made(options={"--chunked-prefill-size": -1, "--page-size": 64}),
    ),
    Case(
        rule="N044",
        broken=Made(target={"path": "moonshotai/Kimi-K2.6"}),
        says="target moonshotai/Kimi-K2.6 is no absolute path",
        kept=Made(algo="none", draft={"path": "z-lab/draft"}),
        key="target",
    ),
    Case(
        rule="W084",
        broken=Made(unit={"memory_max": "500000000000"}),
        says="unit.memory_max is 500.0 GB, and the target has 590.0 GB of weights",
        kept=Made(unit={"memory_max": "1000000000000"}),
        key="unit.memory_max",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_found(case: Case) -> None:
    """The launch that breaks the rule is said to, in words that name what breaks it, and nothing else is said of it."""
    check_broken(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_kept_rule_is_silent(case: Case) -> None:
    """A launch like it that keeps the rule is not blamed for it."""
    check_kept(case)
