"""The capability probe as ops asks it: the engine's own interpreter, over a real session on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from specctl.fleet.types import Server
from specctl.ops import capability
from specctl.ops.contact import Contact, contact
from specctl.rollout.facts import ServerFacts
from specctl.rollout.launch import Launch
from specctl.rollout.preflight.subject import Capability
from tests import fakes

FACTS = ServerFacts(name="chat", python_runs=True)


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


def ask(
    here: Contact,
    server: Server,
    algo: str,
    env: Mapping[str, str] | None = None,
    facts: ServerFacts = FACTS,
    python: str = sys.executable,
) -> Capability | None:
    """Ask for an algo of the server's profile."""
    launch = Launch(host="here", server=server.name, algo=algo, argv=(), env=env or {}, knobs={})
    return capability.ask(here, server, facts, launch, python=python)


def test_an_engine_that_knows_the_algo_says_so(here: Contact, tmp_path: Path) -> None:
    """The answer is taken, and remembered in the folder that facts look into."""
    said = ask(here, asking(dflash="DFLASH"), "dflash")
    assert said is not None
    assert (said.name, said.knows, said.error, said.silent) == ("DFLASH", True, None, None)
    assert said.version
    assert [path.suffix for path in (tmp_path / ".probes").iterdir()] == [".json"]


def test_an_engine_that_does_not_know_it_says_so(here: Contact) -> None:
    """What the engine lacks is a clear no, not a failure to answer."""
    said = ask(here, asking(ddtree="BEAMTREE"), "ddtree")
    assert said is not None
    assert (said.name, said.knows, said.error) == ("BEAMTREE", False, None)


def test_an_engine_that_cannot_be_imported_says_why(here: Contact) -> None:
    """The interpreter's own words are kept where the engine is missing."""
    profile = replace(fakes.PROFILE, engine="sglang", capability={"dflash": "DFLASH"})
    said = ask(here, replace(asking(), profile=profile), "dflash", python="/usr/bin/python3")
    assert said is not None
    assert said.knows is None
    assert said.error is not None
    assert "sglang" in said.error


def test_an_interpreter_that_is_not_there_is_not_asked(here: Contact, tmp_path: Path) -> None:
    """Nothing runs where facts say that nothing can."""
    said = ask(here, asking(dflash="DFLASH"), "dflash", facts=replace(FACTS, python_runs=False), python="/gone/python")
    assert said == Capability(name="DFLASH", silent="there is no interpreter /gone/python")
    assert not (tmp_path / ".probes").exists()


def test_an_interpreter_that_vanished_is_an_answer(here: Contact) -> None:
    """A host that refuses to run it says so; the other checks go on."""
    said = ask(here, asking(dflash="DFLASH"), "dflash", python="/gone/python")
    assert said is not None
    assert (said.knows, said.silent) == (None, "there is no interpreter /gone/python")


def test_another_profile_is_asked_anew(here: Contact) -> None:
    """An answer that was remembered for one profile's names never stands for another profile's, on the same engine."""
    ask(here, asking(dflash="DFLASH"), "dflash")
    said = ask(here, asking(dflash="DFLASH", ddtree="DDTREE"), "ddtree")
    assert said is not None
    assert said.knows is True


def test_another_environment_is_asked_anew(here: Contact, tmp_path: Path) -> None:
    """What the engine imports depends on its environment, so an answer counts for that environment alone."""
    ask(here, asking(dflash="DFLASH"), "dflash")
    ask(here, asking(dflash="DFLASH"), "dflash", {"PYTHONPATH": str(tmp_path)})
    assert len(list((tmp_path / ".probes").iterdir())) == 2


def test_one_answer_serves_every_algo(here: Contact, tmp_path: Path) -> None:
    """What specctl itself or an algo's profile sets does not part the answers: a switch asks nothing anew."""
    server = asking(dflash="DFLASH", ddtree="DDTREE")
    ask(here, server, "dflash", {"A": "1", "PATH": "/one"})
    ask(here, server, "ddtree", {"A": "1", "PATH": "/other", "TREE": "1", "TOPK_CAP": "2"})
    assert len(list((tmp_path / ".probes").iterdir())) == 1


def test_no_name_means_no_question(here: Contact, tmp_path: Path) -> None:
    """A profile that gives an algo no name is believed where the engine's package was found: nothing runs on the host."""
    assert ask(here, asking(), "ddtree") is None
    assert not (tmp_path / ".probes").exists()


def test_an_engine_without_a_package_is_asked_for(here: Contact) -> None:
    """Where no installed package shows the engine, its interpreter is asked to import it, for any algo."""
    server = replace(asking(), profile=replace(asking().profile, packages=("specctl-fleet",)))
    said = ask(here, server, "none")
    assert said is not None
    assert (said.name, said.knows, said.error) == (None, None, None)
    assert said.version
