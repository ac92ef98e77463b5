"""What befalls an engine: it dies, hangs, lies or will not stop, another one has its port, or what to go back to is damaged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import yaml

from tests.fleet import places
from tests.fleet.places import ACT_S, ALLOW_FAULTS, NEW, Place, require_one, require_stopped, together
from tests.fleet.site import MODELS, Site

OLD, FRESH = ("1", "none"), ("2", "dflash")
SHORT = {"load": "40s", "stall": "8s", "drain": "1s", "stop": "3s"}
# What an engine does when it is tried, and what the record says of it.
FAULTS: Mapping[str, str] = {
    "crash:init": "init",
    "exit137:draft": "",
    "hang:graph": "nothing moved",
    "oom:weights": "memory",
    "never-ready": "nothing moved",
    "half-answer": "",
    "exit137:serving": "died during the smoke",
    "claims-dflash-runs-none": "",
}


def scatter(site: Site, faults: Mapping[str, str], limits: Mapping[str, str]) -> list[Place]:
    """Write an inventory of a server a fault, spread over the hosts; the fault is in their options unless it is empty."""
    places.describe(site, len(faults), limits=limits)
    path = site.fleet.home / "inventory.yaml"
    whole = yaml.safe_load(path.read_text())
    spots = [Place(site, site.hosts[n % len(site.hosts)], n) for n in range(len(faults))]
    for host, row in whole["hosts"].items():
        row["servers"] = [spot.server for spot in spots if spot.host == host]
    for spot, name in zip(spots, faults, strict=True):
        fault = faults[name]
        if fault:
            server = whole["servers"][spot.server]
            server["options"] = {**server["options"], "inject": fault, **NEW}
            server["env"] = ALLOW_FAULTS
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    return spots


def test_new_engine_fails(site: Site) -> None:
    """Whatever keeps the new engine from serving as asked: within its limits the old release serves again, exit 6, named cause."""
    scatter(site, dict.fromkeys(FAULTS, ""), {})
    done = site.run("deploy", "--all", "--algo", "none", "--yes", timeout_s=ACT_S)
    assert done.returncode == 0, done.stderr
    at = dict(zip(scatter(site, {name: name for name in FAULTS}, SHORT), FAULTS, strict=True))

    failed = site.run("deploy", "--all", "--algo", "dflash", "--yes", timeout_s=ACT_S)

    assert failed.returncode == 6, failed.stderr
    for place, fault in at.items():
        assert place.last() == ("operator", "rolled back", OLD), (fault, place.records())
        assert FAULTS[fault] in str(place.records()[-1]["cause"]), (fault, place.records()[-1]["cause"])
    together(lambda place: require_one(place, OLD), list(at))


def test_stopped_process_is_stalled(pair: tuple[Place, Place]) -> None:
    """An engine that is stopped (SIGSTOP) in its load is told as stalled, killed and taken back, not waited for to the deadline."""
    place, slow = pair
    places.describe(
        place.site,
        options={**NEW, "load-seconds": 8},
        limits={"load": "60s", "stall": "6s", "drain": "1s", "stop": "3s"},
    )
    before = place.processes()
    told = place.begin("deploy", "--algo", "dflash", "--yes")
    loading = slow.begin("deploy", "--algo", "dflash", "--yes")
    told.when(lambda: bool(place.processes() - before), "the new engine runs")
    told.says("  weights")
    place.machine.output(["systemctl", "kill", "--signal=STOP", place.unit])
    assert told.ends() == 6, told.errors
    assert "nothing moved for" in told.errors
    assert place.last() == ("operator", "rolled back", OLD)
    require_one(place, OLD)
    # A load eight times as long as the last one is slow, and no failure.
    assert loading.ends() == 0, loading.errors
    require_one(slow, FRESH)


def test_old_engine_will_not_stop(site: Site) -> None:
    """An old engine that ignores SIGTERM, and one that hangs, are ended at their limit, and the deploy goes on: exit 0."""
    places.describe(site, options={"inject": "ignore-sigterm"}, limits=SHORT)
    deaf, hung = Place(site, "gpu1"), Place(site, "gpu2")
    done = site.run("deploy", "--host", "gpu1", "--host", "gpu2", "--algo", "none", "--yes")
    assert done.returncode == 0, done.stderr
    places.describe(site, options=NEW, limits=SHORT)
    hung.machine.output(["systemctl", "kill", "--signal=STOP", hung.unit])

    before = {place: place.processes() for place in (deaf, hung)}

    def act(place: Place) -> None:
        done = place.run("deploy", "--algo", "dflash", "--yes")
        assert done.returncode == 0, done.stderr
        assert not before[place] & place.processes()
        require_one(place, FRESH)

    together(act, [deaf, hung])


def stranger(place: Place) -> Callable[[], object]:
    """Start another server of the same kind by hand on a place's port; returns what ends it."""
    unit = f"stranger-{place.port}"
    engine = [
        sys.executable,
        "-m",
        "specctl.lab",
        "serve",
        "--model-path",
        str(MODELS / "target"),
        "--port",
        str(place.port),
    ]
    checkout = str(MODELS.parents[2])
    place.machine.output(
        ["systemd-run", f"--unit={unit}", f"--working-directory={checkout}", "--collect", "--quiet", *engine]
    )
    return lambda: place.machine.console(["systemctl", "kill", "--signal=KILL", unit])


def enabled(place: Place) -> str:
    """Return whether a boot starts the server, in systemd's word."""
    return place.machine.console(["systemctl", "is-enabled", place.unit]).stdout.strip()


def test_port_taken_in_the_load(spot: Place) -> None:
    """Another server takes the port while ours loads: its answers never count as ours; nothing of ours is left running, exit 8.

    Nor does a boot start what nobody gated; `start` does, once the port is free, and the next boot too.
    """
    places.describe(spot.site, options={**NEW, "load-seconds": 12})
    before = spot.processes()
    told = spot.begin("deploy", "--algo", "dflash", "--yes")
    told.when(lambda: bool(spot.processes() - before), "the new engine runs")
    end = stranger(spot)
    try:
        assert told.ends() == 8, told.errors
        assert "port" in told.errors
        assert "is taken" in told.errors or "held by" in told.errors
        assert spot.processes() == frozenset()
        assert spot.last() == ("operator", "stopped: no healthy release", None)
        assert len(spot.engines()) == 1  # the stranger's, which nobody may end
        assert enabled(spot) == "disabled"
    finally:
        end()
    assert spot.run("start", "--yes").returncode == 0
    assert enabled(spot) == "enabled"


def test_release_to_go_back_to_is_damaged(spot: Place) -> None:
    """A rollback to a release that was changed, or is gone, is refused before the server is touched."""
    spot.deploy("dflash")
    before = spot.processes()
    release = f"{spot.folder}/releases/1"
    for damage in (f"echo broken >> {release}/none.service", f"rm -r {release}"):
        spot.machine.output(["sh", "-c", damage])

        done = spot.run("rollback", "--release", "1", "--yes")

        assert done.returncode in (2, 4), (damage, done.stderr)
        assert "release 1" in done.stderr, damage
        assert spot.processes() == before, damage
        require_one(spot, FRESH)


def test_damaged_release_and_failing_engine(spot: Place) -> None:
    """When the new release fails and the old one is damaged, no ungated server is left: stopped, recorded, exit 8."""
    places.describe(spot.site, options={**NEW, "inject": "crash:weights"})
    told = spot.begin("deploy", "--algo", "dflash", "--yes")
    told.when(lambda: spot.current() != OLD, "the swap")
    spot.machine.output(["rm", f"{spot.folder}/releases/1/none.service"])
    assert told.ends() == 8, told.errors
    assert spot.last() == ("operator", "stopped: no healthy release", None)
    require_stopped(spot)
