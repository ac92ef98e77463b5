"""Rules on the values of flags: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept, findings

CASES = (
    Case(
        rule="W010",
        broken=Made(options={"--lora-strict-loading": False}),
        says="--lora-strict-loading is left out",
        kept=Made(options={"--no-lora-strict-loading": True, "--enable-p2p-check": False}),
        key="options.--lora-strict-loading",
    ),
    Case(
        rule="E005",
        broken=Made(options={"--enable-p2p-check": "true"}),
        says="--enable-p2p-check takes no value, and 'true' follows it",
        kept=Made(options={"--enable-p2p-check": True}),
        key="options.--enable-p2p-check",
    ),
    Case(
        rule="E005",
        broken=Made(options={"--context-length": True}),
        says="takes one value, not none",
        kept=Made(options={"--log-requests-target": ("a", "b"), "--context-length": -1}),
    ),
    Case(
        rule="E006",
        broken=Made(options={"--context-length": "32K"}),
        says="--context-length 32K is not read: it takes a whole number, 32k or 32Ki",
        kept=Made(options={"--context-length": "32Ki"}),
    ),
    Case(
        rule="E006",
        broken=Made(options={"--max-queued-requests": "1k"}),
        says="it takes a whole number",
        kept=Made(options={"--max-queued-requests": 1000}),
    ),
    Case(
        rule="E006",
        broken=Made(options={"--schedule-conservativeness": "much"}),
        says="it takes a number",
        kept=Made(options={"--schedule-conservativeness": 0.3}),
    ),
    Case(
        rule="N006",
        broken=Made(options={"--context-length": "32k"}),
        says="is 32000, not 32768",
        kept=Made(options={"--context-length": "100k"}),
    ),
    Case(
        rule="E007",
        broken=Made(options={"--attention-backend": "flashinfr"}),
        says="does not take 'flashinfr' (did you mean flashinfer?)",
        kept=Made(options={"--attention-backend": "flashinfer"}),
    ),
    Case(
        rule="W007",
        broken=Made(of="fork", options={"--attention-backend": "tree-attention"}),
        says="does not take 'tree-attention'",
        kept=Made(of="fork", options={"--attention-backend": "fa3"}),
    ),
    Case(
        rule="W008",
        broken=Made(options={"--attention-backend": "nsa"}),
        says="nsa is the old name of dsa",
        kept=Made(options={"--attention-backend": "dsa"}),
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
    ("flag", "value", "remedy"),
    [
        ("--context-length", "32K", "write 32Ki (32768) or 32k (32000): suffixes are case sensitive"),
        ("--context-length", "1mb", "write 1Mi (1048576) or 1M (1000000): suffixes are case sensitive"),
        ("--max-queued-requests", "2k", "write 2048 or 2000"),
        ("--context-length", "many", "Write the number in digits."),
    ],
)
def test_what_was_meant_is_said(flag: str, value: str, remedy: str) -> None:
    """A wrong suffix comes with the spellings that are read, and their numbers."""
    (one,) = findings(Made(options={flag: value}))
    assert one.remedy == remedy
