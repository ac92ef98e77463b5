"""Rules on keys and reach: each is found where it is broken, silent where it is kept."""

from __future__ import annotations

import pytest

from tests.unit.lint.subjects import Case, Made, check_broken, check_kept, findings

CASES = (
    Case(
        rule="W031",
        broken=Made(server={"bind": "0.0.0.0"}, secrets=()),
        says="port 30001 is open to the network (0.0.0.0) without an API key",
        kept=Made(secrets=()),
        key="bind",
    ),
    Case(
        rule="W031",
        broken=Made(server={"bind": "::"}, secrets=()),
        says="open to the network (::)",
        kept=Made(server={"bind": "::1"}, secrets=()),
    ),
    Case(
        rule="W034",
        broken=Made(server={"bind": "0.0.0.0"}, secrets=("api_key",)),
        says="the key of every client also pauses",
        kept=Made(secrets=("api_key",)),
    ),
    Case(
        rule="E031",
        broken=Made(secrets=("admin_api_key",)),
        says="/server_info needs no key and shows the admin key",
        kept=Made(secrets=("admin_api_key", "api_key")),
    ),
    Case(
        rule="E032",
        broken=Made(secrets=(), options={"--api-key": "sk-planted"}),
        says="--api-key stands with its value in the arguments",
        kept=Made(secrets=("api_key",)),
    ),
    Case(
        rule="E032",
        broken=Made(options={"--ssl-keyfile-password": "sk-planted"}),
        says="--ssl-keyfile-password stands",
        kept=Made(options={"--served-model-name": "token"}),
    ),
    Case(
        rule="E033",
        broken=Made(algo_env={"HF_TOKEN": "hf-planted"}),
        says="HF_TOKEN stands with its value in the unit",
        kept=Made(secrets=("api_key", "admin_api_key", "hf_token")),
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


def test_a_secret_is_never_repeated() -> None:
    """What the linter says of a planted secret does not hold it."""
    made = Made(secrets=(), options={"--api-key": "sk-planted"}, algo_env={"HF_TOKEN": "hf-planted"})
    said = " ".join(f"{one.message} {one.remedy} {one.as_json()}" for one in findings(made))
    assert "E032" in said
    assert "E033" in said
    assert "planted" not in said
