"""The agent's switches on a real host: an ordinary user asks, a path unit wakes root's performer, and the host's records tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet import site as sites
from tests.fleet.host import Host
from tests.fleet.site import Site
from tests.fleet.waiting import until

ACT_S = 180.0
STATE = "/var/lib/specctl-agent"
AGENT = {"mode": "act", "algos": ["none", "dflash", "ddtree"], "outage_ok": True}
# The installed agent's own hands, in a journal of their own: what its loop would do once it has decided.
DRIVE = """
import sys, threading, time
from pathlib import Path
sys.path.insert(0, "/opt/specctl/current/site")
from specctl.control import mode as modes
from specctl.fleet.types import AgentMode
from specctl.host import clock
from specctl_agent.actuators import Cost
from specctl_agent.hands import open_hands
from specctl_agent.intent import Intents
from specctl_agent.places import Places
state, boot, (cost, old, new) = Path("/var/lib/specctl-agent"), clock.boot_id(), sys.argv[1:]
place = Places(Path("/var/lib/specctl")).look()[0]["lab"]
intents = Intents(state / "test-intents.jsonl", boot=boot, wall=time.time)
hands = open_hands(place, state=state, intents=intents, boot=boot, stopping=threading.Event())
hands.live.confirm_s = 0.0
report = hands.carry_out(Cost(cost), modes.parse(old), modes.parse(new), "a test", conduct=AgentMode.ACT)
print(report.result, report.mode, report.reason, sep="|")
"""
TREE = "ddtree:block_size=8,topk_cap=8,tree_budget=16"
CHAIN = "dflash:block_size=8"


@pytest.fixture
def host(site: Site, wheelhouse: Path) -> Iterator[Host]:
    """Give a host with a tree and an agent that may act; leave it without the agent."""
    describe(site, live=True)
    done = site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    done = site.run("agent", "install", "--host", "gpu1", "--wheelhouse", str(wheelhouse), "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    yield site.host("gpu1")
    site.run("agent", "remove", "--host", "gpu1", "--purge", "--yes")


def describe(site: Site, *, live: bool, **launch: object) -> None:
    """Write an inventory whose agent may act; `live` false: by a profile that takes nothing while it runs."""
    content = sites.inventory(site.hosts, {"agent": AGENT, **launch}, {})
    cold = {"extends": "lab", "algos": {algo: {"live_knobs": []} for algo in ("none", "dflash", "ddtree")}}
    servers = content["servers"]
    assert isinstance(servers, dict)
    servers["lab"]["algo"] = "ddtree"
    servers["lab"]["engine"] = "lab" if live else "lab-cold"
    site.write(content | {"engine_profiles": {"lab-cold": cold}})


def drive(host: Host, cost: str, old: str, new: str) -> tuple[str, str, str]:
    """Switch as the agent's own user; return result, mode and reason."""
    user = [
        "runuser",
        "-u",
        "specctl-agent",
        "-g",
        "specctl-agent",
        "-G",
        "systemd-journal",
        "--",
        "/usr/bin/python3",
        "-I",
        "-S",
        "-c",
        DRIVE,
    ]
    done = host.console([*user, cost, old, new], timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    result, mode, reason = done.stdout.strip().split("|", 2)
    return result, mode, reason


def last(site: Site) -> Mapping[str, object]:
    """Return what matters of the host's newest record."""
    row = site.records("gpu1")[-1]
    return {name: row[name] for name in ("act", "result", "who", "algo", "serving", "live", "reason")}


def test_an_agent_switches_live_and_by_restart(site: Site, host: Host) -> None:
    """Live, then by restart through root's oneshot, recorded beside the deploys; a reboot starts what the link says."""
    result, mode, reason = drive(host, "live", TREE, CHAIN)
    assert (result, mode) == ("done", CHAIN), reason
    until(lambda: last(site)["live"] is True, what="the live change is recorded", within_s=30.0)
    assert last(site) == {
        "act": "switch", "result": "done", "who": "specctl-agent", "algo": "dflash", "serving": None, "live": True,
        "reason": "a test",
    }  # fmt: skip
    row = site.row("gpu1")
    assert (row["algo"], "set live by specctl-agent; a start would run ddtree" in str(row["note"])) == ("dflash", True)

    refused = site.run("switch", "--host", "gpu1", "--live", "--algo", "ddtree", "--yes")
    assert (refused.returncode, "specctl pin --host gpu1 --algo ddtree" in refused.stderr) == (2, True), refused.stderr

    describe(site, live=False)
    told = site.run("deploy", "--host", "gpu1", "--yes")
    assert (told.returncode, "the agent on the host is told anew" in told.stdout) == (0, True), told.stderr
    done = site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    until(lambda: site.row("gpu1")["algo"] == "ddtree", what="the agent has seen the new start", within_s=30.0)
    row = site.row("gpu1")
    assert "set live" not in str(row["note"])
    result, mode, reason = drive(host, "restart", TREE, CHAIN)
    assert (result, mode, reason.startswith("proven: ")) == ("done", CHAIN, True), reason
    assert last(site) == {
        "act": "switch", "result": "done", "who": "specctl-agent", "algo": "dflash", "serving": [row["release"], "dflash"],
        "live": False, "reason": "a test",
    }  # fmt: skip
    plan = site.read("deploy", "--host", "gpu1", "--dry-run")["plans"]
    assert isinstance(plan, list)
    assert (plan[0]["algo"], plan[0]["nothing"] is None) == ("dflash", False)

    _require_that_people_come_first(site, host)
    _require_least_rights(host)

    host.reboot()
    until(lambda: site.row("gpu1")["state"] == "ready", what="the server is up again", within_s=60.0)
    assert site.row("gpu1")["algo"] == "dflash"
    assert host.output(["systemctl", "is-active", "specctl-agent-actuate.path"]).strip() == "active"


@pytest.mark.soak
def test_a_killed_performer_is_taken_back(site: Site, host: Host) -> None:
    """Root's program dies in the load: the guard puts the tree back, and the agent says that it got no answer."""
    describe(site, live=False, options={"load-seconds": 15}, limits={"confirm": "5s"})
    done = site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    with ThreadPoolExecutor(1) as pool:
        switching = pool.submit(drive, host, "restart", TREE, CHAIN)
        until(lambda: site.row("gpu1")["state"] == "loading", what="the chain loads", within_s=60.0)
        host.output(["systemctl", "kill", "--signal=KILL", "specctl-agent-actuate.service"])
        result, _, reason = switching.result(timeout=60)
    assert (result, "ended without an answer" in reason) == ("broken", True), reason
    until(lambda: site.records("gpu1")[-1]["who"] == "guard", what="the guard took it back", within_s=150.0)
    assert site.records("gpu1")[-1]["serving"] == [site.row("gpu1")["release"], "ddtree"]
    until(lambda: site.row("gpu1")["state"] == "ready", what="the tree serves", within_s=30.0)


def _require_that_people_come_first(site: Site, host: Host) -> None:
    """Require that a lock of the operator's keeps the agent away, and that nothing is left of its request."""
    assert site.run("lock", "acquire", "--host", "gpu1", "--reason", "mine").returncode == 0
    result, _, reason = drive(host, "restart", CHAIN, TREE)
    assert (result, reason.endswith("holds the server")) == ("refused", True)
    assert site.run("lock", "release", "--host", "gpu1").returncode == 0
    assert host.output(["ls", f"{STATE}/requests"]).strip() == ""


def _require_least_rights(host: Host) -> None:
    """Require that nobody but the agent may ask, that a link is never followed, and that root alone answers."""
    asked = f"{STATE}/requests/{'a' * 32}.json"
    assert host.console(["runuser", "-u", "nobody", "--", "touch", asked]).returncode != 0
    secret = "/var/lib/specctl/lab/releases/1/engine.yaml"
    assert host.console(["runuser", "-u", "specctl-agent", "--", "cat", secret]).returncode != 0
    results = "/var/lib/specctl/lab/agent/results"
    assert host.console(["runuser", "-u", "specctl-agent", "--", "touch", f"{results}/x"]).returncode != 0
    host.output(["runuser", "-u", "specctl-agent", "--", "ln", "-s", secret, asked])
    until(lambda: host.console(["test", "-L", asked]).returncode != 0, what="the link is dropped", within_s=30.0)
    log = host.output(["journalctl", "-u", "specctl-agent-actuate.service", "-o", "cat", "--no-pager"])
    assert "cannot be opened" in log
    assert sites.KEY not in log
