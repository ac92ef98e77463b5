"""Rules on the names of flags: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import dataclasses

import pytest

from specctl.lint.run import lint
from tests.unit.lint.subjects import Case, Made, check_broken, check_kept, findings, subject

CASES = (
    Case(
        rule="E001",
        broken=Made(options={"--contxt-length": 32768}),
        says="sglang-0.5.23 has no --contxt-length (did you mean --context-length?)",
        kept=Made(options={"--context-length": 32768}),
        key="options.--contxt-length",
    ),
    Case(rule="E001", broken=Made(of="lab", options={"--pag": 1}), says="lab has no --pag", kept=Made(of="lab")),
    Case(
        rule="W001",
        broken=Made(of="fork", options={"--sideways": 1}),
        says="has no --sideways",
        kept=Made(of="fork", algo="ddtree"),
    ),
    Case(
        rule="E002",
        broken=Made(options={"--enable-metric": True}),
        says="--enable-metric could be --enable-metrics or --enable-metrics-for-all-schedulers",
        kept=Made(options={"--enable-mfu-metrics": True}),
    ),
    Case(
        rule="W002",
        broken=Made(options={"--context-len": 32768}),
        says="--context-len is taken for --context-length",
        kept=Made(options={"--context-length": 32768}),
    ),
    Case(
        rule="E003",
        broken=Made(options={"--cuda-graph-max-bs": 8}),
        says="was renamed to --cuda-graph-max-bs-decode",
        kept=Made(options={"--cuda-graph-max-bs-decode": 8}),
    ),
    Case(rule="E003", broken=Made(options={"--crash-on-nan": True}), says="--crash-on-nan was removed"),
    Case(
        rule="W003",
        broken=Made(options={"--grpc-mode": True}),
        says="--grpc-mode is deprecated",
        kept=Made(options={"--smg-grpc-mode": True}),
    ),
    Case(
        rule="W033",
        broken=Made(options={"--num-continuous-decode-steps": 8}),
        says="--num-continuous-decode-steps has no effect",
        kept=Made(options={"--stream-interval": 8}),
    ),
    Case(
        rule="W004",
        broken=Made(options={"--data-parallel-size": 1, "--dp-size": 1}),
        says="--data-parallel-size and --dp-size are one flag",
        kept=Made(options={"--dp-size": 1}),
    ),
    Case(
        rule="E004",
        broken=Made(select={"--config=/etc/engine.yaml": True}),
        says="--config=/etc/engine.yaml is ignored",
        kept=Made(),
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


def test_a_dropped_name_is_not_called_unknown_too() -> None:
    """What was renamed is said once, with the new name, though its parser would call it ambiguous."""
    (one,) = findings(Made(options={"--cuda-graph-bs": ("1", "2")}))
    assert (one.rule.id, one.remedy) == ("E003", "use --cuda-graph-bs-decode instead")


def test_without_a_list_no_name_is_judged() -> None:
    """A profile that names no list of flags leaves names alone."""
    assert findings(Made(of="unlisted", options={"--contxt-length": 1, "--cuda-graph-bs": 1})) == ()


def test_a_fork_lists_flags_of_its_own() -> None:
    """A flag that the engine profile names, be it as an alias of itself, is known for a fork."""
    judged = subject(Made(of="fork", options={"--sideways": 1}))
    profile = judged.server.profile
    known = dataclasses.replace(profile, aliases={**profile.aliases, "--sideways": "--sideways"})
    server = dataclasses.replace(judged.server, profile=known)
    assert [one.rule.id for one in lint(judged)] == ["W001"]
    assert lint(dataclasses.replace(judged, server=server)) == ()
