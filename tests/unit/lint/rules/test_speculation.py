"""Rules on speculation: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept

CASES = (
    Case(
        rule="E010",
        broken=Made(select={"--speculative-algorithm": "DDTREE"}),
        says="sglang-0.5.23 has no speculative algorithm DDTREE",
        kept=Made(select={"--speculative-algorithm": "dflash"}),
    ),
    Case(
        rule="E010",
        broken=Made(select={"--speculative-algorithm": "DFLSH"}),
        says="(did you mean DFLASH?)",
        kept=Made(of="fork", algo="ddtree"),
    ),
    Case(
        rule="E011",
        broken=Made(algo="none", options={"--speculative-algorithm": "EAGLE3"}),
        says="EAGLE3 is started without --speculative-draft-model-path",
        kept=Made(algo="none", options={"--speculative-algorithm": "NGRAM"}),
    ),
    Case(
        rule="E012",
        broken=Made(options={"--pipeline-parallel-size": 2}, server={"tp": 4}),
        says="DFLASH runs with a pipeline of 1, not 2",
        kept=Made(algo="none", options={"--pp-size": 2}),
        key="options.--pipeline-parallel-size",
    ),
    Case(
        rule="E013",
        broken=Made(options={"--attn-dp-size": 2}),
        says="DFLASH with 2 attention groups needs --enable-dp-lm-head",
        kept=Made(options={"--attn-dp-size": 2, "--enable-dp-lm-head": True}),
    ),
    Case(
        rule="E013",
        broken=Made(
            options={"--dp-size": 2, "--enable-dp-attention": True, "--enable-dp-lm-head": True, "--attn-cp-size": 2}
        ),
        says="takes no context parallelism",
        kept=Made(algo="none", options={"--attn-dp-size": 2}),
        also=("W003",),
    ),
    Case(
        rule="E013",
        broken=Made(
            options={"--attn-dp-size": 2, "--enable-dp-lm-head": True},
            env={"SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": "1"},
        ),
        says="needs SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=0",
        kept=Made(env={"SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": "1"}),
    ),
    Case(
        rule="E014",
        broken=Made(options={"--weight-cache-mode": "client"}),
        says="--weight-cache-mode client does not go with DFLASH",
        kept=Made(algo="none", options={"--weight-cache-mode": "client"}),
    ),
    Case(
        rule="E015",
        broken=Made(options={"--enable-watermark": True}),
        says="--enable-watermark does not go with DFLASH",
        kept=Made(algo="none", options={"--enable-watermark": True}),
    ),
    Case(
        rule="E016",
        broken=Made(options={"--speculative-num-draft-tokens": 7}),
        says="block-size is 8 and --speculative-num-draft-tokens is 7",
        kept=Made(options={"--speculative-num-draft-tokens": 8}),
        key="options.--speculative-num-draft-tokens",
    ),
    Case(
        rule="W025",
        broken=Made(knobs={"block_size": 16}),
        says="block_size is 16, and the draft was trained with blocks of 8",
        kept=Made(knobs={"block_size": 16}, draft={"block_size": None}),
        key="knobs.dflash.block_size",
    ),
    Case(
        rule="N017",
        broken=Made(knobs={"block_size": 4}),
        says="block_size is 4, and the draft was trained with blocks of 8",
        kept=Made(knobs={"block_size": None}),
    ),
    Case(
        rule="E018",
        broken=Made(options={"--speculative-draft-window-size": 4}),
        says="--speculative-draft-window-size 4 is smaller than the block of 8",
        kept=Made(options={"--speculative-draft-window-size": 8}),
    ),
    Case(
        rule="E019",
        broken=Made(options={"--device": "cpu"}),
        says="DFLASH does not run on device cpu",
        kept=Made(algo="none", options={"--device": "cpu"}),
    ),
    Case(
        rule="W009",
        broken=Made(options={"--speculative-accept-threshold-single": 0.9}),
        says="--speculative-accept-threshold-single is 0.9",
        kept=Made(options={"--speculative-accept-threshold-single": 1.0}),
    ),
    Case(
        rule="W011",
        broken=Made(options={"--max-running-requests": None}),
        says="with DFlash the engine makes it 48",
        kept=Made(algo="none", options={"--max-running-requests": None}),
    ),
    Case(
        rule="W012",
        broken=Made(options={"--speculative-eagle-topk": 4}),
        says="--speculative-eagle-topk 4 makes no tree",
        kept=Made(
            options={"--speculative-eagle-topk": 4, "--disable-overlap-schedule": True},
            env={"SGLANG_DFLASH_TREE_VERIFY": "1"},
        ),
    ),
    Case(
        rule="W012",
        broken=Made(options={"--speculative-num-steps": 3}),
        says="--speculative-num-steps 3 changes nothing",
        kept=Made(options={"--speculative-num-steps": 1}),
    ),
    Case(
        rule="W013",
        broken=Made(options={"--speculative-adaptive": True}),
        says="is for EAGLE, and does nothing with DFLASH",
        kept=Made(options={"--speculative-adaptive": False}),
    ),
    Case(
        rule="W013",
        broken=Made(select={"--speculative-algorithm": "EAGLE"}, options={"--speculative-adaptive": True}),
        says="specctl's agent must not act on this server",
    ),
    Case(
        rule="W014",
        broken=Made(options={"--speculative-draft-attention-backend": "torch_native"}),
        says="torch_native is no backend for a draft",
        kept=Made(options={"--speculative-draft-attention-backend": "fa3"}),
    ),
    Case(
        rule="W014",
        broken=Made(options={"--speculative-draft-attention-backend": "trtllm_mha"}),
        says="serves drafts with sliding or causal layers alone",
        kept=Made(options={"--attention-backend": "trtllm_mha"}),
    ),
    Case(
        rule="W018",
        broken=Made(options={"--enable-unified-memory": True}),
        says="--enable-unified-memory goes with DFLASH on few attention backends alone",
        kept=Made(algo="none", options={"--enable-unified-memory": True}),
    ),
    Case(
        rule="W019",
        broken=Made(options={"--kv-cache-dtype": "nvfp4"}),
        says="--kv-cache-dtype nvfp4 with DFLASH",
        kept=Made(options={"--kv-cache-dtype": "fp8_e4m3"}),
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
