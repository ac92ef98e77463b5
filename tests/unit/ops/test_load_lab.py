"""The load on the real lab engine with its shipped models: what the engine itself counts is what we count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.adapters.local import LocalTransport
from specctl.measure import prompts
from specctl.measure.figures import figures
from specctl.measure.load import Closed, Level, Open
from specctl.ops.engine_http import EngineClient
from specctl.ops.load import run_level
from tests import fakes
from tests.labmodels import Folders
from tests.labserver import LabServer
from tests.unit.measure.loads import most_in_flight
from tests.unit.ops.engines import Here

pytestmark = pytest.mark.slow
MODELS = Path("specctl/lab/models")
PROMPTS = prompts.shipped("code")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineClient]:
    """Serve the chain for the whole module."""
    options = ("--enable-metrics", "--max-running-requests", "16", "--speculative-algorithm", "DFLASH")
    folders = Folders(target=MODELS / "target", draft=MODELS / "dflash")
    with LabServer(folders, tmp_path_factory.mktemp("lab"), *options) as engine:
        engine.ready()
        server = replace(fakes.SERVER, port=engine.port, profile=replace(fakes.PROFILE, engine="lab"))
        yield EngineClient(Here(LocalTransport(fakes.LOCAL)), server)


@pytest.mark.parametrize("concurrency", [1, 4, 12])
def test_engine_and_sender_count_the_same(client: EngineClient, concurrency: int) -> None:
    """By the engine's own counters it served exactly our requests and tokens, and never more at once than asked for."""
    level = Level(pace=Closed(concurrency=concurrency), tokens=48, rounds=2, seed=concurrency)
    run = run_level(client, level, PROMPTS)
    found = figures(run)
    assert run.stopped is None
    assert most_in_flight(run.timings) == concurrency
    assert (found.failed, found.foreign_requests, found.foreign_tokens) == (0, 0.0, 0.0)
    assert found.in_flight is not None
    assert concurrency / 2 < found.in_flight <= concurrency + 1e-9


def test_acceptance_agrees_with_the_engines_sums_over_steps(client: EngineClient) -> None:
    """Accept length by requests, and by the engine's own sums over its decode steps, are the same but for the edges."""
    level = Level(pace=Closed(concurrency=4), tokens=96, rounds=4, seed=77)
    run = run_level(client, level, PROMPTS)
    found = figures(run)
    assert run.before is not None
    assert run.after is not None
    assert run.before.decoded is not None
    assert run.after.decoded is not None
    sums = run.after.decoded.since(run.before.decoded)
    assert sums is not None
    assert found.accept_length == pytest.approx(sums.accept_length, rel=0.1)
    assert found.accept_length is not None
    assert found.verify_steps_s is not None
    # What one request gets is what its steps commit; four of them get it all, but for what lies between two requests.
    assert found.tokens_s is not None
    together = 4 * found.accept_length * found.verify_steps_s
    assert together / 2 < found.tokens_s < together * 1.1


def test_open_loop_serves_every_arrival(client: EngineClient) -> None:
    """A rate that the engine can carry: every request comes to its end, at about its moment."""
    level = Level(pace=Open(requests_s=8.0), tokens=16, warmup=2, rounds=1, seconds=1.5)
    run = run_level(client, level, PROMPTS)
    assert len(run.timings) == 14
    assert all(each.whole for each in run.timings)
    assert figures(run).foreign_requests == 0.0
