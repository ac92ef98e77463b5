"""The main job on real systemd hosts over real SSH: deploy, prove, switch, roll back; and what happens when it fails."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.fleet.site import FOLDER, KEY, MODELS, PORT, UNIT, Site, wait_for_line
from tests.fleet.waiting import until

FAULTS = {"SPECCTL_LAB_ALLOW_FAULTS": "1"}


def broken(fault: str) -> dict[str, object]:
    """Return launch settings of an engine with a planted fault."""
    return {"options": {"inject": fault}, "env": FAULTS}


def deployed(site: Site, algo: str = "dflash", host: str = "gpu1") -> None:
    """Deploy an algo on a host, and require that it went well."""
    done = site.run("deploy", "--host", host, "--algo", algo, "--yes")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("algo", ["ddtree", "dflash", "none"])
def test_deploy_writes_proves_and_records(site: Site, algo: str) -> None:
    """A deploy leaves a release, an enabled unit that serves with the algo proven, and a record of it on both sides."""
    done = site.run("deploy", "--host", "gpu1", "--algo", algo, "--yes")

    assert done.returncode == 0, done.stderr
    assert "proof" in done.stderr
    assert site.unit("gpu1", "ActiveState", "UnitFileState") == {"ActiveState": "active", "UnitFileState": "enabled"}
    assert site.host("gpu1").output(["readlink", f"{FOLDER}/current"]).strip() == f"releases/1/{algo}.service"
    row = site.row("gpu1")
    assert (row["state"], row["algo"], row["release"], row["proven"]) == ("ready", algo, "1", True)
    (record,) = site.records("gpu1")
    assert (record["act"], record["result"], record["serving"], record["proof"]) == (
        "deploy",
        "done",
        ["1", algo],
        "proven",
    )
    assert isinstance(record["load_s"], float)
    assert record["weights_bytes"] == sum(path.stat().st_size for path in MODELS.glob("*/*.safetensors"))
    shown = site.host("gpu1").output(["sh", "-c", f"cd {FOLDER}/releases/1 && sha256sum *.service"])
    assert record["digests"] == {name: digest for digest, name in (line.split() for line in shown.splitlines())}
    copy = (site.fleet.home / ".local/state/specctl/records.jsonl").read_text().splitlines()[-1]
    assert json.loads(copy) == record


def test_switch_and_rollback_and_nothing_to_do(site: Site) -> None:
    """A deployed release changes algo without new files, the same again does nothing, and rollback finds what served before."""
    deployed(site)
    assert site.run("switch", "--host", "gpu1", "--algo", "ddtree", "--yes").returncode == 0
    again = site.run("switch", "--host", "gpu1", "--algo", "ddtree", "--yes")
    assert again.returncode == 0
    assert "nothing to do" in again.stdout
    invocation = site.unit("gpu1", "InvocationID")
    same = site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes")
    assert "nothing to do" in same.stdout
    assert site.unit("gpu1", "InvocationID") == invocation

    back = site.run("rollback", "--host", "gpu1", "--yes")

    assert back.returncode == 0, back.stderr
    row = site.row("gpu1")
    assert (row["algo"], row["release"], row["state"]) == ("dflash", "1", "ready")
    assert [record["act"] for record in site.records("gpu1")] == ["deploy", "switch", "rollback"]


def test_changed_inventory_becomes_a_new_release(site: Site) -> None:
    """A changed flag is shown in the plan, written as the next release, and rollback returns to the one before."""
    deployed(site)
    site.describe({"options": {"context-length": 512}})
    plan = site.read("deploy", "--host", "gpu1", "--dry-run")["plans"][0]  # type: ignore[index]  # JSON
    changes = {change["name"]: change["after"] for change in plan["changes"]}
    assert changes == {"--context-length": "512"}
    assert (plan["release"], plan["writes"]) == ("2", True)
    deployed(site)
    assert site.row("gpu1")["release"] == "2"
    assert site.run("rollback", "--host", "gpu1", "--yes").returncode == 0
    assert site.row("gpu1")["release"] == "1"


@pytest.mark.parametrize(
    ("fault", "algo", "said"),
    [
        ("claims-ddtree-runs-linear", "ddtree", "claimed, not proven"),
        ("crash:weights", "dflash", "weights"),
    ],
)
def test_failed_gate_restores_the_release_before(site: Site, fault: str, algo: str, said: str) -> None:
    """A new release that does not prove itself is taken back: the old one serves again, exit 6, recorded as rolled back."""
    deployed(site, "none")
    site.describe(broken(fault))

    done = site.run("deploy", "--host", "gpu1", "--algo", algo, "--yes")

    assert done.returncode == 6, done.stderr
    assert said in done.stderr
    assert "restored" in done.stderr
    assert "rolled back to release 1, none" in done.stderr
    row = site.row("gpu1")
    assert (row["state"], row["algo"], row["release"]) == ("ready", "none", "1")
    last = site.records("gpu1")[-1]
    assert (last["result"], last["release"], last["serving"]) == ("rolled back", "2", ["1", "none"])
    hint = done.stderr.splitlines()[-1].partition("try: specctl ")[2].split()
    log = site.run(*hint, "-n", "1000")
    assert (hint[-2:], log.returncode) == (["--release", "2"], 0), log.stderr
    assert log.stdout.count(" server_args=") == 1  # the start that failed, and not the one that was restored
    assert "/releases/1/" not in log.stdout


def test_first_deploy_that_fails_is_stopped_and_recorded(site: Site) -> None:
    """With nothing to go back to, the server is stopped for good, also for the next boot: exit 8."""
    site.describe(broken("oom:weights"))

    done = site.run("deploy", "--host", "gpu1", "--yes")

    assert done.returncode == 8, done.stderr
    assert "no healthy release is left" in done.stderr
    assert site.unit("gpu1", "ActiveState", "LoadState") == {"ActiveState": "inactive", "LoadState": "not-found"}
    assert site.records("gpu1")[-1]["result"] == "stopped: no healthy release"
    assert site.row("gpu1")["state"] == "not deployed"


def test_wrong_algo_without_proof_is_never_healthy(site: Site) -> None:
    """`specctl health` finds an engine that claims ddtree and decodes linearly."""
    site.describe(broken("claims-ddtree-runs-linear"))
    assert site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--no-gate", "--yes").returncode == 0

    done = site.run("health", "--host", "gpu1")

    assert done.returncode == 6
    assert "claimed, not proven" in done.stderr


def test_health_passes_what_is_proven(site: Site) -> None:
    """The gate on a running server says healthy, with its evidence, and restarts nothing."""
    deployed(site, "ddtree")
    before = site.unit("gpu1", "InvocationID")
    done = site.run("health", "--host", "gpu1")
    assert (done.returncode, "healthy" in done.stdout) == (0, True), done.stderr
    assert site.unit("gpu1", "InvocationID") == before


def test_interrupt_takes_the_deploy_back(site: Site) -> None:
    """Ctrl-C during a load restores what served before and says so: exit 6."""
    deployed(site, "none")
    site.describe({"options": {"load-seconds": 20}})
    process = site.start("deploy", "--host", "gpu1", "--algo", "dflash", "--yes")
    wait_for_line(process, "weights")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 6, errors
    assert "interrupted by the operator" in errors
    assert site.row("gpu1")["algo"] == "none"


def test_canary_that_fails_spares_the_rest(site: Site) -> None:
    """With --canary the other hosts are left alone when the first does not come up."""
    site.describe(broken("crash:weights"))
    done = site.run("deploy", "--all", "--canary", "--yes")
    assert done.returncode == 8
    assert "skipped: gpu2" in done.stderr
    assert [site.row(name)["state"] for name in ("gpu2", "gpu3")] == ["not deployed", "not deployed"]


def test_two_deploys_at_once_do_not_mix(site: Site) -> None:
    """Of two deploys to one host one works and the other is refused, naming who holds the lease: exit 5."""
    site.describe({"options": {"load-seconds": 3}})
    first = site.start("deploy", "--host", "gpu1", "--algo", "dflash", "--yes", "--reason", "the first")
    wait_for_line(first, "start")
    second = site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes")
    _, errors = first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 5), (errors, second.stderr)
    assert "the first" in second.stderr
    assert site.row("gpu1")["algo"] == "dflash"


def test_reboot_starts_what_was_deployed(site: Site) -> None:
    """After a reboot the deployed release serves again by itself, and status knows it as proven."""
    deployed(site, "ddtree")
    site.host("gpu1").reboot()
    until(lambda: site.row("gpu1")["state"] == "ready", what="the server is back", within_s=30.0)
    assert (site.row("gpu1")["algo"], site.row("gpu1")["note"]) == ("ddtree", None)


def test_drain_waits_for_running_requests(site: Site) -> None:
    """A request that runs when a switch begins is finished, not cut off."""
    site.describe({"limits": {"drain": "30s"}})
    deployed(site, "none")
    asked = site.start("ask", "--host", "gpu1", "--tokens", "2000", "--json", "def main():")
    until(lambda: site.row("gpu1")["running"] == 1, what="the request runs", within_s=60.0)
    assert site.run("switch", "--host", "gpu1", "--algo", "dflash", "--yes").returncode == 0
    answer, errors = asked.communicate(timeout=60)
    assert asked.returncode == 0, errors
    assert json.loads(answer)["meta_info"]["finish_reason"]["type"] in ("length", "stop")


def test_lossless_is_proved_against_none(site: Site) -> None:
    """`--prove-lossless` compares greedy output with algo none, token for token."""
    done = site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--prove-lossless", "--yes")
    assert done.returncode == 0, done.stderr
    assert "greedy outputs equal those of none" in done.stderr


def test_secret_reaches_the_engine_and_nothing_else(site: Site) -> None:
    """The key guards the engine; it is in no argv, unit, manifest, record or shown log, and its files are root's alone."""
    deployed(site, "none")
    host = site.host("gpu1")
    # The second is for an agent on the host, whose group may read it once there is one.
    holders = [f"{FOLDER}/agent/keys/api_key", f"{FOLDER}/releases/1/engine.yaml"]
    assert host.output(["stat", "-c", "%a %U:%G", *holders]).splitlines() == ["600 root:root"] * 2
    pid = site.unit("gpu1", "MainPID")["MainPID"]
    assert KEY not in host.output(["cat", f"/proc/{pid}/cmdline"])
    found = host.console(["grep", "-rl", KEY, "/etc/systemd", FOLDER]).stdout.split()
    assert sorted(found) == holders
    assert KEY not in site.run("logs", "--host", "gpu1", "-n", "1000").stdout
    asked = f"import http.client as h; c = h.HTTPConnection('127.0.0.1', {PORT}); c.request('GET', '/v1/models')"
    refused = host.console(["python3", "-c", f"{asked}; print(c.getresponse().status)"])
    assert refused.stdout.strip() == "401"
    copy = (site.fleet.home / ".local/state/specctl/records.jsonl").read_text()
    assert KEY not in copy


def test_unknown_and_changed_host_keys_are_refused(site: Site) -> None:
    """Specctl never talks to a host whose key it cannot vouch for, and says with which command to fix it: exit 3."""
    site.fleet.operator.known_hosts.write_text("")
    unknown = site.run("status", "--host", "gpu1")
    done = site.run("deploy", "--host", "gpu1", "--yes")
    site.fleet.trust_hosts()
    assert done.returncode == 3
    assert "ssh-keyscan" in done.stderr
    assert "unreachable" in unknown.stdout


def test_ordinary_user_deploys_with_sudo(site: Site) -> None:
    """A user who may sudo without a password deploys like root; without the right, the error says what to grant."""
    site.describe(connect={"user": "ops", "sudo": True})
    refused = site.run("deploy", "--host", "gpu1", "--yes")
    assert refused.returncode in (3, 4), refused.stderr
    assert "NOPASSWD" in refused.stderr
    site.host("gpu1").allow_sudo()
    deployed(site)
    assert site.row("gpu1")["state"] == "ready"


def test_stop_start_restart_undeploy(site: Site) -> None:
    """The rest of a server's life: each act does what it says and is recorded."""
    deployed(site)
    assert site.run("stop", "--host", "gpu1", "--yes").returncode == 0
    assert site.row("gpu1")["state"] == "stopped"
    assert site.run("start", "--host", "gpu1", "--yes").returncode == 0
    assert site.run("start", "--host", "gpu1", "--yes").returncode == 0  # it runs already: nothing is started
    row = site.row("gpu1")
    assert (row["state"], row["proven"]) == ("ready", True)
    assert site.run("restart", "--host", "gpu1", "--yes").returncode == 0
    assert site.row("gpu1")["state"] == "ready"
    assert site.run("undeploy", "--host", "gpu1", "--purge", "--yes").returncode == 0
    assert site.row("gpu1")["state"] == "not deployed"
    assert site.unit("gpu1", "LoadState") == {"LoadState": "not-found"}
    acts = [record["act"] for record in site.records("gpu1")]
    assert acts == ["deploy", "stop", "start", "start", "restart", "undeploy"]


def test_manual_lock_keeps_others_out(site: Site) -> None:
    """`specctl lock acquire` makes a deploy exit 5 until it is released."""
    assert site.run("lock", "acquire", "--host", "gpu1", "--reason", "kernel update").returncode == 0
    refused = site.run("deploy", "--host", "gpu1", "--yes")
    assert (refused.returncode, "kernel update" in refused.stderr) == (5, True)
    assert site.run("lock", "release", "--host", "gpu1").returncode == 0
    deployed(site)


def test_exec_passes_output_and_status_on(site: Site) -> None:
    """`specctl exec` is the host's command: its output, its exit status."""
    done = site.run("exec", "--host", "gpu1", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_death_is_told_within_a_second(site: Site) -> None:
    """A process that dies in the load is told from one that loads: the verdict comes with its exit, not at a deadline."""
    site.describe(broken("crash:draft"))
    begin = time.monotonic()
    done = site.run("deploy", "--host", "gpu1", "--yes")
    assert done.returncode == 8
    assert time.monotonic() - begin < 20.0
    assert site.host("gpu1").console(["systemctl", "is-active", UNIT]).stdout.strip() == "inactive"


def test_way_back_knows_the_address_and_key_of_the_old_release(site: Site) -> None:
    """A release of another port and key is taken back to one that answers where it always did, with the key it has."""
    deployed(site, "none")
    site.describe({"port": PORT + 1, **broken("crash:weights")})
    site.env["SITE_KEY"] = "sk-rotated-0123456789abcdef"

    done = site.run("deploy", "--host", "gpu1", "--algo", "dflash", "--yes")

    assert done.returncode == 6, done.stderr
    assert "restored" in done.stderr
    row = site.row("gpu1")
    assert (row["state"], row["release"]) == ("ready", "1")
    site.env.clear()
    site.describe({"port": PORT + 1})
    assert site.run("deploy", "--host", "gpu1", "--algo", "dflash", "--yes").returncode == 0
    assert site.run("rollback", "--host", "gpu1", "--yes").returncode == 0
    assert site.run("health", "--host", "gpu1").returncode == 0


def test_health_proves_a_server_with_a_long_log(site: Site) -> None:
    """What the engine said at its start counts, though thousands of lines came after it; none of them is sent again."""
    deployed(site, "dflash")
    asked = f"import http.client as h; c = h.HTTPConnection('127.0.0.1', {PORT})"
    many = f"{asked}\nfor _ in range(6000): c.request('GET', '/ready'); c.getresponse().read()"
    site.host("gpu1").output(["python3", "-c", many])
    shown = site.host("gpu1").output(["sh", "-c", f"journalctl -u {UNIT} --no-pager | wc -l"])
    assert int(shown) > 6000

    done = site.run("health", "--host", "gpu1")

    assert done.returncode == 0, done.stderr
    assert "Initialized DFLASH draft runner" in done.stdout
