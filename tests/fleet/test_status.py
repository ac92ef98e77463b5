"""`specctl status` on real hosts: by the agent and without one, of a host that is cut off, of engines that load and that froze."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from specctl.errors import EXIT_OK
from tests.fleet.host import Host
from tests.fleet.places import ACT_S, ALLOW_FAULTS
from tests.fleet.site import KEY, PORT, Site
from tests.fleet.waiting import until

HERE = ("--host", "gpu1", "--host", "gpu2")
AGENT, BARE, GONE = "gpu1", "gpu2", "gpu3"
# What asks an engine for something, on its host.
POST = """
import json, sys, urllib.request
url, key, body = sys.argv[1:]
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers), timeout=60).read()
"""


@pytest.fixture
def served(site: Site, wheelhouse: Path) -> Iterator[Site]:
    """Give a site whose hosts serve a tree, the first of them with an agent; the last one's cable is cut."""
    site.describe({"agent": {"mode": "observe", "algos": ["none", "dflash", "ddtree"]}})
    done = site.run("deploy", "--all", "--algo", "ddtree", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    done = site.run("agent", "install", "--host", AGENT, "--wheelhouse", str(wheelhouse), "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    site.host(GONE).cut()
    yield site
    site.host(GONE).mend()
    site.run("agent", "remove", "--host", AGENT, "--purge", "--yes")


def sights(site: Site, *words: str) -> dict[str, Mapping[str, object]]:
    """Return the rows of `specctl status --json` by host."""
    rows = site.read("status", *words)["servers"]
    assert isinstance(rows, list)
    return {row["host"]: row for row in rows}


def post(host: Host, path: str, body: Mapping[str, object]) -> None:
    """Ask a host's engine for something."""
    host.output(["python3", "-c", POST, f"http://127.0.0.1:{PORT}{path}", KEY, json.dumps(body)])


def test_status_on_real_hosts(served: Site) -> None:
    """Status is true of hosts with an agent and without one, of a host that is gone, of frozen engines and of a load; one setup."""
    _require_every_host_is_told_of(served)
    _require_a_live_switch_is_everybodys(served)
    _require_a_watch_prints_what_changes(served)
    _require_frozen_engines_are_seen(served)
    _require_a_load_is_told_of(served)


def _require_every_host_is_told_of(served: Site) -> None:
    """Require an agent's figures, an engine's own, and the reason of a host that is gone, with sources and ages, in one table."""
    until(lambda: sights(served, "--host", AGENT)[AGENT]["running"] == 0, what="the agent sees it", within_s=60.0)
    began_s = time.monotonic()
    found = sights(served, "--all")
    assert time.monotonic() - began_s < 30.0
    for host, source in ((AGENT, "agent"), (BARE, "engine")):
        row = found[host]
        assert (row["state"], row["algo"], row["proven"], row["ready"]) == ("ready", "ddtree", True, True)
        assert (row["running"], row["waiting"], row["kv_ratio"], row["tokens_per_s"]) == (0, 0, 0.0, 0.0)
        figures = row["figures"]
        assert isinstance(figures, dict)
        assert (figures["running"]["source"], figures["running"]["stale"]) == (source, False)
        assert isinstance(row["age_s"], float)
        assert row["age_s"] < 5.0
    agent = found[AGENT]["agent"]
    assert isinstance(agent, dict)
    assert (agent["conduct"], found[BARE]["agent"], found[BARE]["agent_trouble"]) == ("observe", None, None)
    assert str(found[AGENT]["decision"]).startswith("hold")
    gone = found[GONE]
    assert (gone["state"], gone["algo"], gone["running"], gone["seen_age_s"]) == ("unreachable", None, None, None)
    assert "does not answer" in str(gone["reason"])
    table = served.run("status", "--all")
    assert (table.returncode, table.stderr) == (EXIT_OK, "")
    told = " ".join(table.stdout.split())
    assert told.endswith("3 servers · 2 ready · 1 unreachable · 0 running, 0 waiting on the 2 that tell · 0.0 tok/s")


def _require_a_live_switch_is_everybodys(served: Site) -> None:
    """Require that what a person told two running engines is what status, history and the host's agent say, without a start."""
    before = {host: served.row(host)["release"] for host in (AGENT, BARE)}
    for algo, undo in (("dflash", "ddtree"), ("ddtree", "dflash")):
        done = served.run("switch", *HERE, "--live", "--algo", algo, "--reason", "a try", "--yes", timeout_s=ACT_S)
        assert done.returncode == 0, done.stderr
        assert f"undo: specctl switch --live --host gpu1 --host gpu2 --algo {undo}\n" in done.stdout
        until(lambda algo=algo: _agents_algo(served) == algo, what=f"the agent knows of {algo}", within_s=30.0)  # type: ignore[misc]  # bound now
        for host, row in sights(served, *HERE).items():
            assert (row["state"], row["algo"], row["proven"], row["release"]) == ("ready", algo, True, before[host])
            assert isinstance(row["deployed"], dict)
            assert row["deployed"]["algo"] == "ddtree"
            assert "a try" in served.run("history", "--host", host, "-n", "1").stdout


def _agents_algo(served: Site) -> str:
    """Return the algo that the agent says runs on its host."""
    rows = served.read("agent", "status", "--host", AGENT)["agents"]
    assert isinstance(rows, list)
    return str(rows[0]["agent"]["servers"][0]["mode"]).partition(":")[0]


def _require_frozen_engines_are_seen(served: Site) -> None:
    """Require that an engine whose scheduler has stopped is frozen, by its own words and by the agent's, and no figure fresh."""
    for host in (AGENT, BARE):
        post(served.host(host), "/pause_generation", {"mode": "in_place"})
    until(
        lambda: {row["state"] for row in sights(served, *HERE).values()} == {"frozen"},
        what="both are frozen",
        within_s=60.0,
    )
    for row in sights(served, *HERE).values():
        figures = row["figures"]
        assert isinstance(figures, dict)
        assert figures
        assert all(figure["stale"] for figure in figures.values())
        assert row["ready"] is False
    text = served.run("status", *HERE).stdout
    assert text.count(" old") >= 2
    for host in (AGENT, BARE):
        post(served.host(host), "/continue_generation", {})
    until(
        lambda: {row["state"] for row in sights(served, *HERE).values()} <= {"ready", "not ready"},
        what="both go on",
        within_s=60.0,
    )


def _require_a_load_is_told_of(served: Site) -> None:
    """Require that a server that loads says so: its phase, since when, by its past loads until when, and no figure."""
    served.describe({"options": {"inject": "port-late:20"}, "env": ALLOW_FAULTS})
    with served.start("deploy", "--host", BARE, "--algo", "ddtree", "--yes") as deploying:
        until(lambda: sights(served, "--host", BARE)[BARE]["state"] == "loading", what="it loads", within_s=60.0)
        row = sights(served, "--host", BARE)[BARE]
        deploying.communicate(timeout=ACT_S)
    load = row["loading"]
    assert isinstance(load, dict)
    assert load["elapsed_s"] > 0
    assert load["eta_s"] is not None
    assert (row["running"], row["figures"], row["last_act"]) == (None, {}, "switch")
    assert str(row["decision"]).startswith(str(load["phase"]))
    assert "guard armed" in str(row["note"])


def _require_a_watch_prints_what_changes(served: Site) -> None:
    """Require, without a terminal, the table once, then what changed; Ctrl-C ends it with 0, and no traceback."""
    watch = served.start("status", "--watch", "--interval", "0.5", *HERE)
    lines = _Lines(watch)
    lines.until("2 servers · 2 ready")
    post(served.host(BARE), "/pause_generation", {"mode": "in_place"})
    changed = lines.until(BARE)
    assert "HOST" not in changed
    watch.send_signal(signal.SIGINT)
    _, errors = watch.communicate(timeout=30.0)
    assert (watch.returncode, errors) == (EXIT_OK, "")
    post(served.host(BARE), "/continue_generation", {})


class _Lines:
    """Lines that a process prints, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._stdout = process.stdout

    def until(self, words: str) -> str:
        """Read to the line that begins with some words and return it."""
        for line in self._stdout:
            if line.startswith(words):
                return line
        raise AssertionError(f"it ended without {words}")
