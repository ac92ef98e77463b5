"""A real SGLang's life under specctl: deployed, proven, asked, switched, drained, rolled back, stopped.

One server serves all tests of this module, since a start takes half a minute; each test first brings it to the algo that it needs.
"""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from tests.fleet.site import KEY, Site
from tests.fleet.waiting import until
from tests.sglang import environment
from tests.sglang.site import ADMIN_KEY, BLOCK, FOLDER, HOST, PORT, TREE_PROFILE, UNIT, inventory

pytestmark = pytest.mark.sglang

ACT_S = 900.0
READY_WITHIN_S = 180.0
# Together they keep the engine busy for ten seconds: longer than a switch takes to begin.
REQUESTS = 4


def act(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a changing command on the host."""
    return site.run(*arguments, "--host", HOST, "--yes", timeout_s=ACT_S)


def serve(site: Site, algo: str) -> None:
    """Have the algo served; costs nothing where it is already."""
    done = act(site, "deploy", "--algo", algo)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(bare_site: Site) -> Site:
    """Give the site with a plain server deployed."""
    serve(bare_site, "none")
    return bare_site


def test_plain_deploy_is_gated_and_proven(site: Site) -> None:
    """The first deploy ends with a server that is proven not to speculate, and a record with the phases of its load."""
    first = site.records(HOST)[0]

    assert (first["act"], first["result"], first["serving"], first["proof"]) == (
        "deploy",
        "done",
        ["1", "none"],
        "proven",
    )
    assert "no spec_verify_ct" in str(first["evidence"])
    phases = first["phases"]
    assert isinstance(phases, list)
    names = [name for name, *_ in phases]
    assert names[0] == "start"
    assert names[-2:] == [
        "warmup",
        "ready",
    ]  # the port may tell of the warm-up before the journal brings the KV pool's line
    assert "weights" in names
    unit = site.unit(HOST, "ActiveState", "UnitFileState", "NRestarts", "MemoryMax")
    assert unit == {"ActiveState": "active", "UnitFileState": "enabled", "NRestarts": "0", "MemoryMax": str(6 << 30)}


def test_status_and_health_know_the_running_server(site: Site) -> None:
    """Status reads it as ready and idle, health proves it anew, and neither restarts it."""
    serve(site, "none")
    before = site.unit(HOST, "InvocationID")

    healthy = site.run("health", "--host", HOST)

    assert (healthy.returncode, "healthy" in healthy.stdout) == (0, True), healthy.stderr
    row = site.row(HOST)
    assert (row["state"], row["algo"], row["proven"], row["running"]) == ("ready", "none", True, 0)
    assert site.unit(HOST, "InvocationID") == before


def test_keys_that_the_engine_prints_are_not_shown(site: Site) -> None:
    """The engine writes both keys in clear into its log; what specctl shows, keeps and puts on a command line has neither."""
    serve(site, "none")
    host = site.host(HOST)
    journal = host.output(["journalctl", "--unit", UNIT, "--output", "cat", "--all"])
    assert KEY in journal
    assert ADMIN_KEY in journal

    shown = site.run("logs", "--host", HOST, "-n", "10000").stdout

    assert "server_args=" in shown
    assert "[redacted]" in shown
    pid = site.unit(HOST, "MainPID")["MainPID"]
    public = [
        shown,
        host.output(["cat", f"/proc/{pid}/cmdline"]),
        host.output(["cat", f"/etc/systemd/system/{UNIT}"]),
        host.output(["cat", f"{FOLDER}/records.jsonl"]),
        (site.fleet.home / ".local/state/specctl/records.jsonl").read_text(),
    ]
    for secret in (KEY, ADMIN_KEY):
        assert [text.count(secret) for text in public] == [0] * len(public)


def test_key_guards_the_engine(site: Site) -> None:
    """The engine refuses who has no key and answers specctl, which has it from the operator's environment."""
    serve(site, "none")
    probe = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{PORT}/model_info')"
    stranger = site.host(HOST).console(["python3", "-c", probe])
    assert "401" in stranger.stderr
    assert site.run("ask", "--host", HOST, "--tokens", "8", "hello").returncode == 0


def test_tree_is_refused_before_anything_is_touched(site: Site) -> None:
    """This wheel has no DDTREE: asked for by a profile that hopes so, it is refused by the engine's own word; exit 2."""
    serve(site, "none")
    before = (site.unit(HOST, "InvocationID"), site.records(HOST), site.host(HOST).output(["ls", f"{FOLDER}/releases"]))
    site.write(inventory(engine=TREE_PROFILE))

    done = act(site, "deploy", "--algo", "ddtree")

    site.write(inventory())
    assert done.returncode == 2, done.stderr
    assert f"({environment.VERSION}) does not know DDTREE" in done.stderr
    after = (site.unit(HOST, "InvocationID"), site.records(HOST), site.host(HOST).output(["ls", f"{FOLDER}/releases"]))
    assert after == before


def test_switch_drains_and_proves_the_drafter(site: Site) -> None:
    """Requests that run are finished before the switch, and DFLASH is proven by the drafter's line and its verify steps."""
    serve(site, "none")
    # Asks the engine's interpreter what it knows, which takes longer than the requests; the answer is kept.
    assert act(site, "switch", "--algo", "dflash", "--dry-run").returncode == 0
    words = ("ask", "--host", HOST, "--tokens", "1200", "--json")
    asked = [site.start(*words, f"the quick brown fox {number}") for number in range(REQUESTS)]
    until(lambda: site.row(HOST)["running"] == REQUESTS, what="the requests run", within_s=60.0)

    done = act(site, "switch", "--algo", "dflash")

    for process in asked:
        answer, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert json.loads(answer)["meta_info"]["finish_reason"]["type"] in ("length", "stop")
    assert done.returncode == 0, done.stderr
    last = site.records(HOST)[-1]
    assert (last["act"], last["result"], last["serving"]) == ("switch", "done", ["1", "dflash"])
    assert last["durations_s"]["drain"] > 0.5  # type: ignore[index]  # JSON
    evidence = " · ".join(str(one) for one in last["evidence"])  # type: ignore[attr-defined]  # JSON
    assert f'"Initialized DFLASH draft runner.…" with block_size {BLOCK}' in evidence
    steps, accept = re.search(r"(\d+) verify steps, accept ([\d.]+)", evidence).groups()  # type: ignore[union-attr]
    assert int(steps) >= 64
    assert 1.0 <= float(accept) <= BLOCK


def test_rollback_returns_to_the_plain_server(site: Site) -> None:
    """Rollback finds what served before the drafter and proves it again."""
    serve(site, "dflash")

    done = act(site, "rollback")

    assert done.returncode == 0, done.stderr
    last = site.records(HOST)[-1]
    assert (last["act"], last["result"], last["serving"], last["proof"]) == (
        "rollback",
        "done",
        ["1", "none"],
        "proven",
    )


def test_absent_weights_are_named_and_rolled_back(site: Site) -> None:
    """Weights that are missing are refused before the start; waved through, the start names them and is taken back: exit 6."""
    serve(site, "none")
    before = site.unit(HOST, "InvocationID")
    where = "/srv/no-weights"
    for file in (environment.models() / "target").iterdir():
        if file.suffix != ".safetensors":
            site.host(HOST).put(f"{where}/{file.name}", file.read_bytes())
    site.write(inventory(target=where))

    refused = act(site, "deploy", "--algo", "none")
    after = site.unit(HOST, "InvocationID")
    done = act(site, "deploy", "--algo", "none", "--skip-check", "P014=the engine is to say it")

    site.write(inventory())
    assert (refused.returncode, "P014" in refused.stderr, after) == (2, True, before), refused.stderr
    assert done.returncode == 6, done.stderr
    assert f"F014 no weights in {where}" in done.stderr
    row = site.row(HOST)
    assert (row["state"], row["algo"], row["release"]) == ("ready", "none", "1")
    last = site.records(HOST)[-1]
    assert (last["result"], last["release"], last["serving"]) == ("rolled back", "2", ["1", "none"])


def test_dead_scheduler_is_seen_and_started_again(site: Site) -> None:
    """The engine ends itself with 137 when its scheduler is killed; systemd starts it again, and status tells both."""
    serve(site, "none")
    host = site.host(HOST)
    before = site.unit(HOST, "InvocationID")
    host.output(["pkill", "--signal", "KILL", "--full", "sglang::scheduler"])

    until(lambda: site.unit(HOST, "InvocationID") != before, what="another start", within_s=60.0)

    assert int(site.unit(HOST, "NRestarts")["NRestarts"]) == 1
    assert site.row(HOST)["state"] != "ready"
    until(lambda: site.row(HOST)["state"] == "ready", what="it serves again", within_s=READY_WITHIN_S)


def test_stop_waits_for_the_engines_own_end(site: Site) -> None:
    """An idle engine looks only every 5 s whether it may end: it is given that time, and not killed."""
    serve(site, "none")
    began = time.monotonic()

    done = act(site, "stop")

    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 30.0
    assert "killed" not in done.stderr
    assert site.unit(HOST, "ActiveState", "Result") == {"ActiveState": "inactive", "Result": "success"}
    assert site.row(HOST)["state"] == "stopped"


def test_hung_scheduler_does_not_keep_the_server_up(site: Site) -> None:
    """With a frozen scheduler the engine ignores SIGTERM for ever: stop kills it after its limit and says so."""
    serve(site, "none")
    site.write(inventory(drain="5s", stop="5s"))
    site.host(HOST).output(["pkill", "--signal", "STOP", "--full", "sglang::scheduler"])

    done = act(site, "stop")

    site.write(inventory())
    assert done.returncode == 0, done.stderr
    assert "did not stop within 10 s and was killed" in done.stderr
    assert site.host(HOST).console(["pgrep", "--full", "sglang"]).stdout == ""
    assert site.row(HOST)["state"] == "stopped"
