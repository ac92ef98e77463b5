"""Fixtures for tests with the real SGLang: one test host that sees its environment, and the site on it.

Where hosts or the environment are missing, tests marked `sglang` are skipped with the reason.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import pytest

from tests.fleet import fleet as fleets
from tests.fleet import requirements
from tests.fleet.site import Site
from tests.sglang import ddtree_cases, ddtree_engine, environment
from tests.sglang.site import HOST, SECRETS, SERVER, inventory


@functools.cache
def _reason() -> str:
    hidden = environment.hidden(environment.venv(), environment.STANDIN)
    return "; ".join(filter(None, (environment.missing(), hidden, *requirements.missing())))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests of the real engine where it cannot run."""
    if item.get_closest_marker("sglang") is not None and _reason():
        pytest.skip(_reason())


@pytest.fixture(scope="session")
def engine_fleet() -> Iterator[fleets.Fleet]:
    """Give a fleet of one host that sees the real engine."""
    name = f"sglang-{os.getpid()}"
    made = fleets.up(1, name=name, lifeline=True, shared=environment.shared())
    yield made
    made.down()


@pytest.fixture(scope="module")
def bare_site(engine_fleet: fleets.Fleet) -> Site:
    """Give the host as specctl has never seen it, and an inventory of one real server."""
    engine_fleet.hosts[HOST].fresh()
    site = Site(fleet=engine_fleet, hosts=(HOST,), env=dict(SECRETS), server=SERVER)
    site.write(inventory())
    return site


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ddtree_cases.Plain:
    """Give what the engine answers in float32 without any speculation; it runs only as long as that takes."""
    with ddtree_engine.started(tmp_path_factory.mktemp("plain"), None) as engine:
        return ddtree_cases.asked(engine)
