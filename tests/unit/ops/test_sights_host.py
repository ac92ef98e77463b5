"""A host as a source of sights, over a real session on this machine; agents and SSH are in tests/fleet/test_status.py."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import cast

import pytest

from specctl.control import wire
from specctl.errors import ConnectError, UnsupportedError, UsageError
from specctl.fleet.types import Host, Server
from specctl.ops.contact import Contact
from specctl.ops.sights import look, sources
from specctl.ops.sights_host import SessionSource
from specctl.rollout import reading
from tests import fakes
from tests.labserver import free_port

SERVER = replace(fakes.SERVER, draft=None)


@pytest.fixture
def here(tmp_path: Path) -> Host:
    """Give this machine as a host with a state folder of its own."""
    return replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path))


@pytest.fixture
def source(here: Host) -> Iterator[SessionSource]:
    """Give a source for one server on this machine, whose port is nobody's."""
    made = SessionSource(here, [replace(SERVER, port=free_port())])
    yield made
    made.close()


def test_nothing_is_dialled_before_the_first_look(here: Host) -> None:
    """To have a source costs nothing, and says what the inventory says, of a host that cannot be reached as well."""
    (made,) = sources([(replace(here, python="/no/python"), SERVER), (replace(here, python="/no/python"), SERVER)])
    assert [sight.desired and sight.desired.algo for sight in made.blank] == ["dflash", "dflash"]
    made.close()


def test_a_server_that_was_never_deployed(source: SessionSource) -> None:
    """A look at a bare host is a sight with its state, no figure, no agent and no complaint."""
    (found,) = source.look()
    told = (found.state, found.running, found.agent, found.agent_trouble)
    assert told == ("not deployed", None, None, None)
    assert found.age_s == pytest.approx(0.0, abs=0.5)
    assert (found.drift, found.warnings, found.last) == ((), (), None)


def test_looks_in_between_ask_little(source: SessionSource) -> None:
    """How a server stands is kept between looks, with its age in what it says."""
    (first,) = source.look()
    (second,) = source.look()
    assert replace(second, age_s=None) == replace(first, age_s=None)


def test_a_session_that_died_is_dialled_anew(source: SessionSource) -> None:
    """When the session on the host is killed, one look fails as a lost connection, and the next one is whole."""
    source.look()
    contact = source._contact  # which process to kill is nobody else's business
    assert contact is not None
    pid = contact.session.hello["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ConnectError):
        source.look()
    assert source.look()[0].state == "not deployed"


def test_what_may_be_asked(source: SessionSource) -> None:
    """Records and log lines of a server that has none are none; another question and another server are refused."""
    assert source.ask("chat", "records", 5) == ()
    assert source.past("chat") is None
    with pytest.raises(UsageError, match="nothing is known of secrets"):
        source.ask("chat", "secrets", 5)
    with pytest.raises(UsageError, match="other is not watched"):
        source.ask("other", "records", 5)


@dataclass(frozen=True)
class Driverless:
    """A host's session whose agent finds no driver of GPUs."""

    session: Driverless | None = None

    def call(self, op: str, args: Mapping[str, object], *, timeout_s: float) -> Mapping[str, object]:
        """Answer a look, and nothing else."""
        assert (op, timeout_s > 0) == ("look", True)
        trouble = {"nvml": {"trouble": {"problem": "missing", "detail": "LIBRARY_NOT_FOUND"}}, "nvml_age_s": 1.0}
        rows = [{"name": row["name"]} for row in reading.rows(args["servers"])]
        return {"agent": {"line": wire.answer(trouble).decode()}, "servers": rows, "at_s": 1.0}


@pytest.mark.parametrize(("engine", "said"), [("sglang", "LIBRARY_NOT_FOUND"), ("lab", None)])
def test_a_host_without_a_driver(here: Host, engine: str, said: str | None) -> None:
    """That GPUs cannot be seen is told of a server whose engine needs them, and of no other."""
    server = replace(SERVER, profile=replace(SERVER.profile, engine=engine))
    (found,) = SessionSource(here, [server], dial=lambda _host: cast("Contact", Driverless(Driverless()))).look()
    assert (found.gpus, found.gpu_trouble) == (None, said)


def test_after_the_end_nothing_is_dialled(source: SessionSource) -> None:
    """A source that was closed refuses, and may be closed again."""
    source.close()
    source.close()
    with pytest.raises(ConnectError, match="has ended"):
        source.look()


def test_status_of_hosts_that_answer_and_hosts_that_do_not(here: Host) -> None:
    """Sights come in the order of the pairs, whatever each host is like; one without a session says why."""
    absent = replace(here, name="absent", python="/no/python")
    servers: tuple[Server, ...] = (SERVER, replace(SERVER, name="other"))
    pairs = [(absent, servers[0]), (here, servers[1]), (here, servers[0])]
    found = look(pairs)
    assert [(sight.host, sight.server, sight.state) for sight in found] == [
        ("absent", "chat", "unknown"),
        ("local", "other", "not deployed"),
        ("local", "chat", "not deployed"),
    ]
    assert "there is no /no/python" in str(found[0].reason)
    with pytest.raises(UnsupportedError):
        SessionSource(absent, servers).look()
