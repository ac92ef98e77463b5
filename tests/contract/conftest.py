"""Models and servers that the contract tests share."""

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
def dflash(folders: labmodels.Folders, logs: Path) -> Iterator[LabServer]:
    """A server as the recorded DFLASH one, having served 160 tokens."""
    arguments = ("--enable-metrics", "--speculative-algorithm", "DFLASH", "--speculative-dflash-block-size", "8")
    with LabServer(folders, logs, *arguments) as server:
        assert server.ready().generate(tokens=160).status_code == 200
        yield server


@pytest.fixture(scope="session")
def fresh(folders: labmodels.Folders, logs: Path) -> Iterator[LabServer]:
    """A server with speculation that has not seen a single request, not even a warm-up."""
    arguments = ("--enable-metrics", "--speculative-algorithm", "DFLASH", "--skip-server-warmup")
    with LabServer(folders, logs, *arguments) as server:
        yield server.ready()
