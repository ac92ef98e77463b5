"""The capability probe as ops asks it: the engine's own interpreter, over a real session on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from specctl.errors import UnsupportedError
from specctl.fleet.types import Server
from specctl.ops.contact import Contact, contact
from specctl.ops.prepare import capability
from specctl.rollout.facts import ServerFacts
from tests import fakes

FACTS = ServerFacts(name="chat")


def asking(**names: str) -> Server:
    """Return a lab server whose profile asks for these names, by algo."""
    profile = replace(fakes.PROFILE, engine="lab", capability=names)
    return replace(fakes.SERVER, profile=profile, python=sys.executable)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Contact]:
    """Yield a contact to this machine with a state folder of its own."""
    reached = contact(replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path)))
    yield reached
    reached.close()


def ask(here: Contact, server: Server, algo: str) -> None:
    """Ask for an algo of the server's profile."""
    capability(here, server, FACTS, server.profile.algos[algo])


def test_an_engine_that_knows_the_algo_passes(here: Contact, tmp_path: Path) -> None:
    """The answer is taken, and remembered in the folder that facts look into."""
    ask(here, asking(dflash="DFLASH"), "dflash")
    assert [path.suffix for path in (tmp_path / ".probes").iterdir()] == [".json"]


def test_an_engine_that_does_not_know_it_is_refused(here: Contact) -> None:
    """What the engine lacks is refused with its interpreter and the name that was asked for."""
    with pytest.raises(UnsupportedError, match=r"does not know BEAMTREE"):
        ask(here, asking(ddtree="BEAMTREE"), "ddtree")


def test_another_profile_is_asked_anew(here: Contact) -> None:
    """An answer that was remembered for one profile's names never stands for another profile's, on the same engine."""
    ask(here, asking(dflash="DFLASH"), "dflash")
    ask(here, asking(dflash="DFLASH", ddtree="DDTREE"), "ddtree")


def test_another_environment_is_asked_anew(here: Contact, tmp_path: Path) -> None:
    """What the engine imports depends on its environment, so an answer counts for that environment alone."""
    ask(here, asking(dflash="DFLASH"), "dflash")
    ask(here, replace(asking(dflash="DFLASH"), env={"PYTHONPATH": str(tmp_path)}), "dflash")
    assert len(list((tmp_path / ".probes").iterdir())) == 2


def test_no_name_means_no_question(here: Contact, tmp_path: Path) -> None:
    """A profile that gives an algo no name is believed: nothing runs on the host."""
    ask(here, asking(), "ddtree")
    assert not (tmp_path / ".probes").exists()
