"""A launch says exactly what the inventory and the engine profile say, and refuses what cannot work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.engines.types import Credential
from specctl.errors import UnsupportedError
from specctl.rollout import launch as launches
from tests.fakes import DRAFT, HOST, PROFILE, SERVER, with_secrets


def test_argv_keeps_the_order_own_flags_options_speculation() -> None:
    """Own flags come first, then the inventory's options in their order, then speculation."""
    launch = launches.build(HOST, SERVER, "dflash")
    assert launch.argv == (
        *("/opt/venv/bin/python", "-m", "engine"),
        *("--model-path", "/models/big", "--port", "30001", "--host", "127.0.0.1"),
        *("--page-size", "64", "--trust", "--many", "a", "b c"),
        *("--speculative-algorithm", "DFLASH", DRAFT, "/models/small", "--block-size", "16"),
    )


def test_none_has_no_trace_of_speculation() -> None:
    """Algo none starts the target alone."""
    launch = launches.build(HOST, SERVER, "none")
    assert not [word for word in launch.words() if "speculative" in word or "small" in word]
    assert launch.knobs == {}


def test_implied_flags_win_over_options() -> None:
    """What an algo of this build needs replaces the inventory's own value, in its place."""
    words = launches.build(HOST, SERVER, "ddtree").words()
    assert words[words.index("--page-size") + 1] == "1"
    assert words.count("--page-size") == 1
    assert "--disable-overlap-schedule" in words


def test_knobs_without_a_flag_go_to_the_environment() -> None:
    """A build that takes a knob by an environment variable gets it there."""
    launch = launches.build(HOST, SERVER, "ddtree")
    assert launch.env["TOPK_CAP"] == "2"
    assert launch.env["TREE"] == "1"
    assert launch.env["NCCL_ALGO"] == "Ring"
    assert launch.env["PATH"].startswith("/opt/venv/bin:")


def test_keys_go_by_a_credential_and_never_by_value() -> None:
    """A secret is an element that only names its file; hub tokens become an environment file."""
    launch = launches.build(HOST, with_secrets("api_key", "hf_token"), "none")
    assert Credential(name="engine.yaml") in launch.argv
    assert launch.config_secrets == {"api-key": "api_key"}
    assert launch.env_secrets == {"HF_TOKEN": "hf_token"}
    assert "HF_TOKEN" not in launch.env


@pytest.mark.parametrize(
    ("server", "algo", "said"),
    [
        (replace(SERVER, draft=None), "dflash", "has no draft"),
        (replace(SERVER, profile=replace(PROFILE, algos={"none": PROFILE.algos["none"]})), "ddtree", "has no ddtree"),
        (replace(SERVER, knobs={"ddtree": {"tree_budget": 0}}), "ddtree", "outside"),
    ],
)
def test_what_cannot_work_is_refused_with_a_hint(server: object, algo: str, said: str) -> None:
    """A missing draft, an algo that the profile lacks and a knob out of bounds are errors that say what to do."""
    with pytest.raises(UnsupportedError, match=said) as caught:
        launches.build(HOST, server, algo)  # type: ignore[arg-type]  # parametrized
    assert caught.value.hint


def test_possible_algos_need_a_draft_where_the_profile_wants_one() -> None:
    """Without a draft only algo none can be rendered."""
    assert launches.possible(SERVER) == ("none", "dflash", "ddtree")
    assert launches.possible(replace(SERVER, draft=None)) == ("none",)
