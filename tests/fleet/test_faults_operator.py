"""What befalls the operator's side of an act: killed, interrupted, cut off, out of disk; the host ends with one gated release."""

from __future__ import annotations

import signal
from contextlib import nullcontext

import pytest

from tests.fleet import places
from tests.fleet.places import ACT_S, NEW, STEPS, Place, at_rest, moment, require_one, together
from tests.fleet.site import Site

# A dead owner's lease (45 s), the guard's next tick, and a load of what comes back.
TAKEN_BACK_S = 150.0
OLD, FRESH = ("1", "none"), ("2", "dflash")
# How an act that ends at a step, without its operator, is recorded; None: it had changed nothing, and there is nothing to record.
ENDS: dict[str, set[tuple[object, object, object] | None]] = {
    "write": {None, ("guard", "failed", OLD)},
    "drain": {("guard", "failed", OLD)},
    "swap": {("guard", "rolled back", OLD)},
    "stop": {("guard", "rolled back", OLD)},
    "start": {("guard", "rolled back", OLD)},
    "gate": {("guard", "rolled back", OLD)},
    "smoke": {("guard", "rolled back", OLD)},
    # It was proven: whether the confirm was sent before the end, only the record can tell.
    "record": {("guard", "rolled back", OLD), ("operator", "done", FRESH)},
}


def deployed(site: Site, servers: int) -> list[Place]:
    """Deploy so many servers on every host with algo none, then change the inventory so that the next deploy writes release 2."""
    places.describe(site, servers)
    done = site.run("deploy", "--all", "--algo", "none", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    places.describe(site, servers, options=NEW)
    return [Place(site, host, number) for number in range(servers) for host in site.hosts]


@pytest.mark.parametrize(
    "steps",
    [("write", "drain", "swap", "stop", "smoke", "record"), pytest.param(STEPS, marks=pytest.mark.soak, id="all")],
)
def test_killed_at_every_step(site: Site, steps: tuple[str, ...]) -> None:
    """Kill -9 at each step of a deploy: what served serves again, by the guard; what nothing had changed goes on."""
    at = dict(zip(deployed(site, -(-len(steps) // len(site.hosts))), steps, strict=False))
    before = {place: place.processes() for place in at}

    def killed(place: Place) -> None:
        told = place.begin("deploy", "--algo", "dflash", "--yes")
        moment(place, told, at[place], before[place])
        told.process.send_signal(signal.SIGKILL)
        told.ends()

    with next(place for place, step in at.items() if step == "drain").busy():
        together(killed, list(at))
    together(lambda place: at_rest(place, TAKEN_BACK_S), list(at))

    for place, step in at.items():
        mine = place.records()[1:]
        end = place.last() if mine else None
        assert end in ENDS[step], (step, end, mine)
        require_one(place, FRESH if end == ("operator", "done", FRESH) else OLD)
        if step in ("write", "drain"):
            assert place.processes() == before[place], step


@pytest.mark.soak
@pytest.mark.parametrize("steps", [STEPS[:3], STEPS[3:6], STEPS[5:]])
def test_cut_off_for_good_at_every_step(spots: list[Place], steps: tuple[str, ...]) -> None:
    """A host whose cable is cut at a step goes back by itself; the command ends with 3 and never says that it went well."""
    at = dict(zip(spots, steps, strict=True))
    before = {place: place.processes() for place in spots}

    def cut(place: Place) -> None:
        told = place.begin("deploy", "--algo", "dflash", "--yes")
        moment(place, told, at[place], before[place])
        place.machine.cut()
        code = told.ends()
        assert code == 3 or (at[place] == "record" and code == 0), (at[place], code, told.errors)
        at_rest(place, TAKEN_BACK_S)
        place.machine.mend()
        ends = [place.last()] if place.records()[1:] else [None]
        assert ends[0] in ENDS[at[place]], (at[place], place.records())
        require_one(place, FRESH if ends[0] == ("operator", "done", FRESH) else OLD)

    draining = next((place for place, step in at.items() if step == "drain"), None)
    with draining.busy() if draining is not None else nullcontext():
        together(cut, spots)


def test_interrupted_before_the_start(pair: tuple[Place, Place]) -> None:
    """Ctrl-C while it drains leaves the old server alone; while it stops, nothing new is started first: exit 6 both times."""
    draining, stopping = pair
    places.describe(draining.site, options=NEW, limits={"drain": "40s", "stop": "4s"})
    before = draining.processes()
    with draining.busy():
        told = draining.begin("deploy", "--algo", "dflash", "--yes")
        told.says("1 running")
        told.process.send_signal(signal.SIGINT)
        assert told.ends() == 6, told.errors
    assert "interrupted by the operator: nothing was changed" in told.errors
    assert draining.processes() == before
    assert draining.last() == ("operator", "failed", OLD)
    require_one(draining, OLD)

    places.describe(draining.site, options=NEW, limits={"drain": "4s", "stop": "4s"})
    stopping.machine.output(["systemctl", "kill", "--signal=STOP", stopping.unit])
    told = stopping.begin("deploy", "--algo", "dflash", "--yes")
    told.says("  stop ")
    told.process.send_signal(signal.SIGINT)
    assert told.ends() == 6, told.errors
    assert stopping.last() == ("operator", "rolled back", OLD)
    assert stopping.records()[-1]["invocation"] is None
    require_one(stopping, OLD)


def test_lease_stolen_while_it_drains(spot: Place) -> None:
    """An act whose lease is taken over before anything was changed ends with 5 and leaves the server to the new owner."""
    places.describe(spot.site, options=NEW, limits={"drain": "40s"})
    before = spot.processes()
    with spot.busy():
        told = spot.begin("deploy", "--algo", "dflash", "--yes")
        told.says("1 running")
        taken = spot.run("lock acquire", "--steal", "--reason", "hands off")
        assert taken.returncode == 0, taken.stderr
        assert told.ends() == 5, told.errors
    assert spot.processes() == before
    assert spot.run("lock release").returncode == 0
    at_rest(spot, TAKEN_BACK_S)
    require_one(spot, OLD)
    assert {row["result"] for row in spot.records()[1:]} <= {"failed"}


def test_operators_disk_full(site: Site) -> None:
    """Where the operator's copy of the record cannot be kept the deploy is a success with a warning; the host has the record."""
    places.describe(site)
    place = Place(site, "gpu1")
    state = site.fleet.home / "full"
    state.mkdir()
    site.fleet.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=4", "tmpfs", str(state)])
    try:
        site.fleet.run(["sh", "-c", f"dd if=/dev/zero of={state}/filler bs=4k; mkdir {state}/specctl"])
        site.env["XDG_STATE_HOME"] = str(state)
        done = place.run("deploy", "--algo", "dflash", "--yes")
    finally:
        site.fleet.run(["umount", "--lazy", str(state)])
    assert done.returncode == 0, done.stderr
    assert "the record could not be kept here" in done.stderr
    assert place.last() == ("operator", "done", ("1", "dflash"))
    require_one(place, ("1", "dflash"))


def test_nobody_can_be_told(site: Site) -> None:
    """A command whose output goes to a full disk does what it was asked, or nothing: never half of it."""
    places.describe(site)
    place = Place(site, "gpu1")
    words = " ".join(["deploy", *place.words, "--algo", "dflash", "--yes"])
    done = site.fleet.run(["sh", "-c", f"specctl {words} >/dev/full 2>/dev/full"], env=site.environment())
    at_rest(place, 60.0)
    if done.returncode == 0:
        require_one(place, ("1", "dflash"))
        assert place.last() == ("operator", "done", ("1", "dflash"))
    else:
        places.require_stopped(place)
        assert place.records() == []
