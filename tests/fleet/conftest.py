"""Fixtures for tests on real hosts.

`fleet` is the session's fleet (SPECCTL_FLEET_HOSTS hosts, 3 by default), up once; `fresh_fleet` is the same with every host made
fresh before the test. Where hosts cannot run, tests here are skipped with the reason, or fail under SPECCTL_REQUIRE_FLEET=1. The
fleet hangs on a lifeline of the test process: it ends with it, even by kill -9.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet import fleet as fleets
from tests.fleet import places, requirements
from tests.fleet import wheelhouse as wheelhouses
from tests.fleet.places import Place
from tests.fleet.site import Site

DEFAULT_HOSTS = 3
HERE = Path(__file__).parent


@functools.cache
def _reason() -> str:
    return "; ".join(requirements.missing())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.fleet)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or refuse, the folder's tests where test hosts cannot run."""
    if HERE not in item.path.parents or not _reason():
        return
    if os.environ.get("SPECCTL_REQUIRE_FLEET") == "1":
        pytest.fail(f"SPECCTL_REQUIRE_FLEET=1, but {_reason()}", pytrace=False)
    pytest.skip(f"no test hosts: {_reason()}")


@pytest.fixture(scope="session")
def fleet() -> Iterator[fleets.Fleet]:
    """Give the session's fleet."""
    count = int(os.environ.get("SPECCTL_FLEET_HOSTS", str(DEFAULT_HOSTS)))
    made = fleets.up(count, name=f"tests-{os.getpid()}", lifeline=True)
    yield made
    made.down()


@pytest.fixture
def fresh_fleet(fleet: fleets.Fleet) -> fleets.Fleet:
    """Give the session's fleet with every host as specctl has never seen it, and the operator's known_hosts right."""
    fleet.trust_hosts()
    with ThreadPoolExecutor(len(fleet.hosts)) as pool:
        list(pool.map(lambda host: host.fresh(), fleet.hosts.values()))
    return fleet


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetch the agent's locked wheels."""
    return wheelhouses.fetch(tmp_path_factory.mktemp("wheelhouse"))


@pytest.fixture
def site(fresh_fleet: fleets.Fleet) -> Site:
    """Give the fleet with an inventory of one lab server a host."""
    made = Site(fleet=fresh_fleet, hosts=tuple(fresh_fleet.hosts))
    made.describe()
    return made


@pytest.fixture
def spot(site: Site) -> Place:
    """Give a server on one host that runs release 1 with algo none; the next deploy writes release 2."""
    (place,) = places.serving(site, site.hosts[:1])
    return place


@pytest.fixture
def pair(site: Site) -> tuple[Place, Place]:
    """Give such a server on each of two hosts."""
    one, other = places.serving(site, site.hosts[:2])
    return one, other


@pytest.fixture
def spots(site: Site) -> list[Place]:
    """Give such a server on every host."""
    return places.serving(site, site.hosts)
