"""The options by which commands choose servers: what a refusal points at is what the command takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specctl.cli import options
from specctl.errors import UsageError

EXAMPLE = Path(__file__).resolve().parents[3] / "inventory" / "example.yaml"
OPTION_OF = {"--host": "host", "--group": "group", "--all": "every", "--server": "server", "--exclude": "exclude"}


@pytest.mark.parametrize(
    "without",
    [(), ("server",), ("group", "exclude", "every"), ("group", "exclude", "server", "every")],
)
def test_a_command_without_a_host_is_told_of_options_that_it_takes(without: tuple[str, ...]) -> None:
    """Without a host the command is refused, and every option that the hint names is one of the command's own."""
    command = options.selecting(*without)(_pairs)
    with pytest.raises(UsageError, match="no host is selected") as refused:
        command(inventory=[str(EXAMPLE)])
    named = re.findall(r"--[a-z]+", str(refused.value.hint))
    assert "--host" in named
    assert not {OPTION_OF[option] for option in named} & set(without)


def test_a_command_for_one_host_takes_no_two(tmp_path: Path) -> None:
    """A pattern that matches several hosts is refused with their names; one host will do, also without a server."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("hosts: {gpu1: {}, gpu2: {}, cpu: {}}")
    command = options.selecting("group", "exclude", "server", "every")(_host)
    with pytest.raises(UsageError, match="takes one host, and 2 are selected: gpu1, gpu2"):
        command(inventory=[str(inventory)], host=["gpu*"])
    assert command(inventory=[str(inventory)], host=["c*"]) == "cpu"


def _host(chosen: options.Chosen) -> object:
    return chosen.host().name


def _pairs(chosen: options.Chosen) -> object:
    return chosen.pairs()
