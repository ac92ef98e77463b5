"""Checks of the engine: interpreter, package, version, and what it says of the algorithm."""

from __future__ import annotations

import pytest

from specctl.rollout.preflight.subject import Capability
from specctl.rollout.preflight.types import Level
from tests.unit.rollout.preflight.subjects import finding, said, subject

MISSING = Capability(name="DFLASH", error="ModuleNotFoundError: No module named 'sglang'")


def test_an_interpreter_that_is_not_there_fails() -> None:
    """The path is named; the missing package behind it is not told twice."""
    one = subject(facts={"python_runs": False, "packages": {}}, capability=Capability(name="DFLASH", silent="gone"))
    assert said(one, "P010") == (Level.FAIL, "there is no interpreter /opt/venv/bin/python, or it may not be run")
    assert finding(one, "P011") is None
    assert said(one, "P013")[0] is Level.UNKNOWN


def test_another_interpreter_than_the_one_looked_at_is_unknown() -> None:
    """A stored release that names another virtual environment is not judged by the inventory's."""
    assert said(subject(facts={"python_path": "/other/python"}), "P010")[0] is Level.UNKNOWN


@pytest.mark.parametrize(
    ("packages", "said_by_engine", "level"),
    [
        ({"sglang": "0.5.23"}, None, Level.PASS),
        ({}, MISSING, Level.FAIL),
        ({}, Capability(name="DFLASH", knows=True, version="0.5.23"), Level.PASS),
        ({}, Capability(name="DFLASH", silent="did not answer within 120 s"), Level.UNKNOWN),
        ({}, None, Level.UNKNOWN),
    ],
)
def test_the_engines_package(packages: dict[str, str], said_by_engine: Capability | None, level: Level) -> None:
    """A package on disk passes; without one the interpreter's own import decides, and silence is no failure."""
    assert said(subject(facts={"packages": packages}, capability=said_by_engine), "P011")[0] is level


@pytest.mark.parametrize(
    ("version", "level"), [("0.5.23", Level.PASS), ("0.5.23+cu130", Level.PASS), ("0.5.22", Level.WARN)]
)
def test_the_profiles_version(version: str, level: Level) -> None:
    """A build with a local suffix is the profile's; another version is not."""
    assert said(subject(facts={"packages": {"sglang": version}}), "P012")[0] is level


@pytest.mark.parametrize(
    ("capability", "level", "words"),
    [
        (Capability(name="DDTREE", knows=False, version="0.5.23"), Level.FAIL, "does not know DDTREE"),
        (Capability(name="DDTREE", error="ImportError: torch"), Level.FAIL, "ImportError: torch"),
        (Capability(name="DDTREE", silent="did not answer"), Level.UNKNOWN, "did not answer"),
        (Capability(name="DDTREE", knows=True), Level.PASS, "knows DDTREE"),
    ],
)
def test_the_algorithm(capability: Capability, level: Level, words: str) -> None:
    """A clear no and an engine that cannot be imported fail; no answer in time does not."""
    found = said(subject(capability=capability), "P013")
    assert found[0] is level
    assert words in found[1]


def test_an_algorithm_without_a_name_is_not_asked_for() -> None:
    """A profile that gives the algo no name is believed."""
    assert finding(subject(capability=None), "P013") is None
    assert finding(subject(capability=Capability(version="1")), "P013") is None
