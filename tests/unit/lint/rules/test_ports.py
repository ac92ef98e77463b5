"""Rules on ports: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept

CASES = (
    Case(
        rule="E070",
        broken=Made(options={"--nccl-port": 30001}),
        says="--nccl-port takes 30001, which is this server's own port",
        kept=Made(options={"--nccl-port": 31001}),
        key="options.--nccl-port",
    ),
    Case(
        rule="E070",
        broken=Made(options={"--nccl-port": 30002}),
        says="--nccl-port takes 30002, which is the port of server pr",
        kept=Made(options={"--nccl-port": 31002}),
    ),
    Case(
        rule="E070",
        broken=Made(options={"--nccl-port": 31001, "--dist-init-addr": "127.0.0.1:31001"}),
        says="--dist-init-addr takes 31001, which is taken by --nccl-port",
        kept=Made(options={"--nccl-port": 31001, "--dist-init-addr": "127.0.0.1:31002"}),
    ),
    Case(
        rule="E070",
        broken=Made(options={"--nccl-port": 31001}, beside={"options": {"--nccl-port": 31001}}),
        says="which --nccl-port of server pr takes too",
        kept=Made(options={"--nccl-port": 31001}, beside={"options": {"--nccl-port": 31003}}),
    ),
    Case(
        rule="E070",
        broken=Made(options={"--attn-dp-size": 2, "--enable-dp-lm-head": True}, beside={"port": 30235}),
        says="data parallelism (port + 233 and the next) takes 30235",
        kept=Made(options={"--attn-dp-size": 2, "--enable-dp-lm-head": True}),
    ),
    Case(
        rule="N070",
        broken=Made(server={"port": 40000}),
        says="port 40000 lies among those that outgoing connections get (32768-60999)",
        kept=Made(server={"port": 32767}),
    ),
    Case(
        rule="W071",
        broken=Made(server={"port": 80}, unit={"user": "sglang"}),
        says="port 80 is closed to user sglang",
        kept=Made(server={"port": 80}),
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
