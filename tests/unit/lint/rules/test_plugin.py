"""The rule on the DDTREE plugin: what the plugin itself refuses at the start is found before it."""

from __future__ import annotations

import pytest

from sglang_ddtree import refusals
from specctl.engines.types import FlagValue
from specctl.lint.rules import plugin
from tests.unit.lint.subjects import Case, Made, check_broken, check_kept, findings

SAYS = "does not go with the DDTREE plugin"
CASES = (
    Case(
        rule="E017",
        broken=Made(of="plugin", algo="ddtree", options={"--enable-mixed-chunk": True}),
        says=f"--enable-mixed-chunk {SAYS}: a prefill and a tree in one pass were not tried",
        kept=Made(options={"--enable-mixed-chunk": True}),
        key="options.--enable-mixed-chunk",
    ),
    Case(
        rule="E017",
        broken=Made(of="plugin", algo="dflash", options={"--prefill-attention-backend": "fa3"}),
        says=f"--prefill-attention-backend {SAYS}: fa3 does not read a tree's mask",
        kept=Made(of="plugin", algo="dflash", options={"--prefill-attention-backend": "triton"}),
        key="options.--prefill-attention-backend",
    ),
    Case(
        rule="E017",
        broken=Made(of="plugin", algo="ddtree", env={"DDTREE_METRICS_EVERY": "41"}),
        says="DDTREE_METRICS_EVERY is 41, and the engine prints a decode line each 40 steps: a tree's must be among them",
        kept=Made(of="plugin", algo="ddtree", env={"DDTREE_METRICS_EVERY": "40"}),
        key="env.DDTREE_METRICS_EVERY",
    ),
    Case(
        rule="E017",
        broken=Made(
            of="plugin",
            algo="ddtree",
            env={"DDTREE_METRICS_EVERY": "9"},
            options={"--decode-log-interval": 8},
        ),
        says="DDTREE_METRICS_EVERY is 9, and the engine prints a decode line each 8 steps",
        kept=Made(of="plugin", algo="ddtree", options={"--decode-log-interval": 8}),
        key="env.DDTREE_METRICS_EVERY",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_a_broken_launch_is_found(case: Case) -> None:
    """What breaks a rule is found, said with its values, and nothing else is."""
    check_broken(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_a_kept_launch_is_not(case: Case) -> None:
    """The launch beside it, which keeps the rule, is not found."""
    check_kept(case)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--dp-size", 2),
        ("--disaggregation-mode", "prefill"),
        ("--speculative-adaptive", True),
        ("--enable-lora", True),
        ("--speculative-draft-window-size", 64),
    ],
)
def test_each_kind_is_found(option: str, value: FlagValue) -> None:
    """Sizes above one, other modes and switches are each found."""
    found = findings(Made(of="plugin", algo="ddtree", options={option: value}))
    assert [one.message for one in found if one.rule.id == "E017" and option in one.message]


def test_plain_decoding_loads_no_plugin() -> None:
    """The same server without a draft may have all of it."""
    found = findings(Made(of="plugin", algo="none", options={"--enable-lora": True, "--dp-size": 2}))
    assert "E017" not in {one.rule.id for one in found}


def test_the_rule_is_the_plugins_own() -> None:
    """What the plugin refuses and what the linter says that it refuses are the same options and the same backends."""
    refused = {f"--{name.replace('_', '-')}" for name in refusals._UNSUPPORTED}
    assert set(plugin._SWITCHES) == refused
    assert plugin._BACKENDS == refusals.BACKENDS
