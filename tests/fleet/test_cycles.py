"""Many acts in a row on real hosts, some with a planted fault: each ends in exactly one gated release or a stopped server."""

from __future__ import annotations

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from tests.fleet import site as sites
from tests.fleet.site import Site

CYCLES = 51
ALGOS = ("none", "dflash", "ddtree")
ALLOW_FAULTS = {"SPECCTL_LAB_ALLOW_FAULTS": "1"}
PHASES = ("init", "weights", "draft", "kv", "graph", "warmup", "serving")
FAULTS = (
    *(f"{what}:{phase}" for what in ("crash", "exit137") for phase in PHASES),
    "oom:weights",
    "oom:graph",
    "hang:weights",
    "hang:serving",
    "claims-ddtree-runs-linear",
    "claims-dflash-runs-none",
    "never-ready",
    "half-answer",
    "ignore-sigterm",
)
FIRST_FAULT = "crash:weights"
LIMITS = {"load": "20s", "stall": "4s", "drain": "1s", "stop": "3s"}
DONE, REFUSED, ROLLED_BACK, STOPPED = 0, 2, 6, 8
# The engine's main process, by its port, and not the pgrep that looks for it.
ENGINES = ["pgrep", "--count", "--full", "[s]pecctl.lab serve"]


def describe(site: Site, host: str, fault: str | None, context: int) -> str:
    """Write one host's own inventory, with a fault or none; return its path."""
    options: dict[str, object] = {"context-length": context}
    launch: dict[str, object] = {"options": options, "limits": LIMITS}
    if fault is not None:
        options["inject"] = fault
        launch["env"] = ALLOW_FAULTS
    path = site.fleet.home / f"{host}.yaml"
    path.write_text(yaml.safe_dump(sites.inventory((host,), launch, {}), sort_keys=False))
    return str(path)


def state_of(site: Site, path: str, host: str) -> Mapping[str, object]:
    """Return the server's row of `specctl status`."""
    rows = site.read("status", "-i", path, "--host", host)["servers"]
    assert isinstance(rows, list)
    (row,) = rows
    assert isinstance(row, dict)
    return row


def check(site: Site, path: str, host: str, code: int) -> tuple[object, object] | None:
    """Require that what runs is what the exit code and the last record say; return what serves."""
    active = site.unit(host, "ActiveState")["ActiveState"] == "active"
    engines = int(site.host(host).console(ENGINES).stdout)
    row, records = state_of(site, path, host), site.records(host)
    seen = f"{host}: exit {code}, {row}, {engines} engines, last record {records[-1:]}"
    assert engines == int(active), seen
    if code == STOPPED:
        assert not active, seen
        assert records[-1]["result"] == "stopped: no healthy release", seen
    if not active:
        return None
    assert row["state"] == "ready", seen
    serving = [record["serving"] for record in records if record.get("serving")]
    assert serving[-1] == [row["release"], row["algo"]], seen
    return row["release"], row["algo"]


def act(site: Site, chance: random.Random, host: str, cycle: int) -> tuple[tuple[str, ...], str, int]:
    """Do one act of chance on a host, every third with a fault; return its words, the inventory and its exit code.

    The first is a deploy that fails, so that there is nothing to go back to.
    """
    first = cycle == 0
    fault = FIRST_FAULT if first else chance.choice(FAULTS) if chance.random() < 1 / 3 else None
    path = describe(site, host, fault, 512 - cycle)
    algo = chance.choice(ALGOS)
    deploy = ("deploy", "--algo", algo)
    words = deploy if first else chance.choice((deploy, deploy, ("switch", "--algo", algo), ("rollback",)))
    done = site.run(*words, "-i", path, "--host", host, "--yes")
    assert done.returncode in (DONE, REFUSED, ROLLED_BACK, STOPPED), f"{words} with {fault}: {done.stderr}"
    return (*words, f"fault {fault}"), path, done.returncode


def live(site: Site, host: str, cycles: int) -> list[int]:
    """Let a host live through so many acts; return their exit codes."""
    chance = random.Random(host)
    serving: tuple[object, object] | None = None
    codes: list[int] = []
    for cycle in range(cycles):
        words, path, code = act(site, chance, host, cycle)
        now = check(site, path, host, code)
        if code == ROLLED_BACK:
            assert now == serving, f"cycle {cycle}: {words}: {serving} served before, {now} serves now"
        if code == REFUSED:
            assert now == serving, f"cycle {cycle}: {words} was refused and changed {serving} to {now}"
        if code == DONE:
            assert now is not None, f"cycle {cycle}: {words}"
        serving = now
        codes.append(code)
    return codes


@pytest.mark.soak
def test_every_act_ends_in_one_gated_release_or_none(site: Site) -> None:
    """Whatever fails, a host ends with exactly one engine that serves what the records say, or with none and a record of it."""
    share = CYCLES // len(site.hosts)
    with ThreadPoolExecutor(len(site.hosts)) as pool:
        codes = [code for codes in pool.map(lambda host: live(site, host, share), site.hosts) for code in codes]
    assert {DONE, ROLLED_BACK, STOPPED} <= set(codes), codes
    assert len(codes) == CYCLES, codes
