"""Rules on what the gate needs: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept

CASES = (
    Case(
        rule="W072",
        broken=Made(options={"--log-level": "warning"}),
        says="--log-level warning leaves out",
        kept=Made(options={"--log-level": "DEBUG"}),
        key="options.--log-level",
    ),
    Case(
        rule="W072",
        broken=Made(env={"SGLANG_LOGGING_CONFIG_PATH": "/etc/log.json"}),
        says="SGLANG_LOGGING_CONFIG_PATH may change",
        kept=Made(env={"SGLANG_LOGGING_CONFIG_PATH": ""}),
    ),
    Case(
        rule="N072",
        broken=Made(options={"--decode-log-interval": 100}),
        says="--decode-log-interval is 100, and a smoke may see 64 steps",
        kept=Made(options={"--decode-log-interval": 40}),
    ),
    Case(
        rule="N072",
        broken=Made(of="plugin", algo="ddtree", env={"DDTREE_METRICS_EVERY": "65"}),
        says="DDTREE_METRICS_EVERY is 65, and a smoke may see 64 steps: no tree would be proven",
        kept=Made(env={"DDTREE_METRICS_EVERY": "65"}),
        key="env.DDTREE_METRICS_EVERY",
        also=("E017",),  # less often than the engine's decode lines, too
    ),
    Case(
        rule="E067",
        broken=Made(options={"--ssl-certfile": "/etc/c.pem", "--ssl-keyfile": "/etc/k.pem"}),
        says="--ssl-certfile: the engine answers HTTPS alone",
        kept=Made(options={"--ssl-ca-certs": "/etc/ca.pem"}),
    ),
    Case(
        rule="E068",
        broken=Made(options={"--is-embedding": True}),
        says="--is-embedding: the engine answers no prompt",
        kept=Made(options={"--disaggregation-mode": "null"}),
    ),
    Case(
        rule="E068",
        broken=Made(options={"--disaggregation-mode": "decode"}),
        says="half of a pair answers no prompt alone",
        kept=Made(),
    ),
    Case(
        rule="E064",
        broken=Made(options={"--gated-launch-port": 31000}),
        says="waits for an activation that nobody sends",
        kept=Made(),
    ),
    Case(
        rule="E065",
        broken=Made(options={"--nnodes": 2, "--node-rank": 1}),
        says="--node-rank is 1",
        kept=Made(options={"--nnodes": 1, "--node-rank": 0}),
    ),
    Case(
        rule="W017",
        broken=Made(options={"--load-format": "dummy"}),
        says="--load-format dummy: the weights are random",
        kept=Made(options={"--load-format": "safetensors"}),
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
