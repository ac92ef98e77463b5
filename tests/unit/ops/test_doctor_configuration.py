"""What the release gives and the engine tells otherwise: numbers alone, no knob that may be set live, and never a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from specctl.ops.doctor_configuration import deployed_mode, differing, made
from specctl.rollout.facts import CurrentRelease, ServerFacts
from tests import fakes


def facts(argv: Sequence[str], algo: str = "dflash", knobs: Mapping[str, int] | None = None) -> ServerFacts:
    """Return facts of a release with this command."""
    manifest = {"launches": {algo: {"argv": list(argv), "env": {}}}, "knobs": {algo: dict(knobs or {})}}
    return ServerFacts(name="chat", current=CurrentRelease(id="1", algo=algo, manifest=manifest))


@pytest.mark.parametrize(
    ("argv", "said", "expected"),
    [
        (("python", "-m", "engine", "--page-size", "1"), {"page_size": 64}, {"--page-size": ("1", "64")}),
        (("--page-size", "1"), {"page_size": 1}, {}),
        (("--mem-fraction-static", "0.85"), {"mem_fraction_static": 0.85}, {}),
        (("--context-length", "32k"), {"context_length": 32000}, {}),
        (("--page-size", "1"), {}, {}),
        (("--page-size", "1"), {"page_size": "64"}, {}),
        (("--block-size", "8"), {"block_size": 16}, {}),
        (("--api-key", "123"), {"api_key": 456}, {}),
        (("--my-token", "123"), {"my_token": 456}, {}),
    ],
)
def test_numbers_that_differ_are_told(argv: tuple[str, ...], said: Mapping[str, object], expected: object) -> None:
    """Texts that the engine resolves, knobs, keys and what it does not tell are no difference."""
    assert differing(fakes.SERVER, facts(argv), said) == expected


def test_nothing_deployed_is_no_difference() -> None:
    """Without a release there is nothing to hold the engine against."""
    assert differing(fakes.SERVER, ServerFacts(name="chat"), {"page_size": 1}) == {}


def test_the_deployed_mode_has_its_knobs() -> None:
    """The release's algo and knobs are what ought to run; knobs that there are not make no mode."""
    assert str(deployed_mode(facts((), knobs={"block_size": 8}))) == "dflash:block_size=8"
    assert deployed_mode(ServerFacts(name="chat")) is None
    assert made("dflash", {"block_size": 1}) is None
    assert made("warp", {}) is None
