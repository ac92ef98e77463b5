"""Past figures of a server: of its own bench runs and calibration, with nothing of another server among them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.adapters import runs
from specctl.control.mode import parse
from specctl.doctor.evidence import Speed
from specctl.fleet.types import Origin
from specctl.measure.bench import Bench, Measured, Setting, Subject
from specctl.measure.bench_wire import as_wire
from specctl.measure.figures import Figures
from specctl.ops import kept_speeds
from tests import fakes

CHAIN = "dflash:block_size=8"
SETTING = Setting(pace="closed", runs=2, prompts="small", prompts_digest="d")
LEVEL = Measured(
    name="1",
    concurrency=1,
    runs=tuple(Figures(tokens_s=rate, accept_length=2.3, verify_steps_s=48.0) for rate in (110.0, 111.0)),
)


def keep(number: int, *, host: str = "gpu1", server: str = "chat", mode: str = CHAIN) -> None:
    """Keep a bench of gpu1's server, or of another."""
    told = Subject(host=host, server=server, profile="p", mode=mode)
    run_id = f"bench-20261130-10000{number}-abcd"
    runs.keep(
        run_id,
        as_wire(Bench(id=run_id, at="2026-11-30T10:00:00+00:00", subject=told, setting=SETTING, levels=(LEVEL,))),
    )


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_benches_of_this_server_alone_are_figures() -> None:
    """Medians of its own runs; other hosts, other servers and runs of an unknown mode are left out."""
    keep(1)
    keep(2, host="gpu2")
    keep(3, server="other")
    keep(4, mode="warp:speed=9")
    assert kept_speeds.known(fakes.HOST, fakes.SERVER) == (
        Speed(
            mode=parse(CHAIN),
            tokens_s=110.5,
            concurrency=1.0,
            tokens_per_step=2.3,
            steps_s=48.0,
            run="bench-20261130-100001-abcd",
            source="bench of d, None tokens",
        ),
    )


def test_a_damaged_run_hides_no_other(tmp_path: Path) -> None:
    """A file that is no bench is passed over."""
    keep(1)
    (tmp_path / "specctl" / "runs" / "bench-20261130-100009-abcd.json").write_text("{", encoding="utf-8")
    runs.keep("bench-20261130-100008-abcd", {"subject": 7})
    assert len(kept_speeds.known(fakes.HOST, fakes.SERVER)) == 1


def test_measured_points_of_the_calibration_are_figures(tmp_path: Path) -> None:
    """What a calibration measured counts, what it assumes does not."""
    path = tmp_path / "cal.json"
    content = {"modes": {"none": {"1": 98, "8": 500}, CHAIN: {"1": 110}}, "measured": {"none": [1], CHAIN: [1]}}
    path.write_text(json.dumps(content), encoding="utf-8")
    place = Origin(layer="servers", file=str(tmp_path / "inventory.yaml"))
    agent = replace(fakes.SERVER.agent, calibration="cal.json")
    server = replace(fakes.SERVER, agent=agent, provenance={"agent.calibration": place})
    found = kept_speeds.known(fakes.HOST, server)
    assert [(str(one.mode), one.concurrency, one.tokens_s) for one in found] == [
        ("none", 1.0, 98.0),
        (CHAIN, 1.0, 110.0),
    ]


def test_a_calibration_that_cannot_be_read_tells_nothing() -> None:
    """The doctor goes on without."""
    server = replace(fakes.SERVER, agent=replace(fakes.SERVER.agent, calibration="/no/such.json"))
    assert kept_speeds.known(fakes.HOST, server) == ()
