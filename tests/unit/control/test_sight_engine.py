"""What an engine's own answers are worth as figures, on recordings of SGLang 0.5.23 (tests/data/sglang-0.5.23/loads)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specctl.control.sight import Source
from specctl.control.sight_engine import EngineSight, figures, seen

DATA = Path(__file__).parents[2] / "data" / "sglang-0.5.23" / "loads"


def look(name: str, at_s: float = 100.0, ready: int | None = 200) -> EngineSight:
    """Return a look at a recorded answer."""
    return seen(at_s, ready, json.loads((DATA / f"{name}.json").read_text()))


def test_a_busy_engine() -> None:
    """Requests, tokens a second, the share of the KV pool and the age, as the engine told them; no accept length without drafts."""
    found = figures(look("busy-4"))
    assert found.running is not None
    assert (found.running.value, found.waiting and found.waiting.value) == (4, 0)
    assert found.running.source is Source.ENGINE
    assert found.running.age_s == pytest.approx(0.0914, abs=1e-3)
    assert (found.tokens_per_s and found.tokens_per_s.value) == 150.37
    assert (found.kv_ratio and found.kv_ratio.value) == pytest.approx(2044 / 32768)
    assert found.accept_length is None


def test_a_drafting_engine() -> None:
    """The accept length is the engine's average since its start, bonus included."""
    found = figures(look("dflash-busy-4"))
    assert found.accept_length is not None
    assert 1.0 <= found.accept_length.value <= 8.0


def test_an_average_over_two_modes_is_nobodys() -> None:
    """Of an engine that was told another mode since its start, only what it gained between two looks is of that mode."""
    assert figures(look("dflash-busy-4"), moved=True).accept_length is None
    assert figures(look("dflash-busy-4"), moved=True).running == figures(look("dflash-busy-4")).running


def test_an_idle_engine_gives_no_token() -> None:
    """No request runs: 0 tokens a second is a positive observation, whatever the gauge has kept."""
    found = figures(look("idle"))
    assert (found.running and found.running.value, found.tokens_per_s and found.tokens_per_s.value) == (0, 0.0)


def test_without_metrics_the_rate_is_not_known() -> None:
    """An engine that says 0 tokens a second while requests run does not know it: unknown, never 0."""
    found = figures(look("no-metrics-busy"))
    assert found.running is not None
    assert found.running.value > 0
    assert found.tokens_per_s is None


@pytest.mark.parametrize(
    ("name", "frozen"), [("frozen-before", False), ("frozen-3s", False), ("frozen-12s", True), ("frozen-40s", True)]
)
def test_a_stopped_scheduler_is_seen(name: str, frozen: bool) -> None:
    """An engine whose HTTP server answers for a scheduler that stopped is frozen, and its figures are stale."""
    found = look(name)
    assert found.frozen is frozen
    running = figures(found).running
    assert running is not None
    assert running.stale or not frozen


def test_rates_between_two_looks() -> None:
    """With a look before, tokens a second are those of decode steps between the two, and so is the accept length."""
    answer = json.loads((DATA / "dflash-busy-4.json").read_text())
    before = seen(100.0, 200, answer)
    later = json.loads(json.dumps(answer))
    steps, requests, busy, squares, request_busy, tokens = answer["loads"][0]["decode_moments"]
    later["loads"][0]["decode_moments"] = [steps + 20, requests + 80, busy, squares, request_busy, tokens + 240]
    found = figures(seen(104.0, 200, later), before, age_s=0.5)
    assert figures(seen(104.0, 200, later), before, age_s=0.5, moved=True) == found
    assert found.tokens_per_s is not None
    assert found.accept_length is not None
    assert (found.tokens_per_s.value, found.accept_length.value) == (60.0, 3.0)
    assert found.tokens_per_s.age_s == pytest.approx(((before.load and before.load.age_s) or 0.0) + 0.5)


def test_a_restart_between_two_looks() -> None:
    """Sums that went back say nothing: what the single look tells is shown instead."""
    found = figures(look("dflash-idle", 104.0), look("dflash-busy-8", 100.0))
    assert found == figures(look("dflash-idle", 104.0))


def test_nothing_answered() -> None:
    """No answer, and an answer that is none, are no figures at all."""
    assert figures(None) == figures(seen(1.0, None, None)) == figures(seen(1.0, 200, {"loads": "x"})) == figures(None)
    assert figures(None).running is None
