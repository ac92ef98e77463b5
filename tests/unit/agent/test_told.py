"""What the agent tells people of the last seconds: a rate once there is one, and before that only a nought that is certain."""

from __future__ import annotations

import dataclasses

import pytest

from specctl.control.sample.engine import Activity, EngineLoad, EngineSample
from specctl.control.window import Figures
from specctl_agent import told
from specctl_agent.pictures import ServerPicture
from tests.unit.agent.pictured import FULL, SERVER, SUMS


def told_rate(server: ServerPicture) -> object:
    """Return the tokens a second that the agent tells of a server now."""
    rows = told.told_agent(FULL, [server])["servers"]
    assert isinstance(rows, list)
    rate: object = rows[0]["now"]["tokens_per_s"]
    return rate


def seen(running: int | None, now: Figures | None) -> ServerPicture:
    """Return a server of which so many requests are known to run, and these last seconds."""
    sample = None if SERVER.sample is None else dataclasses.replace(SERVER.sample, running=running)
    load = EngineLoad(running=running, waiting=0, age_s=0.1)
    return dataclasses.replace(SERVER, sample=sample, load=load, now=now)


@pytest.mark.parametrize("now", [None, Figures(), Figures(span_s=0.4, known_s=0.4)])
def test_before_the_second_look_only_an_idle_engine_has_a_rate(now: Figures | None) -> None:
    """One look gives no rate; where no request runs no token comes, and that is told."""
    assert told_rate(seen(0, now)) == 0.0
    assert told_rate(seen(3, now)) is None
    assert told_rate(seen(None, now)) is None


def test_a_rate_is_of_the_last_seconds_whatever_runs_now() -> None:
    """Tokens of requests that have just ended are told too."""
    now = Figures(span_s=10.0, known_s=10.0, decoded=SUMS)
    assert told_rate(seen(0, now)) == told_rate(seen(3, now)) == SUMS.tokens / 10.0


def test_an_engine_whose_load_is_not_trusted_has_no_rate() -> None:
    """Without a sample, or one without a count, the rate is not known, idle or not."""
    unknown = EngineSample(at_s=1.0, span_s=1.0, activity=Activity.STALE)
    assert told_rate(dataclasses.replace(seen(0, None), sample=unknown)) is None
    assert told_rate(dataclasses.replace(seen(0, None), sample=None)) is None
