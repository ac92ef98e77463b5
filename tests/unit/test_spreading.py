"""How the tests are spread over several workers."""

from __future__ import annotations

from pathlib import Path

from tests import spreading

ROOT = Path(__file__).parents[2]


def test_a_file_stays_together_and_a_test_on_hosts_stands_alone() -> None:
    """Tests that share servers go to one worker; a test on hosts goes to any, but for those that end fleets."""
    alone = "tests/fleet/test_deploy.py::test_one"
    units = [
        spreading.unit_of_work(each)
        for each in ("tests/unit/test_a.py::test_one[::]", alone, f"{spreading.FLEETS}::test_one")
    ]
    assert units == ["tests/unit/test_a.py", alone, spreading.FLEETS]


def test_what_is_long_begins_first() -> None:
    """First what is on the list, in its order; then the files of most tests, each in its own order."""
    first, second = spreading.LONG[:2]
    nodeids = [
        "tests/a.py::test_1",
        "tests/b.py::test_2",
        "tests/b.py::test_1",
        f"{second}::test_1",
        f"{first}::test_1",
    ]
    assert spreading.longest_first(nodeids) == [4, 3, 1, 2, 0]


def test_every_long_one_is_there() -> None:
    """Each name of the list is a folder or a file of tests, and where it names a test the file has it."""
    for name in spreading.LONG:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        assert f"def {test}" in ((ROOT / path).read_text() if test else "def "), name
