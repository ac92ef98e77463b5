"""The whole story on real hosts: load rises behind a real router, the agent follows it live and by restart, and nothing is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import routing
from tests.fleet import network
from tests.fleet import site as sites
from tests.fleet.site import KEY, PORT, ROOT, Site
from tests.fleet.waiting import until
from tests.routing import Clients, Router

pytestmark = pytest.mark.skipif(not routing.installed(), reason=f"sglang-router {routing.VERSION} is not installed")

ROUTER_KEY = "sk-story-router-0123456789"
HOSTS = ("gpu1", "gpu2")
WATCHED = "gpu1"
CALIBRATION = ROOT / "tests" / "data" / "lab" / "agent_calibration.json"
FOLLOWS_S = 120.0
# Longer than the dips of a steady load between two requests, and than a record takes.
MIN_DWELL = "8s"
# Long enough that the number of requests under way is steady: the agent would follow what is not.
TOKENS = 400
# Requests go to who has fewer: taken in turn, the slower server would gather them all.
EVENLY = ("--policy", "cache_aware", "--balance-abs-threshold", "0", "--balance-rel-threshold", "1.0")
# Streams for each server that join at each step: 1, 4, 12.
STREAMS = (1, 3, 8)
UP = [("dflash", True), ("none", True)]
# A build of the lab engine that is to be taken for stock SGLang: nothing about its draft can change while it runs.
STOCK = {"extends": "lab", "algos": {algo: {"live_knobs": []} for algo in ("none", "dflash", "ddtree")}}


def worker(host: str) -> str:
    """Return a host's server as the router reaches it."""
    return f"http://{network.address(host)}:{PORT}"


@dataclass(slots=True)
class Story:
    """Two servers behind a router, the agent on the first of them."""

    site: Site
    router: Router

    def describe(self, engine: str) -> None:
        """Write the inventory: the agent chooses the algo, the inventory keeps `tree_budget`."""
        content = sites.inventory(HOSTS, {}, {})
        content["engine_profiles"] = {"lab-stock": STOCK}
        servers = content["servers"]
        assert isinstance(servers, dict)
        servers["lab"]["engine"] = engine
        servers["lab"]["limits"]["drain"] = "60s"
        hosts = content["hosts"]
        assert isinstance(hosts, dict)
        for name, row in hosts.items():
            row["launch"] = {"bind": network.address(name), "secrets": {"api_key": "env:SITE_KEY"}}
        gateway = {
            "kind": "sglang-router",
            "url": self.router.url,
            "worker": worker(WATCHED),
            "api_key": "env:ROUTER_KEY",
        }
        hosts[WATCHED]["launch"]["agent"] = {
            "mode": "act",
            "algos": ["none", "dflash", "ddtree"],
            "min_dwell": MIN_DWELL,
            "switches_a_day": 100,
            "calibration": "calibration.json",
            "gateway": gateway,
        }
        shutil.copy(CALIBRATION, self.site.fleet.home / "calibration.json")
        self.site.write(content)

    def done(self, *words: str) -> str:
        """Run a command that must succeed; return what it printed."""
        done = self.site.run(*words, timeout_s=180.0)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def watched(self) -> Mapping[str, object]:
        """Return what the agent says of its server; empty while it says nothing."""
        rows = self.site.read("agent", "status", "--host", WATCHED)["agents"]
        assert isinstance(rows, list)
        told = rows[0]["agent"]
        servers = told.get("servers") if isinstance(told, dict) else None
        return servers[0] if isinstance(servers, list) and servers else {}

    def algo(self) -> str:
        """Return the algo that runs, as the agent knows it."""
        return str(self.watched().get("mode")).partition(":")[0]

    def follows(self, algo: str, load: Sequence[Clients]) -> None:
        """Wait until the agent has gone to an algo, and requests are answered after that."""
        until(lambda: self.algo() == algo, what=f"{algo} under this load", within_s=FOLLOWS_S)
        before = sum(each.answered for each in load)
        until(lambda: sum(each.answered for each in load) > before, what="answers after the switch", within_s=60.0)

    def rises(self, algos: Sequence[str]) -> None:
        """Let load rise step by step to where each of these algos is the best, and fall to one stream again; nothing is lost."""
        load = [Clients(self.router, count=count * len(HOSTS), tokens=TOKENS) for count in STREAMS[: len(algos)]]
        with ExitStack() as lasting:
            lasting.enter_context(load[0])
            self.follows(algos[0], load[:1])
            with ExitStack() as passing:
                for place, algo in enumerate(algos[1:], start=1):
                    passing.enter_context(load[place])
                    self.follows(algo, load[: place + 1])
            self.follows(algos[0], load[:1])
        assert [set(each.statuses) for each in load] == [{"whole"}] * len(load), [each.statuses for each in load]

    def switches(self) -> list[tuple[object, bool]]:
        """Return the algo of each act of the agent, and whether it was live, from the host's records; each was done."""
        rows = [row for row in self.site.records(WATCHED) if row["who"] == "specctl-agent"]
        assert {row["result"] for row in rows} <= {"done"}, rows
        return [(row["algo"], bool(row["live"])) for row in rows]

    def recorded(self, least: int) -> list[tuple[object, bool]]:
        """Wait for so many records of the agent's acts and return them: a live change is recorded after it."""
        until(lambda: len(self.switches()) >= least, what="the host's records of the switches", within_s=60.0)
        return self.switches()


@contextmanager
def running(site: Site, folder: Path) -> Iterator[Router]:
    """Run a router on the operator's side that both hosts reach."""
    with site.fleet.entered(), Router(folder, *EVENLY, key=ROUTER_KEY, address=network.CONTROL_ADDRESS) as router:
        yield router


@contextmanager
def told(site: Site) -> Iterator[None]:
    """Add what the agent said to whatever goes wrong."""
    try:
        yield
    except BaseException as error:
        error.add_note(
            site.host(WATCHED).console(["journalctl", "-u", "specctl-agent", "-n", "30", "-o", "cat"]).stdout
        )
        raise


def test_the_agent_follows_the_load(site: Site, wheelhouse: Path, tmp_path: Path) -> None:
    """One to many streams and back: tree, chain, none, tree, first live, then by restart; no request is lost, all books agree."""
    site.env["ROUTER_KEY"] = ROUTER_KEY
    with running(site, tmp_path) as router, told(site):
        story = Story(site, router)
        story.describe("lab")
        for host in HOSTS:
            story.done("deploy", "--host", host, "--algo", "ddtree", "--yes")
            router.register(worker(host), api_key=KEY)
        story.done("agent", "install", "--host", WATCHED, "--wheelhouse", str(wheelhouse), "--yes")
        until(lambda: story.algo() == "ddtree", what="the agent sees the engine", within_s=30.0)

        story.rises(("ddtree", "dflash", "none"))
        live = story.recorded(3)
        # On its way down the load passes where the chain is best.
        assert live in ([*UP, ("ddtree", True)], [*UP, ("dflash", True), ("ddtree", True)])

        story.describe("lab-stock")
        story.done("deploy", "--host", WATCHED, "--algo", "ddtree", "--yes")
        until(lambda: router.healthy(worker(WATCHED)), what="the router has it again", within_s=90.0)
        until(lambda: story.algo() == "ddtree", what="the agent sees the new release", within_s=90.0)
        story.rises(("ddtree", "dflash"))
        assert story.recorded(len(live) + 2)[len(live) :] == [("dflash", False), ("ddtree", False)]

        _books_agree(story)
        story.done("agent", "remove", "--host", WATCHED, "--purge", "--yes")


def _books_agree(story: Story) -> None:
    """Require that why, history, metrics, plan and status tell the same of it."""
    assert "ddtree" in story.done("why", "--host", WATCHED)
    history = story.site.read("history", "--host", WATCHED)
    assert json.dumps(history).count("specctl-agent") >= len(story.switches())
    page = story.site.host(WATCHED).output(
        [
            "python3",
            "-c",
            "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9469/metrics').read().decode())",
        ]
    )
    counted = [line for line in page.splitlines() if line.startswith("specctl_switches_total")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in counted) == len(story.switches()), counted
    row = story.site.row(WATCHED)
    assert (row["state"], row["algo"]) == ("ready", "ddtree")
    planned = story.done("deploy", "--host", WATCHED, "--algo", "ddtree", "--dry-run")
    assert "nothing to do" in planned
