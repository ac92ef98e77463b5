"""Preflight on real hosts: what cannot work is refused before anything is touched, and what cannot be known is let through."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping

import pytest

from tests.fleet import nvidia
from tests.fleet.nvidia import Nvidia
from tests.fleet.site import FOLDER, MODELS, PORT, UNIT, Site
from tests.fleet.waiting import until

HOST = ("--host", "gpu1")
MEMORY_MB = 97887
TWO = {"tp": 2}


@pytest.fixture
def gpu(site: Site) -> Iterator[Nvidia]:
    """A stand-in for nvidia-smi on gpu1, with two sound GPUs and a server that is split over both."""
    with nvidia.installed(site.host("gpu1")) as tool:
        tool.says({"gpus": nvidia.gpus(2, MEMORY_MB), "apps": "", "used": "", "topo": TOPOLOGY})
        yield tool


TOPOLOGY = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-1\nGPU1\tSYS\t X \t0-1\n"


def findings(site: Site, *words: str) -> tuple[int, Mapping[str, Mapping[str, object]]]:
    """Run `specctl preflight` and return its exit code and what each check says."""
    done = site.run("preflight", *HOST, *words, "--json")
    rows = json.loads(done.stdout)["preflight"]
    assert len(rows) == 1
    assert rows[0]["error"] is None, rows[0]
    return done.returncode, {row["id"]: row for row in rows[0]["checks"]["findings"]}


def ends(found: Mapping[str, Mapping[str, object]], level: str) -> set[str]:
    """Return the ids that end on a level."""
    return {name for name, row in found.items() if row["level"] == level}


def facts(site: Site) -> Mapping[str, object]:
    """Return the facts of gpu1."""
    hosts = site.read("facts", *HOST)["hosts"]
    assert isinstance(hosts, list)
    found = hosts[0]
    assert isinstance(found, dict)
    return found


def part(values: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return an object inside another."""
    found = values[name]
    assert isinstance(found, dict)
    return found


def stranger(site: Site) -> str:
    """Start a process on gpu1 that is no server of ours, and return its pid; a fresh host has none."""
    host = site.host("gpu1")
    host.output(["systemd-run", "--quiet", "--unit=specctl-stranger", "sleep", "600"])
    return host.output(["systemctl", "show", "--value", "-p", "MainPID", "specctl-stranger"]).strip()


def serving(site: Site, algo: str = "none") -> str:
    """Deploy, and return the invocation that serves."""
    done = site.run("deploy", *HOST, "--algo", algo, "--yes")
    assert done.returncode == 0, done.stderr
    return site.unit("gpu1", "InvocationID")["InvocationID"]


def untouched(site: Site, invocation: str) -> None:
    """Require that the server which served goes on as if nothing had been asked: same process, same files, same records."""
    assert site.unit("gpu1", "InvocationID", "ActiveState") == {"InvocationID": invocation, "ActiveState": "active"}
    host = site.host("gpu1")
    assert host.output(["readlink", f"{FOLDER}/current"]).strip() == "releases/1/none.service"
    assert host.output(["ls", f"{FOLDER}/releases"]).split() == ["1"]
    assert [record["act"] for record in site.records("gpu1")] == ["deploy"]
    assert "free" in site.run("lock", "status", *HOST).stdout
    row = site.row("gpu1")
    assert (row["state"], row["algo"], row["release"]) == ("ready", "none", "1")


def test_a_host_without_gpus_has_all_its_other_facts(site: Site) -> None:
    """What a host has not is null, fails nothing else, and is — on the screen; a lab server passes all the same."""
    found = facts(site)
    machine, graphics = part(found, "machine"), part(found, "graphics")
    assert (graphics["gpus"], graphics["problem"], graphics["topology"]) == (None, None, None)
    assert machine["systemd_runs"] is True
    assert str(machine["systemd"]).startswith("252")
    assert isinstance(machine["clock_ahead_s"], float)
    assert abs(machine["clock_ahead_s"]) < 30
    servers = found["servers"]
    assert isinstance(servers, list)
    assert part(servers[0], "target")["there"] is True
    assert "  gpus      —" in site.run("facts", *HOST).stdout

    code, checks = findings(site)

    assert (code, ends(checks, "fail"), ends(checks, "unknown")) == (0, set(), set())
    assert {"P001", "P002", "P003", "P004", "P005", "P010", "P011", "P013", "P014", "P015", "P016"} <= ends(
        checks, "pass"
    )


def test_gpus_and_their_links_are_known(site: Site, gpu: Nvidia) -> None:
    """Everything that the driver's tool tells arrives, and is on the screen."""
    gpu.says(
        {
            "gpus": nvidia.read("nvswitch8.gpus.csv"),
            "topo": nvidia.read("nvswitch8.topo.txt"),
            "fabric": nvidia.read("nvswitch8.fabric.csv"),
            "apps": nvidia.read("apps.csv"),
        }
    )
    graphics = part(facts(site), "graphics")
    assert (graphics["driver"], graphics["cuda"], graphics["fabric_manager"]) == ("580.95.05", "13.0", "not-found")
    gpus, processes = graphics["gpus"], graphics["processes"]
    assert isinstance(gpus, list)
    assert isinstance(processes, list)
    assert [(one["memory_bytes"], one["fabric_state"]) for one in gpus] == [(275040 << 20, "Completed")] * 8
    assert [(one["pid"], one["used_bytes"]) for one in processes] == [(4121, 7270 << 20), (4121, None)]
    shown = site.run("facts", *HOST).stdout
    assert "28 pairs NV18" in shown
    assert "4121 python3 7.1 GiB" in shown


def test_a_refused_deploy_leaves_the_old_server_untouched(site: Site, gpu: Nvidia) -> None:
    """A stranger on the GPUs: exit 2 with pid, name and bytes, and the server that served goes on in the same invocation."""
    invocation = serving(site)
    pid = stranger(site)
    gpu.says({"gpus": nvidia.gpus(2, MEMORY_MB), "apps": f"GPU-1, {pid}, /usr/bin/sleep, 7270\n", "topo": TOPOLOGY})
    site.describe(TWO)

    done = site.run("deploy", *HOST, "--algo", "dflash", "--yes")

    assert done.returncode == 2, done.stderr
    assert f"P023 pid {pid} (sleep) holds 7.1 GiB on GPU 1" in done.stderr
    assert "--skip-check P023" in done.stderr
    assert "1 fail" in done.stdout
    untouched(site, invocation)
    for act in (("switch", "--algo", "ddtree"), ("restart",)):
        site.describe(TWO)
        gpu.says({"gpus": "", "apps": ""}, status=18)
        assert site.run(*act, *HOST, "--yes").returncode == 2, act
        untouched(site, invocation)


def test_a_failed_check_is_passed_over_with_a_reason_on_record(site: Site, gpu: Nvidia) -> None:
    """--skip-check lets one failure through, and the record on the host says which and why."""
    gpu.says(
        {
            "gpus": nvidia.gpus(2, MEMORY_MB),
            "apps": f"GPU-1, {stranger(site)}, /usr/bin/sleep, 7270\n",
            "topo": TOPOLOGY,
        }
    )
    site.describe(TWO)
    assert site.run("deploy", *HOST, "--yes").returncode == 2
    assert site.host("gpu1").console(["test", "-e", f"{FOLDER}/records.jsonl"]).returncode == 1

    done = site.run("deploy", *HOST, "--yes", "--skip-check", "P023=a drill")

    assert done.returncode == 0, done.stderr
    assert "1 waived" in done.stdout
    (record,) = site.records("gpu1")
    assert (record["result"], record["skipped_checks"]) == ("done", {"P023": "a drill"})


def test_a_waiver_of_the_inventory_passes_a_check_over(site: Site, gpu: Nvidia) -> None:
    """A waiver beside the linter's, with its reason, in the open."""
    gpu.says({"gpus": nvidia.gpus(2, MEMORY_MB, mig="Enabled"), "apps": "", "topo": TOPOLOGY})
    site.describe(TWO)
    code, checks = findings(site)
    assert (code, ends(checks, "fail")) == (2, {"P027"})
    site.describe({**TWO, "waivers": {"P027": "the lab needs no GPU"}})
    code, checks = findings(site)
    assert (code, checks["P027"]["waived"]) == (0, "the lab needs no GPU")


def test_weights_that_do_not_fit_are_refused(site: Site, gpu: Nvidia) -> None:
    """GPUs of one megabyte: told with every figure."""
    gpu.says({"gpus": nvidia.gpus(2, 1), "apps": "", "topo": TOPOLOGY})
    site.describe(TWO)
    code, checks = findings(site)
    assert (code, ends(checks, "fail")) == (2, {"P030"})
    assert "they do not fit" in str(checks["P030"]["reason"])


def test_a_driver_that_was_updated_under_the_kernel_is_refused(site: Site, gpu: Nvidia) -> None:
    """Nvidia-smi's own words are the reason, a reboot the remedy, and the other checks still speak."""
    gpu.says({"gpus": nvidia.read("mismatch.txt"), "version": nvidia.read("mismatch.txt")}, status=18)
    site.describe(TWO)
    code, checks = findings(site)
    assert (code, ends(checks, "fail")) == (2, {"P020"})
    assert str(checks["P020"]["reason"]).startswith("Failed to initialize NVML: Driver/library version mismatch")
    assert "reboot gpu1" in str(checks["P020"]["remedy"])
    assert "P014" in ends(checks, "pass")


def test_a_driver_that_never_answers_delays_and_fails_nothing_else(site: Site, gpu: Nvidia) -> None:
    """A tool that hangs is given up within its time; its facts alone are missing."""
    gpu.hangs()
    site.describe(TWO)
    code, checks = findings(site)
    assert (code, ends(checks, "fail")) == (2, {"P020"})
    assert "did not answer within 10 s" in str(checks["P020"]["reason"])
    assert "P013" in ends(checks, "pass")


def test_nccl_is_held_against_the_topology(site: Site, gpu: Nvidia) -> None:
    """A level that does not reach from socket to socket is warned of, its old number explained, and refuses nothing."""
    site.describe({**TWO, "env": {"NCCL_P2P_LEVEL": "2"}})
    code, checks = findings(site)
    assert (code, checks["P041"]["level"]) == (0, "warn")
    assert "NCCL_P2P_LEVEL=2 (the old number of PXB)" in str(checks["P041"]["reason"])
    assert "W052" not in checks


def test_a_port_that_a_stranger_holds_is_refused(site: Site) -> None:
    """The holder is named before the load, not after it."""
    invocation = serving(site)
    host = site.host("gpu1")
    free = PORT + 1
    host.output(["systemd-run", "--unit=specctl-stranger", "python3", "-m", "http.server", str(free)])
    until(lambda: listens(site, free), what="the stranger listens", within_s=20.0)
    move(site, free)
    done = site.run("deploy", *HOST, "--yes")
    assert done.returncode == 2
    assert f"P005 port {free} is held by python3" in done.stderr
    assert site.unit("gpu1", "InvocationID")["InvocationID"] == invocation


def listens(site: Site, port: int) -> bool:
    """Say whether somebody listens on a port of gpu1."""
    return f":{port:04X} " in site.host("gpu1").output(["cat", "/proc/net/tcp"])


def move(site: Site, port: int) -> None:
    """Give the server another port."""
    path = site.fleet.home / "inventory.yaml"
    path.write_text(path.read_text().replace(f"port: {PORT}", f"port: {port}"))


def rewrite(site: Site, old: str, new: str) -> None:
    """Change words of the inventory."""
    path = site.fleet.home / "inventory.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


MISSING = (
    (str(MODELS / "dflash"), "/var/lib/models/gone", "P015"),
    (str(MODELS / "target"), "/var/lib/models/gone", "P014"),
    (sys.executable, "/opt/gone/bin/python", "P010"),
    (sys.executable, "/usr/bin/python3", "P011"),
)


def test_what_is_missing_on_the_host_is_refused(site: Site) -> None:
    """No draft, no target, no interpreter, no engine: each is one id, and a deploy ends with exit 2, the old server untouched."""
    invocation = serving(site)
    for old, new, check in MISSING:
        site.describe()
        rewrite(site, old, new)
        code, checks = findings(site)
        assert (code, check in ends(checks, "fail")) == (2, True), check
        assert new in str(checks[check]["reason"])
        assert site.run("deploy", *HOST, "--yes").returncode == 2, check
    site.describe()
    untouched(site, invocation)


def test_a_draft_of_another_target_is_refused(site: Site) -> None:
    """Hidden size and vocabulary are read on the host, whatever the inventory calls the draft."""
    host = site.host("gpu1")
    config = json.loads((MODELS / "dflash" / "config.json").read_text())
    host.put("/var/lib/models/odd/config.json", json.dumps({**config, "hidden_size": 128}).encode())
    host.put("/var/lib/models/odd/model.safetensors", (MODELS / "dflash" / "model.safetensors").read_bytes())
    with contextlib.ExitStack() as stack:
        stack.callback(host.output, ["rm", "-rf", "/var/lib/models"])
        rewrite(site, str(MODELS / "dflash"), "/var/lib/models/odd")
        code, checks = findings(site)
    assert (code, ends(checks, "fail")) == (2, {"P016"})
    assert "hidden size 128, the target has 64" in str(checks["P016"]["reason"])


def test_a_masked_unit_is_refused(site: Site) -> None:
    """Somebody forbade the unit to start: told before the drain, not after the stop."""
    host = site.host("gpu1")
    host.output(["systemctl", "mask", UNIT])
    try:
        code, checks = findings(site)
        assert (code, ends(checks, "fail")) == (2, {"P002"})
        assert site.run("deploy", *HOST, "--yes").returncode == 2
    finally:
        host.output(["systemctl", "unmask", UNIT])


def test_a_held_lease_is_told_in_the_plan_and_refused_as_held(site: Site) -> None:
    """The plan warns of it; the exit code stays that of a held lease."""
    assert site.run("lock", "acquire", *HOST, "--reason", "kernel update").returncode == 0
    done = site.run("deploy", *HOST, "--yes")
    assert (done.returncode, "P006" in done.stdout, "kernel update" in done.stdout) == (5, True, True)


def test_one_refused_host_does_not_keep_the_others(site: Site, gpu: Nvidia) -> None:
    """Of three hosts one is refused: the others are deployed, exit 7, and the refused one has nothing on it."""
    gpu.says({"gpus": nvidia.gpus(2, 1), "apps": "", "topo": TOPOLOGY})
    site.describe(TWO)
    done = site.run("deploy", "--all", "--yes")
    assert done.returncode == 7, done.stderr
    assert "gpu1: P030" in done.stderr
    assert {site.row(name)["state"] for name in ("gpu2", "gpu3")} == {"ready"}
    assert site.row("gpu1")["state"] == "not deployed"


def test_an_unknown_check_is_no_check(site: Site) -> None:
    """A misspelled id refuses the command before any host is reached."""
    done = site.run("deploy", *HOST, "--yes", "--skip-check", "P999")
    assert (done.returncode, "there is no check P999" in done.stderr) == (2, True)


def test_rollback_checks_what_the_old_release_needs(site: Site) -> None:
    """The release before names a draft that is gone meanwhile: refused, and the present one serves on."""
    host = site.host("gpu1")
    kept = "/var/lib/models/kept"
    for name in ("config.json", "model.safetensors"):
        host.put(f"{kept}/{name}", (MODELS / "dflash" / name).read_bytes())
    rewrite(site, str(MODELS / "dflash"), kept)
    serving(site, "dflash")
    site.describe()
    assert site.run("deploy", *HOST, "--algo", "dflash", "--yes").returncode == 0
    invocation = site.unit("gpu1", "InvocationID")
    host.output(["rm", "-rf", "/var/lib/models"])

    done = site.run("rollback", *HOST, "--yes")

    assert done.returncode == 2, done.stderr
    assert f"P015 there is no folder {kept}" in done.stderr
    assert site.unit("gpu1", "InvocationID") == invocation
