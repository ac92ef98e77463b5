"""Deploys whose operator is cut off: the guard takes them back, and whoever comes back is told so, never that all went well."""

from __future__ import annotations

import json
import signal
import subprocess

from tests.fleet.site import FOLDER, Site, wait_for_line
from tests.fleet.waiting import until

# Within this of the operator's end: its lease (45 s), the new load, the confirm limit, the old load.
TAKEN_BACK_S = 110.0
WORDS = "ls -d /etc/systemd/system/*guard* /etc/systemd/system/*/*guard* {0}/guard; systemctl list-units --all --plain '*guard*'"


def load(seconds: float, **limits: str) -> dict[str, object]:
    """Return launch settings of an engine that loads for so long, with short limits of the guard."""
    return {"options": {"load-seconds": seconds}, "limits": {"confirm": "3s", **limits}}


def deployed(site: Site, algo: str = "none") -> None:
    """Deploy an algo on gpu1, and require that it went well."""
    done = site.run("deploy", "--host", "gpu1", "--algo", algo, "--yes")
    assert done.returncode == 0, done.stderr


def loading(site: Site, seconds: float = 10.0, **limits: str) -> subprocess.Popen[str]:
    """Begin to deploy dflash on gpu1 and return once it loads."""
    site.describe(load(seconds, **limits))
    process = site.start("deploy", "--host", "gpu1", "--algo", "dflash", "--yes")
    wait_for_line(process, "weights")
    return process


def guarded(site: Site) -> bool:
    """Say whether a guard is on gpu1, by the host's own files."""
    return (site.host("gpu1").root / FOLDER.lstrip("/") / "guard").exists()


def taken_back(site: Site, within_s: float = TAKEN_BACK_S) -> dict[str, object]:
    """Wait until the guard has ended its work, require that nothing of it is left, and return its record."""
    until(lambda: not guarded(site), within_s=within_s, what="the guard is gone")
    left = ["sh", "-c", f"{WORDS.format(FOLDER)} 2>/dev/null"]
    # The guard says that it is over before the last of its own files and its tick are gone.
    until(
        lambda: "specctl" not in site.host("gpu1").console(left).stdout,
        within_s=20.0,
        what="nothing is left of the guard",
    )
    (record,) = [row for row in site.records("gpu1") if row["who"] == "guard"]
    return record


def test_cli_killed_in_the_load(site: Site) -> None:
    """After kill -9 the guard shows in status while it is armed, and then the release before serves again, recorded."""
    deployed(site)
    process = loading(site)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    row = site.row("gpu1")
    assert "guard armed: back to release 1, none, in " in str(row["note"])
    guard = row["guard"]
    assert isinstance(guard, dict)
    assert (guard["phase"], guard["aim"], guard["back"]) == ("watching", ["2", "dflash"], ["1", "none"])
    # What a lease that nobody releases delays, a host that is cut off for good shows.
    site.run("lock", "release", "--host", "gpu1")
    record = taken_back(site)
    assert (record["act"], record["result"], record["release"], record["algo"]) == (
        "deploy",
        "rolled back",
        "2",
        "dflash",
    )
    assert record["serving"] == ["1", "none"]
    row = site.row("gpu1")
    assert (row["state"], row["algo"], row["release"], row["guard"]) == ("ready", "none", "1", None)
    site.describe()
    again = site.run("deploy", "--host", "gpu1", "--algo", "dflash", "--yes")
    assert again.returncode == 0, again.stderr


def test_cli_killed_in_a_first_deploy(site: Site) -> None:
    """With nothing to go back to, the server is stopped, taken off and recorded."""
    process = loading(site)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    site.run("lock", "release", "--host", "gpu1")
    record = taken_back(site)
    assert (record["result"], record["serving"]) == ("stopped: no healthy release", None)
    assert {"none.service", "dflash.service"} <= set(record["digests"])  # type: ignore[call-overload]  # a mapping, as the test says
    assert site.unit("gpu1", "ActiveState", "LoadState") == {"ActiveState": "inactive", "LoadState": "not-found"}
    assert site.row("gpu1")["state"] == "not deployed"


def test_ssh_cut_for_good(site: Site) -> None:
    """The command ends with 3 and says what the guard does; the host does it alone."""
    deployed(site)
    process = loading(site)
    site.host("gpu1").cut()
    try:
        _, errors = process.communicate(timeout=150)
        record = taken_back(site)
    finally:
        site.host("gpu1").mend()
    assert process.returncode == 3, errors
    assert "the guard takes it back to release 1, none" in errors
    copy = (site.fleet.home / ".local/state/specctl/records.jsonl").read_text().splitlines()[-1]
    assert json.loads(copy)["result"] == "connection lost"
    assert (record["result"], record["serving"]) == ("rolled back", ["1", "none"])
    assert (site.row("gpu1")["state"], site.row("gpu1")["algo"]) == ("ready", "none")


def test_a_short_cut_costs_nothing(site: Site) -> None:
    """A connection that is away for half a minute is found again, and the deploy ends as if nothing had been."""
    deployed(site)
    process = loading(site, 45.0)
    site.host("gpu1").cut()
    wait_for_line(process, "connecting again")
    site.host("gpu1").mend()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "lost and found again" in errors
    row = site.row("gpu1")
    assert (row["state"], row["algo"], row["proven"], row["guard"]) == ("ready", "dflash", True, None)
    assert [record["result"] for record in site.records("gpu1")] == ["done", "done"]


def test_a_reboot_in_the_load_is_told(site: Site) -> None:
    """The host restarts in the load: the command comes back, finds that the guard took it back, and says so with exit 6."""
    deployed(site)
    process = loading(site, 20.0)
    site.host("gpu1").reboot()
    _, errors = process.communicate(timeout=150)
    assert process.returncode == 6, errors
    assert "the guard took it back to release 1, none" in errors
    assert taken_back(site)["result"] == "rolled back"
    assert site.row("gpu1")["algo"] == "none"
    copy = (site.fleet.home / ".local/state/specctl/records.jsonl").read_text().splitlines()[-1]
    assert json.loads(copy)["result"] == "rolled back"


def test_a_deploy_waits_for_no_guard_and_passes_none(site: Site) -> None:
    """While the guard restores, another deploy is refused and told by whom: exit 5; before that it takes the guard over."""
    deployed(site)
    site.describe({"options": {"load-seconds": 8}})
    deployed(site)
    process = loading(site, 8.0, confirm="1s")
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    site.run("lock", "release", "--host", "gpu1")
    until(lambda: "guard acts" in str(site.row("gpu1")["note"]), within_s=60.0, what="the guard restores")
    refused = site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes")
    assert (refused.returncode, "locked by guard" in refused.stderr) == (5, True), refused.stderr
    assert taken_back(site)["serving"] == ["2", "none"]


def test_the_next_deploy_takes_over(site: Site) -> None:
    """A deploy after a dead one goes back, when it fails, to what was confirmed last, never to what the dead one left."""
    deployed(site)
    process = loading(site, 2.0, confirm="10m")
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    until(lambda: site.row("gpu1")["state"] == "ready", within_s=40.0, what="the unconfirmed server is ready")
    site.run("lock", "release", "--host", "gpu1")
    same = site.read("deploy", "--host", "gpu1", "--algo", "dflash", "--dry-run")["plans"]
    assert isinstance(same, list)
    assert same[0]["nothing"] is None
    site.describe({"options": {"inject": "crash:weights"}, "env": {"SPECCTL_LAB_ALLOW_FAULTS": "1"}})
    done = site.run("deploy", "--host", "gpu1", "--algo", "dflash", "--yes")
    assert done.returncode == 6, done.stderr
    row = site.row("gpu1")
    assert (row["state"], row["algo"], row["release"], row["guard"]) == ("ready", "none", "1", None)
    assert not guarded(site)


def test_an_old_python_is_refused(site: Site) -> None:
    """A host whose python is older than 3.8 is refused in words before anything is written: exit 2."""
    old = "#!/bin/sh\nshift 3\nexec python3 -I -S -c 'import sys; sys.version_info = (3, 6, 8); exec(sys.argv[1])' \"$@\"\n"
    site.host("gpu1").put("/opt/old/python3", old.encode(), mode=0o755)
    text = (site.fleet.home / "inventory.yaml").read_text()
    (site.fleet.home / "inventory.yaml").write_text(
        text.replace("  gpu1:\n", "  gpu1:\n    python: /opt/old/python3\n")
    )
    done = site.run("deploy", "--host", "gpu1", "--yes")
    assert (done.returncode, "python 3.6 is too old" in done.stderr) == (2, True), done.stderr
    assert site.host("gpu1").console(["test", "-e", FOLDER]).returncode == 1


def test_an_ended_deploy_leaves_no_guard(site: Site) -> None:
    """Confirmed or taken back by the command itself: no unit, timer or file of the guard is left, and it wrote no record."""
    deployed(site)
    deployed(site, "dflash")
    assert nothing_left(site)
    site.describe({"options": {"inject": "crash:weights"}, "env": {"SPECCTL_LAB_ALLOW_FAULTS": "1"}})
    assert site.run("deploy", "--host", "gpu1", "--algo", "ddtree", "--yes").returncode == 6
    assert nothing_left(site)
    assert [row["result"] for row in site.records("gpu1")] == ["done", "done", "rolled back"]
    assert site.unit("gpu1", "ActiveState")["ActiveState"] == "active"


def nothing_left(site: Site) -> bool:
    """Say whether no file, unit or timer of a guard is on gpu1."""
    units = site.host("gpu1").output(["systemctl", "list-units", "--all", "--plain", "--no-legend", "*guard*"])
    return not guarded(site) and units == ""
