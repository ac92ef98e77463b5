"""`specctl switch --live` on this machine, by the real command line: the running engine is told, proven, recorded, or told back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import httpx
import pytest
import yaml

from tests.unit.cli.test_local_calibrate import serving
from tests.unit.cli.test_local_deploy import HOST, Json, Place, acts, starter

__all__ = ["starter"]
pytestmark = pytest.mark.slow  # real servers, real seconds

LIVE = ("switch", *HOST, "--live")
TREE_8 = {"block_size": 8, "topk_cap": 8, "tree_budget": 8}


@pytest.fixture
def honest(tmp_path: Path, starter: Mapping[str, object]) -> Iterator[Place]:
    """Give a place with a chain in service."""
    with serving(tmp_path, starter) as made:
        yield made


@pytest.fixture
def liar(tmp_path: Path, starter: Mapping[str, object]) -> Iterator[Place]:
    """Give a place with a chain in service, whose trees are chains that claim to be trees."""
    with serving(tmp_path, starter, {"inject": "claims-ddtree-runs-linear"}) as made:
        yield made


def invocation(place: Place) -> object:
    """Return what names the present start of the server, by the newest record of one."""
    (row,) = cast(Sequence[Json], place.read("history", *HOST)["history"])
    return next(r["invocation"] for r in reversed(cast(Sequence[Json], row["records"])) if not r["live"])


def newest(place: Place) -> Json:
    """Return the newest record."""
    (row,) = cast(Sequence[Json], place.read("history", *HOST)["history"])
    return cast(Sequence[Json], row["records"])[-1]


def tell(place: Place, **fields: object) -> None:
    """Tell the engine something behind everybody's back."""
    server = yaml.safe_load(place.path.read_text())["servers"]["lab"]
    answer = httpx.post(
        f"http://127.0.0.1:{server['port']}/set_internal_state",
        json={"server_args": fields},
        headers={"Authorization": f"Bearer {place.key}"},
    )
    assert (answer.status_code, answer.json()) == (200, [True])


def test_a_running_server_goes_from_algo_to_algo(honest: Place) -> None:
    """To a tree, to another budget, and back as the hint says: each told in an instant, proven and on record, and no start."""
    started = invocation(honest)
    offered = honest.run("switch", *HOST, "--algo", "ddtree", "--dry-run")
    assert "or      the engine takes it without a start: add --live" in offered.stdout
    planned = json.loads(honest.run(*LIVE, "--algo", "ddtree", "--knob", "tree_budget=8", "--dry-run", "--json").stdout)
    (plan,) = planned["plans"]
    assert (plan["old"], plan["new"]) == ("dflash:block_size=8", "ddtree:block_size=8,topk_cap=8,tree_budget=8")
    assert honest.row()["algo"] == "dflash"

    done = honest.run(*LIVE, "--algo", "ddtree", "--knob", "tree_budget=8", "--reason", "a try", "--yes")
    assert done.returncode == 0, done.stderr
    assert "undo: specctl switch --live --host local --algo dflash\n" in done.stdout
    row = honest.row()
    assert (row["algo"], row["knobs"], row["proven"], row["live_by"] is not None) == ("ddtree", TREE_8, True, True)
    record = newest(honest)
    assert (record["live"], record["result"], record["proof"], record["reason"]) == (True, "done", "proven", "a try")
    assert (record["invocation"], record["previous"], record["serving"]) == (started, ["1", "dflash"], None)
    assert honest.run("health", *HOST).returncode == 0

    again = honest.run(*LIVE, "--algo", "ddtree", "--knob", "tree_budget=8", "--yes")
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
    further = honest.run(*LIVE, "--algo", "ddtree", "--knob", "tree_budget=4", "--yes")
    assert "undo: specctl switch --live --host local --algo ddtree --knob tree_budget=8\n" in further.stdout
    assert honest.run(*LIVE, "--algo", "dflash", "--yes").returncode == 0
    assert (honest.row()["algo"], invocation(honest)) == ("dflash", started)
    assert acts(honest) == [("deploy", "done"), *[("switch", "done")] * 3]

    assert honest.run("restart", *HOST, "--yes").returncode == 0
    row = honest.row()
    assert (row["algo"], row["live_by"]) == ("dflash", None)


def test_what_is_not_proven_is_told_back(liar: Place) -> None:
    """An engine that says tree and decodes a chain is told the chain again; the record says so, and status shows the chain."""
    failed = liar.run(*LIVE, "--algo", "ddtree", "--yes")
    assert failed.returncode == 6
    assert "DDTREE metrics" in failed.stderr
    assert "the engine was told dflash:block_size=8 again" in failed.stderr
    row = liar.row()
    assert (row["algo"], row["live_by"]) == ("dflash", None)
    assert (newest(liar)["result"], newest(liar)["algo"]) == ("rolled back", "ddtree")
    assert liar.run("health", *HOST).returncode == 0


def test_what_is_not_on_record_is_not_built_upon(honest: Place) -> None:
    """An engine that somebody told something by hand is left alone, unless that is asked for."""
    tell(honest, speculative_algorithm=None)
    refused = honest.run(*LIVE, "--algo", "ddtree", "--yes")
    assert refused.returncode == 2
    assert "told something that is not on record: speculative_algorithm is None, not 'DFLASH'" in refused.stderr
    assert acts(honest) == [("deploy", "done")]
    forced = honest.run(*LIVE, "--algo", "dflash", "--force", "--yes")
    assert forced.returncode == 0, forced.stderr
    assert honest.run("health", *HOST).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--live", "--algo", "tree"), "there is no algo tree"),
        (("--live", "--algo", "ddtree", "--diff"), "--diff has no meaning"),
        (("--live", "--algo", "ddtree", "--skip-check", "P001=x"), "--skip-check has no meaning"),
        (("--algo", "ddtree", "--knob", "tree_budget=8"), "--knob goes with --live"),
        (("--live", "--algo", "ddtree", "--knob", "tree_budget"), "is not NAME=NUMBER"),
        (("--live", "--algo", "ddtree"), "server lab is not deployed"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, starter: Mapping[str, object], words: tuple[str, ...], said: str
) -> None:
    """Before anything is asked of an engine."""
    made = Place(tmp_path)
    made.write(starter)
    done = made.run("switch", *HOST, *words, "--yes")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
