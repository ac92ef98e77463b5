"""Models and servers that the server's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import labmodels
from tests.labserver import LabServer


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> labmodels.Folders:
    """Small models with random weights."""
    return labmodels.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the servers' logs go."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="session")
def server(folders: labmodels.Folders, logs: Path) -> Iterator[LabServer]:
    """A server with metrics that begins without speculation; tests leave it idle, unpaused and without speculation."""
    with LabServer(
        folders, logs, "--enable-metrics", "--max-running-requests", "4", env={"SGLANG_HEALTH_CHECK_TIMEOUT": "1"}
    ) as started:
        yield started.ready()
