"""Preflight as ops runs it, over a real session on this machine: facts of what would really run, skips, what ends the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from specctl.errors import ConnectError, UsageError
from specctl.fleet.types import Host, Model, Server, ServiceManager
from specctl.ops import preflight
from specctl.ops.contact import Contact, contact
from specctl.rollout import launch as launches
from specctl.rollout.preflight.types import Finding, Level, Report
from tests import fakes


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Contact, Server]]:
    """A contact to this machine, and a server whose models lie in a folder of the test's own."""
    for name, hidden in (("target", 64), ("draft", 64), ("old-draft", 32)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"x" * 100)
        (folder / "config.json").write_text(json.dumps({"hidden_size": hidden, "vocab_size": 9, "block_size": 16}))
    server = replace(
        fakes.SERVER,
        profile=replace(fakes.PROFILE, engine="lab", packages=("specctl-fleet",), capability={"dflash": "DFLASH"}),
        python=sys.executable,
        target=Model(name="big", path=str(tmp_path / "target")),
        draft=Model(name="small", path=str(tmp_path / "draft"), block_size=16),
        port=1,
    )
    host = replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path / "state"), servers=(server,))
    reached = contact(host)
    yield reached, server
    reached.close()


def levels(report: Report) -> Mapping[str, Level]:
    """Return what each check of preflight's own says."""
    return {one.id: one.level for one in report.findings if one.id.startswith("P")}


def test_a_launch_from_the_inventory_is_checked_on_the_host(place: tuple[Contact, Server]) -> None:
    """Interpreter, engine, models and their fit are looked at where they lie."""
    here, server = place
    launch = launches.build(here.host, server, "dflash")
    found = levels(preflight.examine(here, server, launch, preflight.gather(here, (server,)), {}))
    expected = ("P003", "P004", "P005", "P010", "P011", "P013", "P014", "P015", "P016", "P017")
    assert {number: found.get(number) for number in expected} == dict.fromkeys(expected, Level.PASS)


def test_a_stored_release_is_checked_with_its_own_folders(place: tuple[Contact, Server], tmp_path: Path) -> None:
    """A rollback to a release with another draft looks at that draft, not at the inventory's."""
    here, server = place
    kept = launches.build(here.host, server, "dflash").as_wire()
    words = [str(tmp_path / "old-draft") if word == str(tmp_path / "draft") else word for word in _words(kept)]
    launch = launches.stored(here.host, server, "dflash", {**kept, "argv": words}, {"block_size": 8}, "1")
    report = preflight.examine(here, server, launch, preflight.gather(here, (server,)), {})
    (misfit,) = [one for one in report.findings if one.id == "P016"]
    assert (misfit.level, "hidden size 32, the target has 64" in misfit.reason) == (Level.FAIL, True)


def _words(kept: Mapping[str, object]) -> list[str]:
    argv = kept["argv"]
    assert isinstance(argv, list)
    return [str(word) for word in argv]


def test_the_linters_errors_refuse_too(place: tuple[Contact, Server]) -> None:
    """A finding of the linter joins the report under its own id, and can be skipped like a check."""
    here, server = place
    odd = replace(server, options={**server.options, "--mem-fraction-static": 3})
    launch = launches.build(here.host, odd, "dflash")
    facts = preflight.gather(here, (odd,))
    refused = [one.id for one in preflight.examine(here, odd, launch, facts, {}).refusals]
    assert "E040" in refused
    passed = preflight.examine(here, odd, launch, facts, dict.fromkeys(refused, "why"))
    assert (passed.refusals, dict(passed.skipped)["E040"]) == ((), "why")


def test_the_linter_does_not_stand_in_the_way_back(place: tuple[Contact, Server]) -> None:
    """What served before is gone back to, whatever a rule says of it now: the rule's error is told as a warning."""
    here, server = place
    odd = replace(server, options={**server.options, "--mem-fraction-static": 3})
    launch = launches.build(here.host, odd, "dflash")
    report = preflight.examine(here, odd, launch, preflight.gather(here, (odd,)), {}, served=True)
    assert report.refusals == ()
    assert [one.level for one in report.findings if one.id == "E040"] == [Level.WARN]


def test_facts_of_several_servers_take_one_round_trip(place: tuple[Contact, Server]) -> None:
    """A host is asked once about all its selected servers; one that cannot be reached does not hide it."""
    here, server = place
    other = replace(server, name="other")
    gone: Host = replace(here.host, name="gone", python="/nonexistent/python", manager=ServiceManager.SUPERVISOR)
    found = preflight.facts([(here.host, server), (gone, server), (here.host, other)])
    assert list(found) == [here.host.name, "gone"]
    local = found[here.host.name]
    assert not isinstance(local, Exception)
    assert set(local.servers) == {"chat", "other"}
    assert isinstance(found["gone"], Exception)


def test_skips_are_read_with_their_reasons() -> None:
    """A reason of its own, else that of the act, else that there was none; a linter's rule can be skipped too."""
    assert preflight.skips(["P005=the other one ends", "E001"], "a drill") == {
        "P005": "the other one ends",
        "E001": "a drill",
    }
    assert preflight.skips(["P005"], None) == {"P005": "skipped on the command line"}
    assert preflight.skips(None, "why") == {}


def test_a_check_that_there_is_none_of_is_refused_with_the_nearest() -> None:
    """A misspelled id never silently skips nothing."""
    with pytest.raises(UsageError, match="there is no check p005") as caught:
        preflight.skips(["p005"], None)
    assert caught.value.hint == "--skip-check P005"


def test_what_ends_the_command() -> None:
    """The first failure is the error, the others are named; a server that could not be asked is its own error."""
    fail = Finding(id="P005", title="t", level=Level.FAIL, reason="port 1 is held", remedy="end it")
    both = Report(findings=(fail, replace(fail, id="P030"), replace(fail, id="P002", waived="why")))
    error = preflight.judged("gpu1", both)
    assert error is not None
    assert (error.message, error.host, error.exit_code) == ("P005 port 1 is held (and P030)", "gpu1", 2)
    assert error.hint == "end it (or pass it over: --skip-check P005)"
    assert preflight.judged("gpu1", Report(findings=(replace(fail, level=Level.WARN),))) is None
    lost = ConnectError("gone")
    assert preflight.judged("gpu1", lost) is lost
