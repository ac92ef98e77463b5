"""A calibration over real SSH on a host whose agent acts: the agent is held and resumed, and takes the file that was measured."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from specctl.control import calibration
from specctl.control.mode import mode
from tests.fleet import site as sites
from tests.fleet.host import Host
from tests.fleet.site import Site, wait_for_line
from tests.fleet.waiting import until

ACT_S = 180.0
LIMIT_S = 60.0
AGENT = {"mode": "act", "algos": ["none", "dflash"], "outage_ok": True}
WORDS = ("calibrate", "--host", "gpu1", "-c", "1..4", "--tokens", "32", "--yes")
CHAIN = mode("dflash", {"block_size": 8})
FILE = "calibration-gpu1-lab.json"
ON_HOST = "/var/lib/specctl/lab/agent/calibration.json"
Json = Mapping[str, object]


@pytest.fixture
def host(site: Site, wheelhouse: Path) -> Iterator[Host]:
    """Give a host with a chain and an agent that may act; leave it without the agent."""
    describe(site)
    done = site.run("deploy", "--host", "gpu1", "--algo", "dflash", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    done = site.run("agent", "install", "--host", "gpu1", "--wheelhouse", str(wheelhouse), "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    until(lambda: watched(site).get("server") == "lab", what="the agent watches the server", within_s=60.0)
    yield site.host("gpu1")
    site.run("agent", "remove", "--host", "gpu1", "--purge", "--yes")


def describe(site: Site, **agent: object) -> None:
    """Write an inventory whose agent may act."""
    site.write(sites.inventory(site.hosts, {"agent": {**AGENT, **agent}}, {}))


def agent(site: Site) -> Json:
    """Return what the agent says of itself; empty where it does not answer."""
    (row,) = cast(list[Json], site.read("agent", "status", "--host", "gpu1")["agents"])
    return cast(Json, row["agent"] or {})


def watched(site: Site) -> Json:
    """Return what the agent says of the server; empty before it does."""
    return next(iter(cast(list[Json], agent(site).get("servers", []))), {})


def test_a_calibration_beside_an_agent(site: Site, host: Host) -> None:
    """One that is interrupted and one that is whole: the agent is held, resumed, and takes what was measured; one setup."""
    _require_that_an_interrupted_one_leaves_nothing_behind(site, host)
    _require_that_the_agent_is_held_resumed_and_told(site, host)


def _require_that_an_interrupted_one_leaves_nothing_behind(site: Site, host: Host) -> None:
    """Require after Ctrl-C in the middle that the chain runs, nobody holds the lease, and the agent is resumed; it can go on."""
    process = site.start(*WORDS, "--for", "5m")
    wait_for_line(process, "segments")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 130, errors
    assert "goes on" in errors
    assert watched(site)["held"] is None
    assert site.row("gpu1")["algo"] == "dflash"
    (lock,) = cast(list[Json], site.read("lock", "status", "--host", "gpu1")["locks"])
    assert lock["lease"] is None
    assert host.output(["systemctl", "is-active", "specctl-lab"]).strip() == "active"


def _require_that_the_agent_is_held_resumed_and_told(site: Site, host: Host) -> None:
    """Require that the agent is held meanwhile, and that then the chain runs and a deploy carries the file to the agent."""
    began_s = time.monotonic()
    process = site.start(*WORDS, "--for", f"{LIMIT_S:.0f}s")
    wait_for_line(process, "the agent is in mode act: it is held meanwhile")
    wait_for_line(process, "segments")
    held = watched(site)
    assert str(held["held"]).startswith("calibration calibrate-")
    output, errors = process.communicate(timeout=LIMIT_S + 60)
    assert process.returncode == 0, errors
    assert time.monotonic() - began_s < LIMIT_S + 45.0
    assert watched(site)["held"] is None
    assert (site.row("gpu1")["algo"], site.row("gpu1")["state"]) == ("dflash", "ready")

    content = json.loads((site.fleet.home / FILE).read_text())
    read = calibration.parse(content)
    assert set(read.table.modes) == {mode("none"), CHAIN}
    assert (read.holds_for.profile, read.holds_for.target) == ("lab", "lab-target")
    line = f"hosts: {{gpu1: {{launch: {{agent: {{calibration: {FILE}}}}}}}}}"
    assert line in output

    describe(site, calibration=FILE)
    told = site.run("deploy", "--host", "gpu1", "--yes")
    assert (told.returncode, "told anew" in told.stdout) == (0, True), told.stderr
    assert json.loads(host.output(["cat", ON_HOST])) == content
    assert troubles(site) == []

    strange = {**content, "holds_for": {**content["holds_for"], "target": "another"}}
    (site.fleet.home / FILE).write_text(json.dumps(strange))
    assert site.run("deploy", "--host", "gpu1", "--yes").returncode == 0
    until(lambda: troubles(site) == ["calibration of lab"], what="the agent refuses another model's", within_s=90.0)


def troubles(site: Site) -> list[str]:
    """Return which calibrations the agent cannot use."""
    return [subject for subject in cast(Json, agent(site)["troubles"]) if subject.startswith("calibration")]
