"""Where an inventory is found, and what loading and selecting give."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.errors import InventoryError, UnsupportedError, UsageError
from specctl.ops import inventory as inventories
from specctl.ops.inventory import Overrides, Selection

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "inventory" / "example.yaml")


def test_what_is_given_comes_first(tmp_path: Path) -> None:
    """Options beat the variable, the variable beats the folder, ./inventory.yaml beats ./inventory/inventory.yaml."""
    environ = {"SPECCTL_INVENTORY": "a.yaml::b.yaml"}
    assert inventories.inventory_paths(["x.yaml"], environ, tmp_path) == ("x.yaml",)
    assert inventories.inventory_paths([], environ, tmp_path) == ("a.yaml", "b.yaml")
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "example.yaml").touch()
    with pytest.raises(UsageError, match="there is no inventory here"):
        inventories.inventory_paths([], {}, tmp_path)
    (tmp_path / "inventory" / "inventory.yaml").touch()
    assert inventories.inventory_paths([], {}, tmp_path) == ("inventory/inventory.yaml",)
    (tmp_path / "inventory.yaml").touch()
    assert inventories.inventory_paths([], {"SPECCTL_INVENTORY": ""}, tmp_path) == ("inventory.yaml",)


def test_an_empty_path_is_no_folder(tmp_path: Path) -> None:
    """`-i "$UNSET"` is told for what it is."""
    with pytest.raises(UsageError, match="-i is given an empty path"):
        inventories.inventory_paths([""], {}, tmp_path)


def test_load_fleet_names_its_files() -> None:
    """The fleet knows what it was read from."""
    assert inventories.load_fleet([EXAMPLE]).files == (EXAMPLE,)


def test_load_fleet_raises_every_problem(tmp_path: Path) -> None:
    """Problems of all files come together."""
    (tmp_path / "a.yaml").write_text("host: {}")
    paths = [str(tmp_path / "a.yaml"), str(tmp_path / "missing.yaml")]
    with pytest.raises(InventoryError) as caught:
        inventories.load_fleet(paths)
    assert [problem.message for problem in caught.value.problems] == ["unknown key", "there is no such file"]


def test_load_selected_lays_the_command_line_over_the_selected_alone() -> None:
    """A value that another server could not take does not matter while that server is not selected."""
    overrides = Overrides(algo="ddtree")
    ((host, server),) = inventories.load_selected([EXAMPLE], Selection(hosts=("ct200",)), overrides)
    assert (host.name, server.algo) == ("ct200", "ddtree")
    with pytest.raises(UnsupportedError, match=r"b300: sglang-0\.5\.23 cannot decode ddtree"):
        inventories.load_selected([EXAMPLE], Selection(groups=("kimi",)), overrides)


def test_no_override_changes_nothing() -> None:
    """Without a command line the selected servers are the inventory's."""
    selection = Selection(everything=True)
    assert inventories.load_selected([EXAMPLE], selection, Overrides()) == inventories.load_selected(
        [EXAMPLE], selection
    )
