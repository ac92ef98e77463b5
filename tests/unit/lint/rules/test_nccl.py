"""Rules on NCCL, CUDA and PyTorch: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from specctl.lint.rules.nccl import level_of
from tests.unit.lint.subjects import Case, Made, check_broken, check_kept

CASES = (
    Case(
        rule="W069",
        broken=Made(env={"PATH": "/usr/bin:/bin"}, server={"cuda_home": "/usr/local/cuda"}),
        says="PATH is set by hand, without /usr/local/cuda/bin, /opt/sglang/bin",
        kept=Made(env={"PATH": "/opt/sglang/bin:/usr/bin"}),
        key="env.PATH",
    ),
    Case(
        rule="W050",
        broken=Made(env={"NCCL_P2P_LEVEL": "SYSTEM"}),
        says="NCCL_P2P_LEVEL=SYSTEM is no level (did you mean SYS?)",
        kept=Made(env={"NCCL_P2P_LEVEL": "sys"}),
        key="env.NCCL_P2P_LEVEL",
    ),
    Case(
        rule="W050",
        broken=Made(env={"NCCL_PROTO": "LL,LL12"}),
        says="'LL12' is unknown (did you mean LL128?)",
        kept=Made(env={"NCCL_PROTO": "LL,LL128,Simple"}),
    ),
    Case(
        rule="W051",
        broken=Made(env={"NCCL_P2P_LEVEL": "5"}),
        says="NCCL_P2P_LEVEL=5 is an old number for SYS: peers reach each other directly across CPU sockets",
        kept=Made(env={"NCCL_P2P_LEVEL": "SYS"}),
    ),
    Case(
        rule="W052",
        broken=Made(env={"NCCL_P2P_LEVEL": "NVL"}),
        says="says that peers reach each other directly over NVLink, and these GPUs are on PCIe",
        kept=Made(env={"NCCL_P2P_LEVEL": "NVL"}, hardware={"interconnect": "nvlink"}),
    ),
    Case(
        rule="W052",
        broken=Made(env={"NCCL_P2P_LEVEL": "LOC"}, hardware={"interconnect": "nvlink"}),
        says="switches NVLink between the GPUs off",
        kept=Made(env={"NCCL_P2P_LEVEL": "PIX"}),
    ),
    Case(
        rule="W053",
        broken=Made(env={"NCCL_ALGO": "Ring"}, hardware={"interconnect": "nvlink"}),
        says="NCCL_ALGO=Ring on GPUs behind NVLink",
        kept=Made(env={"NCCL_ALGO": "Ring"}),
    ),
    Case(
        rule="W054",
        broken=Made(env={"NCCL_P2P_DISABLE": "1"}, hardware={"interconnect": "nvlink"}),
        says="NCCL_P2P_DISABLE=1 sends NVLink's traffic through main memory",
        kept=Made(env={"NCCL_P2P_DISABLE": "0"}, hardware={"interconnect": "nvlink"}),
    ),
    Case(
        rule="W055",
        broken=Made(env={"NCCL_IB_DISABLE": "true"}),
        says="NCCL_IB_DISABLE=true is read as 0",
        kept=Made(env={"NCCL_IB_DISABLE": "1"}),
    ),
    Case(
        rule="W056",
        broken=Made(env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments: True"}),
        says="asks for expandable segments",
        kept=Made(
            env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, options={"--disable-custom-all-reduce": True}
        ),
    ),
    Case(
        rule="W057",
        broken=Made(server={"tp": 2, "gpus": (0, 1)}, target={"size_bytes": None}),
        says="two RTX PRO 6000 Blackwell over PCIe",
        kept=Made(server={"tp": 2}, target={"size_bytes": None}, options={"--disable-custom-all-reduce": True}),
    ),
    Case(
        rule="W065",
        broken=Made(env={"CUDA_VISIBLE_DEVICES": "0,1"}),
        says="CUDA_VISIBLE_DEVICES=0,1 is set by hand beside gpus: 0,1,2,3,4,5,6,7",
        kept=Made(),
        key="env.CUDA_VISIBLE_DEVICES",
    ),
    Case(
        rule="W065",
        broken=Made(algo_env={"CUDA_VISIBLE_DEVICES": "0"}, server={"gpus": ()}),
        says="CUDA_VISIBLE_DEVICES=0 is set by hand",
        kept=Made(server={"gpus": ()}),
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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0", "LOC"),
        ("1", "PIX"),
        ("2", "PXB"),
        ("3", "PHB"),
        ("4", "SYS"),
        ("5", "SYS"),
        ("99", "SYS"),
        ("-1", None),
        ("pxb", "PXB"),
    ],
)
def test_levels_are_read_as_nccl_reads_them(text: str, name: str | None) -> None:
    """Old numbers stand for names, more than 4 for SYS; names are read in any case."""
    assert level_of(text) == name
