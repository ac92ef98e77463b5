"""Whole inventories are linted: what ships is clean or waives in the open, every algo is looked at, and it takes no time."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from specctl.errors import UsageError
from specctl.fleet.select import Selection
from specctl.lint.types import Finding
from specctl.ops import inventory as inventories
from specctl.ops import lint
from tests.unit.fleet.inventories import resolved

INVENTORY = Path(__file__).parents[3] / "inventory"
EVERYTHING = Selection(everything=True)
MOST_CPU_S = 0.02


def of_file(path: Path) -> tuple[Finding, ...]:
    """Lint a whole inventory."""
    return lint.lint(inventories.load_selected([str(path)], EVERYTHING), whole=True)


def test_the_field_has_exactly_what_it_waives() -> None:
    """Each finding in the field's deployment is waived in its file, and each waiver there is needed."""
    found = of_file(INVENTORY / "field.yaml")
    assert [one.rule.id for one in found] == ["W031", "W032", "W033", "W051"]
    assert all(one.waived is not None and one.waived.endswith("the deployment as it was") for one in found)


def test_a_finding_says_where_it_stands() -> None:
    """The place is the line that says it, in the layer that says it."""
    places = {one.rule.id: (one.key, one.origin and one.origin.layer) for one in of_file(INVENTORY / "field.yaml")}
    assert places == {
        "W031": ("bind", "server:k26"),
        "W032": (None, None),
        "W033": ("options.--num-continuous-decode-steps", "server:k26"),
        "W051": ("env.NCCL_P2P_LEVEL", "hardware:rtx-pro-6000-x8"),
    }


def test_the_example_is_clean() -> None:
    """The inventory that people copy gives the linter nothing to say, not even a note."""
    assert of_file(INVENTORY / "example.yaml") == ()


@pytest.mark.parametrize("lab", [False, True])
def test_the_starters_are_clean(*, lab: bool, tmp_path: Path) -> None:
    """Neither is there anything to say of what `specctl init` writes."""
    inventories.write_starter(tmp_path / "inventory.yaml", lab=lab)
    assert of_file(tmp_path / "inventory.yaml") == ()


WIDE = """
models:
  big: {path: /srv/big}
  small: {path: /srv/small, kind: draft}
servers:
  chat:
    engine: sglang-pr29907
    target: big
    draft: small
    python: /opt/python
    port: 30001
    algo: dflash
    options: {enable-metrics: true, page-size: 64}
    knobs: {ddtree: {block_size: 8, tree_budget: 32}}
    waivers: {W067: "the watchdog is short on purpose"}
hosts: {gpu1: {servers: [chat]}}
"""


def test_every_algo_of_a_server_is_looked_at() -> None:
    """A rule that one algo breaks is found though the server runs another, and says which."""
    selected = [(host, server) for host in resolved(WIDE).fleet.hosts for server in host.servers]
    found = {one.rule.id: one.algos for one in lint.lint(selected, whole=True)}
    assert found == {"W011": ("dflash", "ddtree"), "W021": ("ddtree",), "W024": ("ddtree",), "N090": ()}


def test_an_algo_that_cannot_be_rendered_hides_no_other() -> None:
    """A knob out of bounds of one algo keeps the findings of the others."""
    ((host, server),) = [(host, server) for host in resolved(WIDE).fleet.hosts for server in host.servers]
    broken = dataclasses.replace(server, knobs={"ddtree": {"tree_budget": 0}})
    assert [(one.rule.id, one.algos) for one in lint.lint_server(host, broken)] == [("W011", ("dflash",))]


def test_a_list_that_does_not_exist_is_told() -> None:
    """An engine profile that names an unknown list of flags is a usage error with what was perhaps meant."""
    with pytest.raises(UsageError, match=r"no list of flags sglang-0\.5\.32") as caught:
        lint.flag_table("sglang-0.5.32")
    assert caught.value.hint == "correct flag_list of the engine profile: did you mean sglang-0.5.23?"
    with pytest.raises(UsageError):
        lint.flag_table("../profiles/lab")


def test_a_server_is_linted_in_no_time() -> None:
    """All algos of a server, with misspelled flags in it, take under 20 ms of processor time once its list is read."""
    ((host, server),) = inventories.load_selected([str(INVENTORY / "field.yaml")], EVERYTHING)
    worse = dataclasses.replace(
        server, options={**server.options, "--contxt-length": 1, "--pagesize": 1, "--sideways": 1}
    )
    lint.lint_server(host, worse)
    taken = []
    for _ in range(5):
        began = time.process_time()
        found = lint.lint_server(host, worse)
        taken.append(time.process_time() - began)
    assert sum(one.rule.id == "W001" for one in found) == 3
    assert min(taken) < MOST_CPU_S
