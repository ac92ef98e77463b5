"""The models that the lab's tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

import specctl.lab
from specctl.lab.blas import pin_one_thread
from specctl.lab.engine import load_models
from specctl.lab.models import Models
from specctl.lab.untrained import random_models
from tests.unit.lab.runs import SHIPPED


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Hold BLAS to one thread, as the server does."""
    pin_one_thread()


@pytest.fixture(scope="session")
def untrained() -> Models:
    """Return tiny random models."""
    return random_models(3)


@pytest.fixture(scope="session")
def shipped() -> Models:
    """Return the models in the package."""
    return load_models(SHIPPED / "target", SHIPPED / "dflash")


@pytest.fixture(scope="session")
def prompts(shipped: Models) -> list[list[int]]:
    """Return 32 prompts of different lengths, cut from this repository's own Python."""
    source = Path(specctl.lab.__file__).with_name("types.py").read_text(encoding="utf-8")
    tokens = shipped.tokenizer.encode(source)
    return [tokens[start * 13 : start * 13 + 20 + 3 * start] for start in range(32)]
