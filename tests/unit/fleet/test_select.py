"""Selection: hosts and groups add up, excludes take away, servers narrow; nothing chosen is an error."""

from __future__ import annotations

import pytest

from specctl.errors import UsageError
from specctl.fleet.select import Selection, select, select_hosts
from specctl.fleet.types import Fleet
from tests.unit.fleet.inventories import MODELS, resolved


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """Four hosts, two groups, three servers."""
    return resolved(
        MODELS
        + """
defaults: {launch: {python: /p}}
servers: {one: {engine: lab, target: big, port: 1}, two: {engine: lab, target: big, port: 2}}
groups: {kimi: {}, lab: {}, empty: {}}
hosts:
  b300-2: {groups: [kimi], servers: [one, two]}
  b300-1: {groups: [kimi], servers: [one]}
  ct200: {groups: [kimi, lab], servers: [two]}
  spare: {}
"""
    ).fleet


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(hosts=("ct200",)), ["ct200/two"]),
        (Selection(hosts=("b300-*",)), ["b300-2/one", "b300-2/two", "b300-1/one"]),
        (Selection(hosts=("b300-1", "b300-*", "b300-1")), ["b300-2/one", "b300-2/two", "b300-1/one"]),
        (Selection(hosts=("b300-[12]",), servers=("two",)), ["b300-2/two"]),
        (Selection(groups=("lab",), hosts=("b300-1",)), ["b300-1/one", "ct200/two"]),
        (Selection(groups=("k*",), excludes=("b300-*",)), ["ct200/two"]),
        (Selection(everything=True, servers=("o?e",)), ["b300-2/one", "b300-1/one"]),
        (Selection(everything=True), ["b300-2/one", "b300-2/two", "b300-1/one", "ct200/two"]),
    ],
)
def test_selection_keeps_the_inventorys_order_and_names_each_once(
    fleet: Fleet, selection: Selection, expected: list[str]
) -> None:
    """Whatever the order and overlap of patterns, the result is in the inventory's order without duplicates."""
    assert [f"{host.name}/{server.name}" for host, server in select(fleet, selection)] == expected


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(), "no host is selected"),
        (Selection(servers=("one",)), "no host is selected"),
        (Selection(excludes=("ct200",)), "no host is selected"),
        (Selection(hosts=("ct20",)), "ct20 matches no host in the inventory (did you mean ct200?)"),
        (Selection(hosts=("x*",)), "x* matches no host in the inventory (there is b300-2, b300-1, ct200, spare)"),
        (Selection(hosts=("CT200",)), "CT200 matches no host in the inventory (did you mean ct200?)"),
        (Selection(groups=("kim",)), "kim matches no group with hosts in the inventory (did you mean kimi?)"),
        (Selection(groups=("empty",)), "empty matches no group with hosts in the inventory (there is kimi, lab)"),
        (Selection(hosts=("ct200",), servers=("one",)), "one matches no server on the selected hosts (there is two)"),
        (
            Selection(hosts=("ct200",), excludes=("b300-1",)),
            "--exclude b300-1 matches no host among the selected (there is ct200)",
        ),
        (Selection(hosts=("ct200",), excludes=("*",)), "every selected host is excluded"),
        (Selection(hosts=("spare",)), "no server is placed on spare"),
        (Selection(everything=True, hosts=("ct200",)), "--all and a selection of hosts contradict each other"),
    ],
)
def test_a_selection_of_nothing_is_an_error(fleet: Fleet, selection: Selection, message: str) -> None:
    """A pattern that matches nothing is refused with a near miss, and so is no selector at all."""
    with pytest.raises(UsageError) as caught:
        select(fleet, selection)
    assert caught.value.message == message
    assert caught.value.hint


def test_a_comma_gets_its_own_hint(fleet: Fleet) -> None:
    """Who writes a,b is told to repeat the option."""
    with pytest.raises(UsageError) as caught:
        select(fleet, Selection(hosts=("ct200,b300-1",)))
    assert caught.value.hint == "repeat the option for several names"


def test_hosts_alone_may_be_without_servers(fleet: Fleet) -> None:
    """Commands that need no server take hosts that have none."""
    assert [host.name for host in select_hosts(fleet, Selection(hosts=("spare",)))] == ["spare"]
