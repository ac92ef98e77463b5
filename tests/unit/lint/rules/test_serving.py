"""Rules on metrics, health and start: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept

CASES = (
    Case(
        rule="W032",
        broken=Made(options={"--enable-metrics": None}),
        says="engine metrics are off",
        kept=Made(options={"--enable-metrics": True}),
    ),
    Case(
        rule="W032",
        broken=Made(of="lab", options={"--enable-metrics": False}),
        says="engine metrics are off",
        kept=Made(of="lab"),
    ),
    Case(
        rule="N032",
        broken=Made(options={"--enable-metrics-for-all-schedulers": True}),
        says="every rank repeats the same numbers",
        kept=Made(),
    ),
    Case(
        rule="W060",
        broken=Made(env={"PROMETHEUS_MULTIPROC_DIR": "/tmp/prom"}),
        says="PROMETHEUS_MULTIPROC_DIR is set",
        kept=Made(env={"PROMETHEUS_MULTIPROC_DIR": ""}),
        key="env.PROMETHEUS_MULTIPROC_DIR",
    ),
    Case(
        rule="W061",
        broken=Made(env={"SGLANG_RUST_SERVER": "1"}),
        says="swaps in another HTTP server",
        kept=Made(env={"SGLANG_RUST_SERVER": "0"}),
    ),
    Case(
        rule="W062",
        broken=Made(env={"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "False"}),
        says="/health says 200 whatever the scheduler does",
        kept=Made(env={"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "1"}),
    ),
    Case(
        rule="W063",
        broken=Made(env={"SGLANG_HEALTH_CHECK_TIMEOUT": "5"}),
        says="SGLANG_HEALTH_CHECK_TIMEOUT is 5 s",
        kept=Made(env={"SGLANG_HEALTH_CHECK_TIMEOUT": "60"}),
    ),
    Case(
        rule="E063",
        broken=Made(env={"SGLANG_HEALTH_CHECK_TIMEOUT": "20s"}),
        says="is '20s', not a whole number",
        kept=Made(env={"SGLANG_HEALTH_CHECK_TIMEOUT": "20"}),
    ),
    Case(
        rule="W064",
        broken=Made(env={"SGL_FORCE_SHUTDOWN": "true"}),
        says="SGL_FORCE_SHUTDOWN is on",
        kept=Made(env={"SGL_FORCE_SHUTDOWN": "false"}),
    ),
    Case(
        rule="W066",
        broken=Made(env={"SGLANG_ENABLE_SPEC_V2": "1"}),
        says="SGLANG_ENABLE_SPEC_V2 has no effect",
        kept=Made(env={"SGLANG_LOG_MS": "1"}),
    ),
    Case(
        rule="W067",
        broken=Made(options={"--watchdog-timeout": 60}),
        says="--watchdog-timeout is 60 s",
        kept=Made(options={"--watchdog-timeout": 3600}),
    ),
    Case(
        rule="W068",
        broken=Made(options={"--skip-server-warmup": True}),
        says="until the first request a stop kills at once",
        kept=Made(),
    ),
    Case(
        rule="W070",
        broken=Made(env={"SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK": "0"}),
        says="a leftover process on a GPU is not noticed",
        kept=Made(env={"SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK": "1"}),
    ),
    Case(
        rule="W015",
        broken=Made(options={"--cuda-graph-backend-decode": "disabled"}),
        says="decoding runs without CUDA graphs",
        kept=Made(options={"--cuda-graph-backend-decode": "full"}),
    ),
    Case(
        rule="W015",
        broken=Made(options={"--disable-decode-cuda-graph": True}),
        says="decoding runs without CUDA graphs",
        kept=Made(algo="none", options={"--disable-decode-cuda-graph": True}),
    ),
    Case(
        rule="W016",
        broken=Made(options={"--cuda-graph-max-bs-decode": 4}),
        says="graphs are captured for 4 requests, and 8 may run",
        kept=Made(options={"--cuda-graph-max-bs-decode": 8}),
    ),
    Case(
        rule="E071",
        broken=Made(server={"served_name": "kimi:k2.6"}),
        says="the served name kimi:k2.6 holds a colon",
        kept=Made(server={"served_name": "kimi-k2.6"}),
        key="served_name",
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
