"""The agent on a real host: brought there without internet or pip, started, asked, steered, upgraded, taken off again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.fleet.host import Host
from tests.fleet.site import KEY, ROOT, Site
from tests.fleet.waiting import until

UNIT = "specctl-agent.service"
VERSIONS = "/opt/specctl"
HEAVY = ("fabric", "invoke", "jinja2", "paramiko", "pydantic", "rich", "supervisor", "torch", "typer", "yaml")
# What the agent has loaded, told by the very program and folder that the unit runs.
LOADED = (
    "import runpy, sys; sys.argv = ['agent.py', 'check']\n"
    "try: runpy.run_path('/opt/specctl/current/agent.py', run_name='__main__')\n"
    "except SystemExit: pass\n"
    "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
)
METRICS = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9469/metrics').read().decode())"


@pytest.fixture
def host(site: Site) -> Iterator[Host]:
    """Give a host that has never seen the agent, and leave it so."""
    yield site.host("gpu1")
    site.run("agent", "remove", "--host", "gpu1", "--purge", "--yes")


def unit(host: Host, *names: str) -> dict[str, str]:
    """Return what systemd says of the agent's unit."""
    text = host.output(["systemctl", "show", UNIT, f"--property={','.join(names)}"])
    return dict(line.split("=", 1) for line in text.splitlines())


def agent(site: Site) -> Mapping[str, object]:
    """Return the host's row of `specctl agent status`."""
    rows = site.read("agent", "status", "--host", "gpu1")["agents"]
    assert isinstance(rows, list)
    (found,) = rows
    assert isinstance(found, dict)
    return found


def watched(site: Site) -> Mapping[str, object]:
    """Return what the agent says of its one server; empty while it says nothing."""
    told = agent(site)["agent"]
    servers = told.get("servers") if isinstance(told, dict) else None
    return servers[0] if isinstance(servers, list) and servers else {}


def test_the_agent_lives_on_a_host(site: Site, host: Host, wheelhouse: Path, tmp_path: Path) -> None:
    """One life of an agent on a host with Debian's own Python, no pip, no venv and no internet: from install to removal."""
    site.describe({"agent": {"mode": "act", "algos": ["none", "dflash", "ddtree"], "outage_ok": True}})
    assert site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes").returncode == 0
    install = ("agent", "install", "--host", "gpu1", "--wheelhouse", str(wheelhouse))

    planned = site.run(*install, "--dry-run")
    assert (planned.returncode, "/usr/bin/python3 (3.11)" in planned.stdout) == (0, True), planned.stderr
    assert host.console(["test", "-e", VERSIONS]).returncode == 1
    _require_a_unit_that_will_not_start_is_named(site, host, install)
    done = site.run(*install, "--yes")
    assert done.returncode == 0, done.stderr
    again = site.run(*install, "--yes")
    assert (again.returncode, "runs already" in again.stdout) == (0, True)
    _require_a_version_that_ends_gives_way(site, host, install, tmp_path)

    found = unit(host, "ActiveState", "UnitFileState", "User", "Type")
    assert found == {"ActiveState": "active", "UnitFileState": "enabled", "User": "specctl-agent", "Type": "notify"}
    until(lambda: watched(site).get("activity") == "idle", what="the agent sees the engine", within_s=30.0)
    assert str(watched(site)["mode"]).startswith("ddtree:")
    _require_nothing_heavy(host)
    _require_least_rights(host)

    assert site.run("agent", "hold", "--host", "gpu1", "--reason", "firmware", "--yes").returncode == 0
    pinned = site.run("pin", "--host", "gpu1", "--algo", "dflash", "--for", "6h", "--reason", "a demo", "--yes")
    assert pinned.returncode == 0, pinned.stderr
    refused = site.run("pin", "--host", "gpu1", "--algo", "dflash", "--for", "60d", "--reason", "x", "--yes")
    assert refused.returncode == 2
    until(lambda: "a demo" in str(watched(site)["pinned"]), what="the pin is in force", within_s=10.0)
    page = host.output(["python3", "-c", METRICS])
    assert 'specctl_server_algo{server="lab",algo="ddtree"' in page
    assert 'specctl_agent_mode{server="lab",mode="' in page
    told = site.run("why", "--host", "gpu1", "-n", "5")
    assert (told.returncode, "held: firmware" in told.stdout) == (0, True), told.stderr
    assert "event=order" in site.run("agent", "logs", "--host", "gpu1").stdout
    on_host = host.output(["specctl-agent", "ctl", "status"])
    assert json.loads(on_host)["servers"][0]["server"] == "lab"

    _require_it_comes_back(site, host)

    upgraded = site.run(
        "agent", "upgrade", "--host", "gpu1", "--wheelhouse", str(wheelhouse), "--metrics", "127.0.0.1:9470", "--yes"
    )
    assert upgraded.returncode == 0, upgraded.stderr
    assert str(watched(site)["pinned"]).startswith("dflash")
    assert (
        len(host.output(["sh", "-c", f"ls -d {VERSIONS}/*/version.json"]).split()) == 3
    )  # two versions, and `current`

    _require_that_no_server_is_left_without_requests(site, host)
    removed = site.run("agent", "remove", "--host", "gpu1", "--yes")
    assert (removed.returncode, removed.stdout) == (0, "gpu1  removed\n"), removed.stderr
    assert site.run("agent", "remove", "--host", "gpu1", "--yes").stdout == "gpu1  no agent was there\n"
    assert agent(site)["state"] == "not installed"
    assert host.console(["test", "-e", "/var/lib/specctl-agent/orders.json"]).returncode == 0
    assert site.row("gpu1")["state"] == "ready"


def _require_a_unit_that_will_not_start_is_named(site: Site, host: Host, install: tuple[str, ...]) -> None:
    """Require that not only the agent's own unit is spoken of: the one that will not start, and systemd's reason, are named."""
    waker, here = "specctl-agent-actuate.path", "/etc/systemd/system/specctl-agent-actuate.path.d"
    host.output(["mkdir", "-p", here])
    host.put(f"{here}/zz.conf", b"[Unit]\nAssertPathExists=/nowhere\n")
    done = site.run(*install, "--yes")
    assert done.returncode == 4
    assert f"systemctl restart {waker}: Assertion failed for {waker}" in done.stderr
    assert f"journalctl -u {waker}" in done.stderr
    host.output(["rm", "-r", here])


def _require_a_version_that_ends_gives_way(site: Site, host: Host, install: tuple[str, ...], folder: Path) -> None:
    """Require that the version before runs again, with its own settings, and that the other one's end is told, not its own."""
    config = "/etc/specctl/agent.json"
    before, runs = host.read(config), host.output(["readlink", f"{VERSIONS}/current"])
    shipped = (ROOT / "templates" / f"{UNIT}.j2").read_text()
    (folder / f"{UNIT}.j2").write_text(re.sub(r"(?m)^ExecStart=.*", "ExecStart=/usr/bin/false", shipped))
    done = site.run(*install, "--metrics", "127.0.0.1:9471", "--templates", str(folder), "--yes")
    assert done.returncode == 4
    assert (
        f"{runs.strip()} runs again: systemctl restart {UNIT}: Main process exited, code=exited, status=1"
        in done.stderr
    )
    assert (host.read(config), host.output(["readlink", f"{VERSIONS}/current"])) == (before, runs)
    assert unit(host, "ActiveState") == {"ActiveState": "active"}


def _require_that_no_server_is_left_without_requests(site: Site, host: Host) -> None:
    """Require that an agent which took requests off a server stays until it has let them in again, as it does at its start."""
    journal = "/var/lib/specctl-agent/intents.jsonl"
    step = {
        "id": "a" * 32,
        "server": "lab",
        "cost": "restart",
        "old": "ddtree",
        "new": "dflash",
        "reason": "x",
        "boot": "b",
    }
    off = {"id": "a" * 32, "step": "taken off", "facts": {"by": "hooks", "facts": {}}}
    rows = f"{json.dumps({**step, 'step': 'begun'})}\n{json.dumps(off)}\n"
    host.put(journal, rows.encode())
    host.output(["chown", "specctl-agent:specctl", journal])
    refused = site.run("agent", "remove", "--host", "gpu1", "--yes")
    assert (refused.returncode, "has taken requests off lab" in refused.stderr) == (5, True), refused.stderr
    until(lambda: '"ended"' in host.read(journal).decode(), what="requests come again", within_s=30.0)


def _require_nothing_heavy(host: Host) -> None:
    """Require that the agent can be imported whole, and that nothing of the operator's libraries is there or was loaded."""
    loaded = set(host.output(["/usr/bin/python3", "-I", "-S", "-c", LOADED]).split())
    assert {"specctl_agent", "specctl", "psutil", "pynvml"} <= loaded
    assert not loaded & set(HEAVY)
    there = {name.partition("-")[0].lower() for name in host.output(["ls", f"{VERSIONS}/current/site"]).split()}
    assert {"psutil", "pynvml.py", "specctl", "specctl_agent"} <= there
    assert not there & {*HEAVY, "pyyaml"}


def _require_least_rights(host: Host) -> None:
    """Require that the agent is hardened, reads its key by its group alone, and that its sockets are not for everybody."""
    judged = host.output(["systemd-analyze", "security", "--no-pager", UNIT]).strip().splitlines()[-1]
    assert float(judged.split(":")[1].split()[0]) <= 2.0, judged
    assert host.output(["stat", "-c", "%a %U:%G", "/run/specctl/agent.sock"]).strip() == "660 specctl-agent:specctl"
    assert (
        host.output(["stat", "-c", "%a %U:%G", "/var/lib/specctl/lab/agent/keys/api_key"]).strip()
        == "640 root:specctl-agent"
    )
    stranger = ["setpriv", "--reuid=ops", "--clear-groups"]
    assert host.console([*stranger, "specctl-agent", "ctl", "status"]).returncode == 3
    assert host.console([*stranger, "cat", "/var/lib/specctl/lab/agent/keys/api_key"]).returncode == 1
    pid = unit(host, "MainPID")["MainPID"]
    assert KEY not in host.output(["cat", f"/proc/{pid}/cmdline", f"/proc/{pid}/environ"])


def _require_it_comes_back(site: Site, host: Host) -> None:
    """Require that a killed agent is started again and knows its orders, and that a second one is refused beside it."""
    before = unit(host, "MainPID")["MainPID"]
    host.output(["kill", "-KILL", before])
    until(lambda: unit(host, "MainPID")["MainPID"] not in ("0", before), what="it is started again", within_s=30.0)
    until(lambda: "a demo" in str(watched(site).get("pinned")), what="it knows its orders", within_s=30.0)
    second = host.console(
        ["setpriv", "--reuid=specctl-agent", "--regid=specctl", "--clear-groups", "specctl-agent", "run"]
    )
    assert (second.returncode, "another agent runs on this host" in second.stderr) == (5, True)


def test_a_host_that_cannot_run_it_is_refused_whole(site: Site, host: Host, tmp_path: Path) -> None:
    """Without a wheel that fits, without the right, or without an agent to upgrade, nothing is changed and it is said why."""
    empty = site.run("agent", "install", "--host", "gpu1", "--wheelhouse", str(tmp_path), "--yes")
    assert empty.returncode == 2
    assert "nvidia-ml-py" in empty.stderr
    none = site.run("agent", "upgrade", "--host", "gpu1", "--yes")
    assert (none.returncode, "no agent to upgrade" in none.stderr) == (2, True)
    asked = site.run("why", "--host", "gpu1")
    assert (asked.returncode, "specctl agent install" in asked.stderr) == (4, True)
    held = site.run("agent", "hold", "--host", "gpu1", "--reason", "x", "--yes")
    assert (held.returncode, "does not run on this host" in held.stderr) == (4, True)
    site.describe(connect={"user": "ops"})
    ordinary = site.run("agent", "install", "--host", "gpu1", "--yes")
    assert (ordinary.returncode, "only root can install the agent" in ordinary.stderr) == (2, True)
    assert host.console(["test", "-e", VERSIONS]).returncode == 1
    site.describe()
