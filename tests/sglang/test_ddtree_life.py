"""The real SGLang with the plugin, under specctl: carried, proven, refused with its reason, moved live by the agent as it serves.

One server serves all tests of this module: a start takes half a minute, and most of what is tested is that none is needed.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fleet import fleet as fleets
from tests.fleet import network
from tests.fleet import wheelhouse as wheels
from tests.fleet.site import KEY, ROOT, Site
from tests.fleet.waiting import until
from tests.routing import Clients
from tests.sglang import environment
from tests.sglang.site import BLOCK, FOLDER, HOST, PLUGIN_PROFILE, PORT, SECRETS, SERVER, UNIT, inventory
from tests.sglang.test_life import act

pytestmark = pytest.mark.sglang

CALIBRATION = ROOT / "tests" / "data" / "lab" / "plugin_calibration.json"
FOLLOWS_S = 120.0
# A request takes seconds, so that the number of requests under way is steady.
TOKENS = 160
AGENT: Mapping[str, object] = {
    "mode": "act",
    "algos": ["none", "dflash", "ddtree"],
    "knobs": {"ddtree": {"tree_budget": [16, 24]}},
    "min_dwell": "5s",
    "switches_a_day": 100,
    "outage_ok": True,
    "calibration": "calibration.json",
}


@dataclass(slots=True)
class Server:
    """The server as a client reaches it."""

    url: str = f"http://{network.address(HOST)}:{PORT}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {KEY}"})


def describe(site: Site, *, table: bool = False, **env: str) -> None:
    """Write the inventory: the engine with the plugin, an agent that may act, and these variables for the engine."""
    launch = {"bind": network.address(HOST), "agent": {**AGENT, "table": table}, "env": env}
    site.write(inventory(engine=PLUGIN_PROFILE, launch=launch))
    shutil.copy(CALIBRATION, site.fleet.home / "calibration.json")


@pytest.fixture(scope="module")
def site(engine_fleet: fleets.Fleet) -> Site:
    """Give the site with a tree deployed."""
    engine_fleet.hosts[HOST].fresh()
    found = Site(fleet=engine_fleet, hosts=(HOST,), env=dict(SECRETS), server=SERVER)
    describe(found)
    done = act(found, "deploy", "--algo", "ddtree")
    assert done.returncode == 0, done.stderr
    return found


def test_release_carries_the_plugin_and_proves_the_tree(site: Site) -> None:
    """Nothing is in the engine's environment: the release holds the plugin, the unit finds it, and the tree's lines prove it."""
    first = site.records(HOST)[0]
    assert (first["result"], first["serving"], first["proof"]) == ("done", ["1", "ddtree"], "proven")
    evidence = str(first["evidence"])
    assert f'Initialized DDTREE worker. block_size=…" with block_size {BLOCK}, tree_budget 16, topk_cap 4' in evidence
    assert 'DDTREE metrics: bs=…" with tree_budget 16, topk_cap 4' in evidence
    host = site.host(HOST)
    plugins = f"{FOLDER}/releases/1/plugins"
    held = host.output(["ls", plugins]).split()
    assert held[0] == "sglang_ddtree"
    assert re.fullmatch(r"sglang_ddtree-[\d.]+\.dist-info", held[1])
    unit = host.output(["cat", f"/etc/systemd/system/{UNIT}"])
    assert f"PYTHONPATH={plugins}:{environment.STANDIN_PATH}" in unit
    assert "SGLANG_PLUGINS=ddtree" in unit
    assert "DDTREE_MAX_BUDGET=24" in unit
    assert list(environment.venv().glob("lib/python3*/site-packages/sglang_ddtree*")) == []
    assert "nothing to do" in act(site, "deploy", "--algo", "ddtree", "--dry-run").stdout


def test_health_knows_the_tree(site: Site) -> None:
    """Health proves it anew, without a start."""
    before = site.unit(HOST, "InvocationID")
    done = site.run("health", "--host", HOST)
    assert done.returncode == 0, done.stderr
    assert site.unit(HOST, "InvocationID") == before


def test_a_person_switches_it_live(site: Site) -> None:
    """Chain, no draft, a wider tree and back, each told to the running engine and proven; what is out of reach is refused."""
    before = site.unit(HOST, "InvocationID")
    for words in (("dflash",), ("none",), ("ddtree", "--knob", "tree_budget=24"), ("ddtree",)):
        done = act(site, "switch", "--live", "--algo", *words)
        assert done.returncode == 0, done.stderr
        assert (site.row(HOST)["algo"], site.row(HOST)["proven"]) == (words[0], True)
        assert site.run("health", "--host", HOST).returncode == 0
    wide = act(site, "switch", "--live", "--algo", "ddtree", "--knob", "tree_budget=25")
    assert (wide.returncode, "the engine took nothing: the engine answers [false]" in wide.stderr) == (4, True)
    block = act(site, "switch", "--live", "--algo", "ddtree", "--knob", "block_size=4")
    assert (block.returncode, "only at its start" in block.stderr) == (2, True)
    knobs = site.row(HOST)["knobs"]
    assert isinstance(knobs, dict)
    assert knobs["tree_budget"] == 16
    assert site.unit(HOST, "InvocationID") == before


def test_plugin_that_does_not_load_is_refused_with_its_reason(site: Site) -> None:
    """Another version of the engine: the interpreter's own word says why, before anything is touched; exit 2."""
    before = (site.unit(HOST, "InvocationID"), site.records(HOST))
    describe(site, STANDIN_SGLANG_VERSION="0.5.24")
    done = act(site, "deploy", "--algo", "ddtree")
    describe(site)
    assert done.returncode == 2, done.stderr
    assert (
        "does not know DDTREE: DDTREE plugin not loaded: DDTREE was tested with SGLang 0.5.23, not with 0.5.24"
        in done.stderr
    )
    assert (site.unit(HOST, "InvocationID"), site.records(HOST)) == before


def test_plugin_that_does_not_load_is_named_and_taken_back(site: Site) -> None:
    """Waved through, the start dies of an unknown name: the plugin's reason is the verdict, and the tree serves again; exit 6."""
    describe(site, STANDIN_SGLANG_VERSION="0.5.24")
    done = act(site, "deploy", "--algo", "ddtree", "--skip-check", "P013=the engine is to say it")
    describe(site)
    assert done.returncode == 6, done.stderr
    assert "N007 the DDTREE plugin was not loaded: DDTREE was tested with SGLang 0.5.23, not with 0.5.24" in done.stderr
    row = site.row(HOST)
    assert (row["state"], row["algo"], row["release"]) == ("ready", "ddtree", "1")


@pytest.fixture
def agent(site: Site, tmp_path: Path) -> Iterator[None]:
    """Install the agent, remove it afterwards."""
    house = wheels.fetch(tmp_path)
    done = act(site, "agent", "install", "--wheelhouse", str(house))
    assert done.returncode == 0, done.stderr
    yield
    act(site, "agent", "remove", "--purge")


def watched(site: Site) -> Mapping[str, object]:
    """Return what the agent says of its server; empty while it says nothing."""
    rows = site.read("agent", "status", "--host", HOST)["agents"]
    assert isinstance(rows, list)
    told = rows[0]["agent"]
    servers = told.get("servers") if isinstance(told, dict) else None
    return servers[0] if isinstance(servers, list) and servers else {}


def follows(site: Site, algo: str) -> None:
    """Wait until the agent has gone to an algo."""
    until(lambda: str(watched(site).get("mode")).partition(":")[0] == algo, what=algo, within_s=FOLLOWS_S)


@contextmanager
def told(site: Site) -> Iterator[None]:
    """Add what the agent and the engine said to whatever goes wrong."""
    try:
        yield
    except BaseException as error:
        for unit in ("specctl-agent", UNIT):
            error.add_note(site.host(HOST).console(["journalctl", "-u", unit, "-n", "40", "-o", "cat"]).stdout)
        raise


def test_the_agent_follows_the_load_without_a_start(site: Site, agent: None) -> None:
    """One stream, six, one: tree, chain, tree, and none by a pin; no start, no request lost, one text, and all books agree."""
    before = site.unit(HOST, "InvocationID", "NRestarts")
    streams = [Clients(Server(), count=count, tokens=TOKENS) for count in (1, 5)]
    with told(site), site.fleet.entered(), ExitStack() as lasting:
        follows(site, "ddtree")
        load = [(time.monotonic(), 1)]
        lasting.enter_context(streams[0])
        follows(site, "ddtree")
        load.append((time.monotonic(), 6))
        with streams[1]:
            follows(site, "dflash")
        load.append((time.monotonic(), 1))
        follows(site, "ddtree")
        load.append((time.monotonic(), 1))
        replay_agrees(site, load)
        pinned = act(site, "pin", "--algo", "none", "--for", "10m", "--reason", "a test")
        assert pinned.returncode == 0, pinned.stderr
        follows(site, "none")
        proven(site, "none")
        assert site.run("health", "--host", HOST, timeout_s=300.0).returncode == 0
        assert act(site, "unpin").returncode == 0
        follows(site, "ddtree")
        proven(site, "ddtree")
    assert [set(each.statuses) for each in streams] == [{"whole"}, {"whole"}], [each.statuses for each in streams]
    assert site.unit(HOST, "InvocationID", "NRestarts") == before
    books_agree(site)


def test_the_engine_follows_the_agents_table(site: Site, agent: None) -> None:
    """One stream, six, one, without a switch: the engine picks by itself; a pin ends the table, and so does the inventory."""
    describe(site, table=True)
    assert act(site, "deploy", "--algo", "ddtree").returncode == 0
    before = (site.unit(HOST, "InvocationID", "NRestarts"), len(moves(site)))
    streams = [Clients(Server(), count=count, tokens=TOKENS) for count in (1, 5)]
    with told(site), site.fleet.entered(), ExitStack() as lasting:
        lasting.enter_context(streams[0])
        has_table(site, "from 1 ddtree")
        follows(site, "ddtree")
        with streams[1]:
            follows(site, "dflash")
            until(lambda: "topk=1 " in newest_line(site), what="the chain's lines", within_s=60.0)
        follows(site, "ddtree")
        until(lambda: "topk=4 " in newest_line(site), what="the tree's lines", within_s=60.0)
        assert site.run("health", "--host", HOST, timeout_s=300.0).returncode == 0
        assert "table-holds" in site.run("why", "--host", HOST).stdout
        assert len(moves(site)) == before[1]

        for algo in ("dflash", "ddtree"):
            assert act(site, "pin", "--algo", algo, "--for", "10m", "--reason", "a test").returncode == 0
            until(lambda: watched(site).get("table") is None, what="no table", within_s=60.0)
            follows(site, algo)
            proven(site, algo)
            assert act(site, "unpin").returncode == 0
            has_table(site, "from 1 ddtree")
        describe(site)
        assert act(site, "deploy", "--algo", "ddtree").returncode == 0
        until(lambda: watched(site).get("table") is None, what="no table", within_s=60.0)
    assert [set(each.statuses) for each in streams] == [{"whole"}, {"whole"}], [each.statuses for each in streams]
    assert site.unit(HOST, "InvocationID", "NRestarts") == before[0]


def replay_agrees(site: Site, load: Sequence[tuple[float, int]]) -> None:
    """Require that a replay of this load, with live switches, goes as often as the agent did."""
    rows = [f"{at_s - load[0][0]:.1f},{concurrency}" for at_s, concurrency in load]
    (site.fleet.home / "load.csv").write_text("\n".join(["time_s,concurrency", *rows]) + "\n")
    model = ("--model", "calibration.json", "--cost", "live", "--start", "ddtree", "--policy", "agent")
    found = site.read("simulate", "--trace", "load.csv", *model)["simulation"]
    assert isinstance(found, dict)
    until(lambda: len(moves(site)) >= 2, what="the records of both switches", within_s=60.0)
    assert found["policies"][0]["switches"] == len(moves(site)) == 2


def has_table(site: Site, begins: str) -> None:
    """Wait until the engine follows a table that begins so."""
    until(lambda: str(watched(site).get("table")).startswith(begins), what=f"a table {begins}", within_s=90.0)


def newest_line(site: Site) -> str:
    """Return the newest line of the tree's figures."""
    shown = site.host(HOST).output(["journalctl", "-u", UNIT, "-n", "60", "-o", "cat"])
    return next((line for line in reversed(shown.splitlines()) if "DDTREE metrics:" in line), "")


def moves(site: Site) -> list[Mapping[str, object]]:
    """Return the host's records of what the agent did."""
    return [row for row in site.records(HOST) if row["who"] == "specctl-agent"]


def proven(site: Site, algo: str) -> None:
    """Wait for the record of the newest change, which must be proven."""
    until(lambda: bool(moves(site)) and moves(site)[-1]["algo"] == algo, what=f"the record of {algo}", within_s=60.0)
    assert moves(site)[-1]["proof"] == "proven", moves(site)[-1]


def books_agree(site: Site) -> None:
    """Require that records, why, history, metrics, status and plan tell the same."""
    made = moves(site)
    assert {(row["result"], row["live"]) for row in made} == {("done", True)}
    assert [row["algo"] for row in made] == ["dflash", "ddtree", "none", "ddtree"]
    assert all(row["proof"] == "proven" for row in made), made
    assert "ddtree" in site.run("why", "--host", HOST).stdout
    assert json.dumps(site.read("history", "--host", HOST)).count("specctl-agent") >= len(made)
    ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9469/metrics').read().decode())"
    page = site.host(HOST).output(["python3", "-c", ask]).splitlines()
    counted = [line for line in page if line.startswith("specctl_switches_total")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in counted) == len(made), counted
    row = site.row(HOST)
    assert (row["state"], row["algo"]) == ("ready", "ddtree")
    assert "nothing to do" in act(site, "deploy", "--algo", "ddtree", "--dry-run").stdout
