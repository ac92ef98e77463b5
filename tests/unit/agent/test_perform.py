"""The performer on this machine: a real deploy under supervisor, then requests of the agent, by a program without third parties."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import httpx
import pytest
import yaml

from specctl.host import clock
from specctl_agent import request as requests
from specctl_agent.request import Request, Result
from tests.agentworld import DDTREE, DFLASH, NONE
from tests.labserver import free_port, wait_until

pytestmark = pytest.mark.slow  # whole lives of real servers

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "specctl" / "lab" / "models"
KEY, ADMIN = "sk-perform-0123456789", "sk-perform-admin-0123456789"
# Whoever imports one of these on a GPU host would need it there.
BLOCKED = (
    "fabric",
    "paramiko",
    "invoke",
    "typer",
    "click",
    "rich",
    "jinja2",
    "torch",
    "pydantic",
    "pydantic_core",
    "yaml",
)
PERFORM = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError(f"{{name}} is not on a GPU host")
sys.meta_path.insert(0, Blocker())
from specctl_agent.perform import main
sys.exit(main(sys.argv[1:]))
"""
Json = dict[str, object]


@dataclass(slots=True)
class Home:
    """A folder with an inventory of one lab server on this machine, and what the agent would have there."""

    folder: Path
    port: int

    @property
    def server(self) -> Path:
        """Return the server's folder."""
        return self.folder / "servers" / "lab"

    @property
    def state(self) -> Path:
        """Return the agent's own folder."""
        return self.folder / "agent"

    def describe(self, **agent: object) -> None:
        """Write the inventory."""
        settings = {
            "mode": "act", "algos": ["none", "dflash", "ddtree"], "knobs": {"ddtree": {"tree_budget": [4, 32]}},
            "outage_ok": True, **agent,
        }  # fmt: skip
        server = {
            "engine": "lab", "target": "target", "draft": "draft", "port": self.port, "algo": "ddtree",
            "python": sys.executable, "knobs": {"ddtree": {"block_size": 8, "tree_budget": 16, "topk_cap": 8},
                                                "dflash": {"block_size": 8}},
            "options": {"enable-metrics": True, "max-running-requests": 4},
            "limits": {"load": "60s", "stall": "30s", "drain": "5s", "stop": "5s"},
            "secrets": {"api_key": "env:LAB_KEY", "admin_api_key": "env:LAB_ADMIN"}, "agent": settings,
        }  # fmt: skip
        inventory = {
            "models": {
                "target": {"path": str(MODELS / "target")},
                "draft": {"kind": "draft", "path": str(MODELS / "dflash"), "target": "target"},
            },
            "servers": {"lab": server},
            "hosts": {
                "here": {
                    "connect": {"via": "local"}, "service_manager": "supervisor", "servers": ["lab"],
                    "state_dir": str(self.folder / "servers"),
                }
            },
        }  # fmt: skip
        (self.folder / "inventory.yaml").write_text(yaml.safe_dump(inventory, sort_keys=False))

    @property
    def env(self) -> Mapping[str, str]:
        """Return the operator's environment."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECCTL_", "XDG_"))}
        return kept | {"HOME": str(self.folder), "LAB_KEY": KEY, "LAB_ADMIN": ADMIN, "NO_COLOR": "1"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a specctl command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "specctl", *words], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def plan(self, *words: str) -> Json:
        """Return what a deploy would do."""
        done = self.run("deploy", "--host", "here", "--dry-run", "--json", *words)
        assert done.returncode == 0, done.stderr
        (plan,) = cast(Sequence[Json], json.loads(done.stdout)["plans"])
        return plan

    def records(self) -> list[Json]:
        """Return the records of the host, as `specctl history` tells them."""
        done = self.run("history", "--host", "here", "--json")
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)["history"]
        return cast(list[Json], row["records"])

    def current(self) -> tuple[str, str]:
        """Return release and algo of what a start would run."""
        _, release, name = (self.server / "current").readlink().parts
        return release, name.removesuffix(".conf")

    def config(self) -> Path:
        """Write the agent's settings and return their path."""
        path = self.folder / "agent.json"
        settings = {"address": "127.0.0.1", "port": 0}
        fields = {"format": 1, "servers": str(self.folder / "servers"), "state": str(self.state), "metrics": settings}
        path.write_text(json.dumps(fields))
        return path

    def perform(self) -> subprocess.CompletedProcess[str]:
        """Wake the performer, in a world without third parties, and without the operator's environment."""
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'agents'}", "HOME": "/nonexistent"}
        argv = [sys.executable, "-c", PERFORM, "--config", str(self.config()), "--user", getpass.getuser()]
        return subprocess.run(argv, cwd=self.folder, env=env, capture_output=True, text=True, timeout=120, check=False)

    def ask(self, wanted: Request) -> Result:
        """File a request, wake the performer, and return its answer."""
        requests.file_request(self.state / requests.FOLDER, wanted)
        done = self.perform()
        assert done.returncode == 0, done.stderr
        assert list((self.state / requests.FOLDER).iterdir()) == []
        result = requests.read_result(self.server / "agent", wanted.id)
        assert result is not None, done.stderr
        return result

    def told(self, algorithm: str | None) -> None:
        """Tell the running engine another algorithm, as the agent would."""
        body = {"server_args": {"speculative_algorithm": algorithm}}
        headers = {"Authorization": f"Bearer {ADMIN}"}
        answer = httpx.post(f"http://127.0.0.1:{self.port}/set_internal_state", json=body, headers=headers, timeout=10)
        assert answer.json() == [True]


def switch(algo: str, release: str = "1", **more: object) -> Request:
    """Return a request for another algo."""
    wanted = Request(
        id=os.urandom(16).hex(), server="lab", kind=requests.SWITCH, reason="the chain pays: +12 %", boot=clock.boot_id(),
        at_s=clock.boottime_s(), release=release, algo=algo,
    )  # fmt: skip
    return replace(wanted, **more)  # type: ignore[arg-type]  # fields of a Request


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a tree deployed from its inventory; tests leave release 1 there, with the tree."""
    made = Home(tmp_path_factory.mktemp("home"), free_port())
    made.state.mkdir()
    made.describe()
    done = made.run("deploy", "--host", "here", "--yes")
    assert done.returncode == 0, done.stderr
    yield made
    made.run("stop", "--host", "here", "--yes")
    for path in made.folder.rglob("supervisord.pid"):
        pid = int(path.read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), what="the end of supervisord")  # type: ignore[misc]  # bound now


def test_a_deploy_leaves_the_note_and_the_keys(home: Home) -> None:
    """The note names no secret; the keys are files that others cannot read; a second deploy has nothing to do."""
    note = (home.server / "agent" / "server.json").read_text()
    assert KEY not in note
    assert ADMIN not in note
    keys = home.server / "agent" / "keys"
    assert {path.name: path.read_text() for path in keys.iterdir()} == {"api_key": KEY, "admin_api_key": ADMIN}
    assert [path.stat().st_mode & 0o007 for path in (keys, *keys.iterdir())] == [0, 0, 0]
    plan = home.plan()
    assert (plan["nothing"], plan["note"]) == ("release 1 runs ddtree already, and every file is the same", False)


def test_a_switch_is_the_operators_own_act_in_the_agents_name(home: Home) -> None:
    """Link, gate, proof and record as ever; the record names the agent and its reason; a deploy keeps what it chose."""
    result = home.ask(switch("dflash"))
    assert (result.outcome, result.serving, result.proof) == ("done", ("1", "dflash"), "proven")
    assert home.current() == ("1", "dflash")
    record = home.records()[-1]
    assert (record["act"], record["result"], record["who"], record["reason"]) == (
        "switch", "done", "specctl-agent", "the chain pays: +12 %",
    )  # fmt: skip
    assert (record["previous"], record["serving"], record["live"]) == (["1", "ddtree"], ["1", "dflash"], False)
    kept = home.plan()
    assert (kept["nothing"], kept["algo"]) == ("release 1 runs dflash already, and every file is the same", "dflash")
    named = home.plan("--algo", "ddtree")
    assert (named["nothing"], named["algo"]) == (None, "ddtree")
    assert home.ask(switch("dflash")).reason.startswith("release 1 runs dflash already")
    assert home.ask(switch("ddtree")).done


def test_a_live_change_is_recorded_if_the_engine_says_so(home: Home) -> None:
    """The engine runs what the request says: recorded beside the deploys, no drift, and no rollback goes to it."""
    home.told("DFLASH")
    wanted = switch(
        "",
        kind=requests.NOTE_LIVE,
        mode=str(DFLASH),
        was=str(DDTREE),
        took_s=0.02,
        proof="proven",
        evidence=("a line",),
    )
    false = replace(wanted, id=os.urandom(16).hex(), mode=str(NONE))
    refused = home.ask(false)
    assert (refused.outcome, "speculative_algorithm is 'DFLASH', not None" in refused.reason) == ("refused", True)
    assert home.ask(wanted).done
    record = home.records()[-1]
    assert (record["live"], record["algo"], record["knobs"]) == (True, "dflash", {"block_size": 8})
    assert (record["serving"], record["proof"], record["who"]) == (None, "proven", "specctl-agent")
    plan = home.plan()
    assert plan["nothing"] == (
        "release 1 runs ddtree already, and every file is the same; "
        "a start would run that, and specctl-agent has it on dflash, block_size 8 live"
    )
    assert plan["warnings"] == []
    shown = home.run("history", "--host", "here").stdout
    assert "live dflash, block_size 8" in shown
    status = home.run("status", "--host", "here", "--json").stdout
    (row,) = json.loads(status)["servers"]
    assert (row["algo"], row["knobs"], row["proven"]) == ("dflash", {"block_size": 8}, True)
    assert row["note"] == "set live by specctl-agent; a start would run ddtree"
    health = home.run("health", "--host", "here")
    assert health.returncode == 0, health.stderr
    home.told("DDTREE")


def test_people_come_first(home: Home) -> None:
    """Held, orders lost, locked, another boot, too old, twice, an algo that is not the agent's: refused, and nothing is touched."""
    before = home.records()
    (home.state / "orders.json").write_text(json.dumps({"servers": {"lab": {"held": "ann looks at it"}}}))
    assert home.ask(switch("dflash")).reason == "the agent is held: ann looks at it"
    (home.state / "orders.json").write_text(json.dumps({"servers": {}, "lost": "it is damaged"}))
    assert home.ask(switch("dflash")).reason == "what people ordered is lost: it is damaged"
    (home.state / "orders.json").write_text("{")
    assert home.ask(switch("dflash")).reason.startswith("what people ordered cannot be read")
    (home.state / "orders.json").unlink()
    assert home.run("lock", "acquire", "--host", "here", "--reason", "mine").returncode == 0
    assert "the server is locked by" in home.ask(switch("dflash")).reason
    assert home.run("lock", "release", "--host", "here").returncode == 0
    assert home.ask(switch("dflash", boot="another")).reason == "it was asked before the host was restarted"
    assert "s ago" in home.ask(switch("dflash", at_s=clock.boottime_s() - 500)).reason
    once = switch("dflash", boot="another")
    first = home.ask(once)
    assert home.ask(replace(once, boot=clock.boot_id())) == first
    assert home.ask(switch("dflash", release="9")).reason.startswith("there is no release 9")
    assert (home.records(), home.current()) == (before, ("1", "ddtree"))


def test_what_is_no_request_is_dropped(home: Home) -> None:
    """A link in the folder is removed and never followed; a server that nobody told of has no answer."""
    folder = home.state / requests.FOLDER
    folder.mkdir(exist_ok=True)
    (folder / f"{'a' * 32}.json").symlink_to(home.server / "agent" / "keys" / "admin_api_key")
    done = home.perform()
    assert (done.returncode, ADMIN in done.stderr) == (3, False)
    assert list(folder.iterdir()) == []
    requests.file_request(folder, switch("dflash", server="other"))
    assert "no server other was told to the agent" in home.perform().stderr
    assert list(folder.iterdir()) == []


def test_the_agent_is_told_without_touching_the_server(home: Home) -> None:
    """Another mode in the inventory: a deploy tells the agent alone, and then it may act no more."""
    home.describe(mode="advise")
    before = home.records()
    plan = home.plan()
    assert (plan["note"], plan["nothing"] is None) == (True, False)
    done = home.run("deploy", "--host", "here", "--yes")
    assert done.returncode == 0, done.stderr
    assert "the agent on the host is told anew" in done.stdout
    assert home.records() == before
    assert home.ask(switch("dflash")).reason == "the inventory says agent.mode: advise"
    home.describe()
    assert home.run("deploy", "--host", "here", "--yes").returncode == 0


def test_a_damaged_release_is_not_started(home: Home) -> None:
    """A file of it was changed on the host: refused, and what serves serves."""
    script = home.server / "releases" / "1" / "dflash.sh"
    text = script.read_text()
    script.write_text(text.replace("--port", "--no-such-flag --port"))
    result = home.ask(switch("dflash"))
    script.write_text(text)
    assert (result.outcome, result.reason) == (
        "refused",
        "release 1 is damaged on the host: dflash.sh differs from the manifest",
    )
    assert home.current() == ("1", "ddtree")
