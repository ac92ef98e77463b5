"""The doctor on real hosts: a healthy server raises nothing, bent figures and drift are named, a lost host is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.fleet.site import UNIT, Site

HOST = ("--host", "gpu1")
FAULTS = {"SPECCTL_LAB_ALLOW_FAULTS": "1"}


def examined(site: Site, *words: str) -> tuple[int, Mapping[str, Mapping[str, object]], Mapping[str, object]]:
    """Run `specctl doctor` on gpu1; return its exit code, the findings by id, and all of it."""
    done = site.run("doctor", *HOST, *words, "--json", timeout_s=240.0)
    (row,) = json.loads(done.stdout)["servers"]
    assert row["error"] is None, row
    return done.returncode, {one["id"]: one for one in row["findings"]}, row


def ids(row: Mapping[str, object], kind: str) -> set[str]:
    """Return the ids of what passed, or is unknown."""
    found = row[kind]
    assert isinstance(found, list)
    return {one["id"] for one in found}


def deploy(site: Site, algo: str, fault: str | None = None) -> None:
    """Deploy the lab as an inventory has it that the linter finds nothing in, with a fault injected."""
    launch: dict[str, object] = {"algo": algo, "limits": {"load": "60s", "stall": "30s", "drain": "20s", "stop": "10s"}}
    if fault is not None:
        launch |= {"options": {"inject": fault}, "env": FAULTS}
    site.describe(launch)
    done = site.run("deploy", *HOST, "--yes")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("algo", ["ddtree", "dflash"])
def test_a_healthy_server_raises_nothing(site: Site, algo: str) -> None:
    """With a load of our own and without one nothing is found, and what the load is for has passed."""
    deploy(site, algo)
    code, found, row = examined(site, "--fail-on", "note")
    assert (code, found) == (0, {}), row
    code, found, row = examined(site, "--live", "--fail-on", "note")
    assert (code, found) == (0, {}), row
    assert {"C001", "C002", "C005", "C008", "M021", "M022", "M026", "M028", "S009", "S010"} <= ids(row, "passed")


def test_bent_figures_are_named(site: Site) -> None:
    """A depth of another node, a commit without the bonus, gauges that stand still: each is named, and none is called a loss."""
    deploy(site, "ddtree", "metric-depth-off,bonus-missing,stale-gauges")
    code, found, row = examined(site, "--live", "--fail-on", "warning")
    assert (code, set(found) - {"M021"}) == (6, {"M003", "M004", "M022"}), row
    assert {str(one["effect"]).partition(":")[0].partition(";")[0] for one in found.values()} == {"none on tokens"}
    assert "M026" in ids(row, "passed")


def test_lost_tokens_are_named(site: Site) -> None:
    """Drafts that are accepted and thrown away are told from a metric that lies."""
    deploy(site, "dflash", "drafts-discarded")
    _, found, _ = examined(site, "--live")
    assert "M026" in found
    assert found["M026"]["severity"] == "error"


def test_drift_is_named(site: Site) -> None:
    """A unit that somebody edited is a finding without any load, and the text that people read says what to do."""
    deploy(site, "dflash")
    host = site.host("gpu1")
    path = f"/etc/systemd/system/{UNIT}"
    host.put(path, host.read(path) + b"# edited\n")
    code, found, row = examined(site)
    assert (code, set(found)) == (0, {"C001"}), row
    shown = site.run("doctor", *HOST).stdout
    assert "C001  the host has drifted from its release" in shown
    assert "remedy    Deploy again (specctl deploy --host gpu1)" in shown
    assert "checks passed" in shown.splitlines()[-1]


def test_a_stopped_server_is_named(site: Site) -> None:
    """Where nothing serves that is what is said, and what could not be looked at is unknown."""
    deploy(site, "dflash")
    assert site.run("stop", *HOST, "--yes").returncode == 0
    _, found, row = examined(site, "--live")
    assert set(found) == {"C008"}, row
    assert {"M021", "S009", "S010"} <= ids(row, "unknown")


def test_a_lost_host_hides_nothing(site: Site) -> None:
    """A host that cannot be reached is an error beside the others' reports."""
    deploy(site, "dflash")
    site.host("gpu2").cut()
    try:
        done = site.run("doctor", *HOST, "--host", "gpu2", "--json", timeout_s=240.0)
    finally:
        site.host("gpu2").mend()
    rows = {row["host"]: row for row in json.loads(done.stdout)["servers"]}
    assert done.returncode == 7
    assert rows["gpu1"]["error"] is None
    assert rows["gpu2"]["error"]["kind"] == "connect"
    assert rows["gpu2"]["passed"] == []
