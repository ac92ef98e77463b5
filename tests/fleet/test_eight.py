"""Eight hosts of which one is cut off: seven are deployed, the eighth is named, and the next try finishes the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.fleet import fleet as fleets
from tests.fleet.site import Site

HOSTS = 8
CUT = "gpu8"


@pytest.fixture
def eight() -> Iterator[Site]:
    """Give a fleet of eight of its own, with an inventory of one lab server a host."""
    fleet = fleets.up(HOSTS, name=f"eight-{os.getpid()}", lifeline=True)
    made = Site(fleet=fleet, hosts=tuple(fleet.hosts))
    made.describe()
    try:
        yield made
    finally:
        fleet.down()


def states(site: Site) -> dict[str, object]:
    """Return every host's state and whether its algo is proven, by one `specctl status`."""
    rows = site.read("status", "--all")["servers"]
    assert isinstance(rows, list)
    return {row["host"]: (row["state"], row["proven"]) for row in rows}


def test_one_of_eight_is_cut_off(eight: Site) -> None:
    """`deploy --all` ends 7 with the cut host alone named as failed; once it is back, the same command deploys it alone, exit 0."""
    eight.host(CUT).cut()
    first = eight.run("deploy", "--all", "--yes", timeout_s=240.0)
    eight.host(CUT).mend()

    assert first.returncode == 7, first.stderr
    errors = [line for line in first.stderr.splitlines() if line.startswith("error:")]
    assert [line.split(":")[1].strip() for line in errors] == [CUT]
    served = states(eight)
    assert {host for host, state in served.items() if state == ("ready", True)} == set(eight.hosts) - {CUT}

    second = eight.run("deploy", "--all", "--yes", timeout_s=240.0)

    assert second.returncode == 0, second.stderr
    assert set(states(eight).values()) == {("ready", True)}
    counts = {host: len(eight.records(host)) for host in eight.hosts}
    assert counts == dict.fromkeys(eight.hosts, 1)
