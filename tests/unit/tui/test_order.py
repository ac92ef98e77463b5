"""Which servers the table shows, in which order, under which headings, and what it says is wrong with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.sight import Sight, State
from specctl.tui import fleet
from specctl.tui.columns import COLUMNS, Row, fitting
from specctl.tui.layout import text
from specctl.tui.order import Grouping, Heading, Order, arranged, matches
from specctl.tui.problems import problems_of
from specctl.tui.rowtext import heading_line, row_line, shared, title_line, wanted
from tests.unit.tui import world


def rows(*sights: Sight) -> list[Row]:
    return [Row(sight=sight, problems=problems_of(sight)) for sight in sights or world.FLEET]


def names(lines: tuple[Row | Heading, ...]) -> list[str]:
    return [f"[{line.name}]" if isinstance(line, Heading) else line.sight.host for line in lines]


@pytest.mark.parametrize(
    ("wanted_words", "hosts"),
    [
        ("", ["b300-1", "b300-2", "ct200", "ct201", "ct202", "lab-3"]),
        ("CT2", ["ct200", "ct201", "ct202"]),
        ("ct2 ddtree", ["ct200", "ct202"]),
        ("-ct2", ["b300-1", "b300-2", "lab-3"]),
        ("loading", ["ct201"]),
        ("!", ["b300-1", "b300-2", "ct202", "lab-3"]),
        ("timed out", ["b300-2"]),
        ("b300 pinned", ["b300-1"]),
        ("nothing like it", []),
        ("[red]", []),
    ],
)
def test_words_choose(wanted_words: str, hosts: list[str]) -> None:
    """Each word must be found in names, groups, state, algo, decision or problems; -word must not; ! is a problem."""
    assert names(arranged(rows(), Order(filter=wanted_words))) == hosts


def test_a_minus_alone_is_a_word() -> None:
    """A minus that is still being typed hides nothing that has one."""
    assert matches(rows(world.ready("ct-200"))[0], "-") is True


def test_hosts_sort_as_people_count() -> None:
    """gpu2 comes before gpu10."""
    made = rows(*(world.ready(name) for name in ("gpu10", "gpu2", "gpu1")))
    assert names(arranged(made, Order())) == ["gpu1", "gpu2", "gpu10"]


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("key", [column.key for column in COLUMNS])
def test_unknown_is_last_either_way(key: str, falling: bool) -> None:
    """Whatever is sorted by, a server of which nothing is known stands at the end, and none is lost."""
    made = rows(*world.FLEET, Sight(host="aaa", server="x", state="unknown"))
    lines = arranged(made, Order(sort=key, falling=falling))
    assert len(lines) == len(made)
    if Order(sort=key).column.sort(made[-1]) is None:
        known = [Order(sort=key).column.sort(line) is not None for line in lines if isinstance(line, Row)]
        assert known == sorted(known, reverse=True)


def test_groups_have_headings() -> None:
    """Grouped, servers stand under the name of what they have in common, with what they do together."""
    lines = arranged(rows(), Order(grouping=Grouping.ALGO))
    assert names(lines) == ["[ddtree]", "ct200", "ct202", "lab-3", "[dflash]", "b300-1", "b300-2", "ct201"]
    heading = lines[0]
    assert isinstance(heading, Heading)
    assert heading_line(heading, 100).plain.rstrip() == "ddtree · 3 servers · 720.8 tok/s · 9 running · 2 with problems"


def test_a_server_of_a_shared_host_keeps_its_name() -> None:
    """Where there is no column for servers, the line of a host that has several names which one it is."""
    made = rows(world.ready("gpu1", "chat"), world.ready("gpu1", "code"), world.ready("gpu2", "chat"))
    places = fitting({**wanted(made), "host": 12}, 78)
    said = [row_line(row, places, shared(made)).plain.split()[0] for row in made]
    assert said == ["gpu1/chat", "gpu1/code", "gpu2"]


def test_the_sorted_column_has_a_sign() -> None:
    """The heading says by which column the table is sorted, and which way, by more than a colour."""
    places = fitting(wanted(rows()), 120)
    assert "TOK/S▼" in title_line(places, Order(sort="tokens", falling=True)).plain
    assert "ALGO▲" in title_line(places, Order(sort="algo")).plain


@pytest.mark.parametrize(
    ("sight", "said"),
    [
        (world.ready("a"), []),
        (world.LOADING, []),
        (world.AWAY, [("unreachable: connection timed out", True), ("its figures are of 2 min ago", False)]),
        (world.ready("a", proven=False), [("the algo is claimed, not proven", False)]),
        (world.HOT, [("GPU 7 is slowed: hw thermal", True), ("the unit file is not that of release 7", False)]),
        (world.BARE, [("no figures of GPUs: no NVIDIA driver", False)]),
        (replace(world.ready("a"), state="failed (137)", reason="killed"), [("failed (137): killed", True)]),
        (world.ready("a", running=world.count(3, 12.0)), [("the engine's figures are 12 s old", False)]),
        (Sight(host="a", server="b", state=State.UNKNOWN.value), []),
    ],
)
def test_what_is_wrong_is_said(sight: Sight, said: list[tuple[str, bool]]) -> None:
    """Each thing that a person should look at is said once, the gravest first; nothing where all is well."""
    assert [(problem.text, problem.grave) for problem in problems_of(sight)] == said


def test_the_fleet_in_three_lines() -> None:
    """Hosts, servers, algos; sums with how many told them; the gravest problems."""
    shown = [line.plain for line in fleet.lines(rows(), width=200, right=text("12:00:00"))]
    assert shown[0].startswith(
        "specctl top  ·  hosts 5/6 up  ·  servers 6: ready 4, loading 1, unreachable 1  ·  algo ddtree 3, dflash 3"
    )
    assert shown[0].endswith("12:00:00")
    assert "tok/s 1925 (3 of 6)  ·  running 30 (4 of 6)  ·  queued 4 (4 of 6)  ·  GPUs 32  10.3 kW" in shown[1]
    assert shown[2].startswith("! 6 problems  ·  ct202 GPU 7 is slowed: hw thermal  ·  b300-2 unreachable")


def test_sums_leave_out_what_is_unknown() -> None:
    """A sum over nothing is —, never 0; one over some says over how many."""
    silent = rows(world.AWAY)
    assert "tok/s —  ·  running —" in fleet.lines(silent, width=120, right=text())[1].plain
    both = rows(world.AWAY, world.ready("a", running=world.count(0)))
    assert "running 0 (1 of 2)" in fleet.lines(both, width=120, right=text())[1].plain


def test_gpus_of_two_servers_of_a_host_count_once() -> None:
    """Two servers of one host that tell the same GPUs add no power to the fleet."""
    once = fleet.lines(rows(world.ready("a", "x")), width=150, right=text())[1].plain.partition("GPUs")[2]
    twice = fleet.lines(rows(world.ready("a", "x"), world.ready("a", "y")), width=150, right=text())[1].plain
    assert twice.partition("GPUs")[2] == once
