"""What befalls a host: reboots, a lost power cord, full and read-only file systems, a service manager or journal that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.fleet import places
from tests.fleet.places import Place, at_rest, moment, require_one, together
from tests.fleet.site import Site

OLD, FRESH = ("1", "none"), ("2", "dflash")
# A boot, the guard's first tick in it, and a load of what comes back.
TAKEN_BACK_S = 150.0
JOURNAL = [f"systemd-journald{suffix}" for suffix in (".socket", "-dev-log.socket", "-audit.socket", ".service")]


@contextlib.contextmanager
def undone(place: Place, *commands: str) -> Iterator[None]:
    """Undo by these commands what a test did to a host, however it ends."""
    try:
        yield
    finally:
        for command in commands:
            place.machine.console(["sh", "-c", command])


@pytest.mark.parametrize(
    "steps", [("stop", "gate", "smoke"), pytest.param(("write", "swap", "start"), marks=pytest.mark.soak)]
)
def test_rebooted_in_an_act(spots: list[Place], steps: tuple[str, ...]) -> None:
    """A host that reboots in the middle of a deploy comes up with what served before; success is said of a confirm alone."""
    at = dict(zip(spots, steps, strict=True))
    before = {place: place.processes() for place in spots}

    def rebooted(place: Place) -> None:
        told = place.begin("deploy", "--algo", "dflash", "--yes")
        moment(place, told, at[place], before[place])
        place.machine.reboot()
        code = told.ends()
        if code == 0:  # the reboot was slower than the last step: the confirm had gone out, so the new release serves
            assert at[place] == "smoke", told.errors
            at_rest(place, TAKEN_BACK_S)
            require_one(place, ("2", "dflash"))
            assert place.last()[1] == "done"
            return
        # Before anything was changed it may be the guard that cannot be armed: 4.
        assert code in (3, 6) or (code == 4 and at[place] == "write"), (at[place], code, told.errors)
        at_rest(place, TAKEN_BACK_S)
        require_one(place, OLD)
        ends = {row["result"] for row in place.records()[1:]}
        assert ends <= {"rolled back", "failed"}, (at[place], place.records())

    together(rebooted, spots)


def test_power_lost_in_an_act(spots: list[Place]) -> None:
    """A host whose plug is pulled at the swap, at the start or in the load comes back with what served before."""
    at = dict(zip(spots, ("swap", "start", "gate"), strict=True))
    before = {place: place.processes() for place in spots}

    def killed(place: Place) -> None:
        told = place.begin("deploy", "--algo", "dflash", "--yes")
        moment(place, told, at[place], before[place])
        place.machine.kill()
        place.machine.boot()
        assert told.ends() in (3, 6), (at[place], told.errors)
        at_rest(place, TAKEN_BACK_S)
        require_one(place, OLD)
        assert place.last()[1] in ("rolled back", "failed")

    together(killed, spots)


def test_disk_full_before_and_in_an_act(pair: tuple[Place, Place]) -> None:
    """A release that does not fit leaves the old server alone, exit 4; a disk that is full later loses no confirm."""
    early, late = pair
    room = (
        "mkdir -p /run/kept && cp -a /var/lib/specctl /run/kept/ && mount -t tmpfs -o size=2m tmpfs /var/lib/specctl && "
        "cp -a /run/kept/specctl/. /var/lib/specctl/"
    )
    fill = "dd if=/dev/zero of=/var/lib/specctl/filler bs=4k status=none; sync"
    empty = "rm -f /var/lib/specctl/filler"
    away = "umount --lazy /var/lib/specctl; rm -rf /run/kept"
    with undone(early, empty, away), undone(late, empty, away):
        for place in (early, late):
            place.machine.output(["sh", "-c", room])
        before = early.processes()
        early.machine.console(["sh", "-c", fill])
        done = early.run("deploy", "--algo", "dflash", "--yes")
        assert (done.returncode, "P004" in done.stderr) == (2, True), done.stderr
        done = early.run("deploy", "--algo", "dflash", "--yes", "--skip-check", "P004=a test")
        assert done.returncode == 4, done.stderr
        assert "free some space" in done.stderr
        assert early.processes() == before
        early.machine.output(["sh", "-c", empty])
        at_rest(early, 60.0)
        require_one(early, OLD)

        told = late.begin("deploy", "--algo", "dflash", "--yes", "--skip-check", "P004=a test")
        moment(late, told, "gate")
        late.machine.console(["sh", "-c", fill])
        code = told.ends()
        assert code in (0, 4), told.errors
        late.machine.output(["sh", "-c", empty])
        at_rest(late, 60.0)
        require_one(late, FRESH)
        assert late.last() == ("operator", "done", FRESH)


def test_read_only_units(spot: Place) -> None:
    """Where units cannot be written the preflight says so; passed over, nothing is changed: exit 4, and the record says it."""
    before = spot.processes()
    spot.machine.output(["mount", "--bind", "-o", "ro", "/etc/systemd/system", "/etc/systemd/system"])
    with undone(spot, "umount /etc/systemd/system"):
        seen = spot.run("deploy", "--algo", "dflash", "--yes")
        done = spot.run("deploy", "--algo", "dflash", "--yes", "--skip-check", "P003=a test")
    assert (seen.returncode, "P003" in seen.stderr) == (2, True), seen.stderr
    assert (done.returncode, "read-only" in done.stderr) == (4, True), done.stderr
    assert spot.processes() == before
    require_one(spot, OLD)
    assert spot.last() == ("operator", "failed", OLD)


def test_daemon_reload_refused(spot: Place) -> None:
    """A systemd that refuses to reload (its /run is too full) ends the deploy before the old server is stopped: exit 4."""
    before = spot.processes()
    spot.machine.output(["mount", "-o", "remount,size=12m", "/run"])
    with undone(spot, "mount -o remount,size=20% /run"):
        done = spot.run("deploy", "--algo", "dflash", "--yes")
    assert done.returncode == 4, done.stderr
    at_rest(spot, 60.0)
    assert spot.processes() == before
    require_one(spot, OLD)


def test_journal_unavailable(spot: Place) -> None:
    """Without a journal a proof from log lines cannot be had: what cannot be proven is taken back, and the old server is gated."""
    spot.machine.output(["systemctl", "mask", "--runtime", "--now", *JOURNAL])
    names = " ".join(JOURNAL)
    with undone(spot, f"systemctl unmask --runtime {names}", f"systemctl start {names}"):
        done = spot.run("deploy", "--algo", "dflash", "--yes")
        assert done.returncode == 6, done.stderr
        assert "claimed, not proven" in done.stderr
        require_one(spot, OLD)
    assert spot.last() == ("operator", "rolled back", OLD)


@pytest.mark.parametrize("hours", [1, -1])
def test_clock_an_hour_off(site: Site, hours: int) -> None:
    """A host whose wall clock is an hour off is deployed like any other, with a warning: lease, gate and guard do not read it."""
    wrapper = (
        "#!/usr/bin/python3 -I\nimport sys, time\nreal = time.time\n"
        f"time.time = lambda: real() + {hours * 3600}\n"
        "sys.argv = ['-c']\nexec(compile(sys.orig_argv[-1], 'session', 'exec'), {'__name__': '__main__'})\n"
    )
    place = Place(site, "gpu1")
    place.machine.put("/usr/local/bin/python-off", wrapper.encode(), mode=0o755)
    places.describe(site, python="/usr/local/bin/python-off")
    with undone(place, "rm -f /usr/local/bin/python-off"):
        done = place.run("deploy", "--algo", "dflash", "--yes")
        assert done.returncode == 0, done.stderr
        assert "the clock is 60 min" in done.stdout, done.stdout
        require_one(place, ("1", "dflash"))
        assert place.last() == ("operator", "done", ("1", "dflash"))


def test_sudo_that_asks_for_a_password(site: Site) -> None:
    """Sudo that wants a password is an answer, not a prompt that hangs: exit 3 or 4 within seconds, and what to grant."""
    place = Place(site, "gpu1")
    place.machine.put("/etc/sudoers.d/ops", b"ops ALL=(ALL) ALL\n", mode=0o440)
    places.describe(site, connect={"user": "ops", "sudo": True})
    done = place.run("deploy", "--yes", timeout_s=60.0)
    assert done.returncode in (3, 4), done.stderr
    assert "NOPASSWD" in done.stderr
    assert place.machine.console(["ls", "/var/lib/specctl"]).returncode != 0
