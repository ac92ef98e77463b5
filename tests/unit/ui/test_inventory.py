"""The inventory's views: headlines, ranges and what is unknown."""

from __future__ import annotations

import io
from pathlib import Path

from specctl.fleet.types import Host, Server
from specctl.ops.inventory import load_fleet
from specctl.ui.inventory import host_headline, host_view, server_headline
from specctl.ui.theme import console

EXAMPLE = str(Path(__file__).parents[3] / "inventory" / "example.yaml")


def example(name: str) -> tuple[Host, Server]:
    """Return a host of the example and its server."""
    host = load_fleet([EXAMPLE]).host(name)
    assert host is not None
    return host, host.servers[0]


def shown(name: str, *, provenance: bool = False, width: int = 200) -> list[str]:
    """Return the lines of a host's view."""
    host, server = example(name)
    file = io.StringIO()
    console(file=file, width=width).print(host_view(host, [server], provenance=provenance))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_headline_says_what_a_thing_is() -> None:
    """Host: connection, GPUs, service manager. Server: engine, algo with its knobs, address."""
    host, server = example("ct200")
    assert host_headline(host) == "ct200 · ops@192.0.2.10 · 8× RTX PRO 6000 Blackwell · systemd"
    assert server_headline(server) == "k26 · fork-0.5 · dflash block_size 8 · 0.0.0.0:30001"
    assert host_headline(example("local")[0]) == "local · local · supervisor"


def test_values_carry_their_units() -> None:
    """Sizes, durations and GPUs are shown as people write them."""
    lines = [" ".join(line.split()) for line in shown("ct200")]
    for expected in ("target.size_bytes 590GB", "limits.load_s 1200 s", "gpus 0-7", "unit.memory_max 1TiB", "tp 8"):
        assert expected in lines


def test_what_is_not_known_takes_no_line() -> None:
    """A value that nobody gave is left out."""
    assert not [line for line in shown("local") if line.strip().startswith(("cuda_home", "tp", "gpus", "served_name"))]


def test_every_value_has_an_origin() -> None:
    """With provenance no line of a value ends in a dash."""
    for name in ("ct200", "b300", "local"):
        assert [line for line in shown(name, provenance=True) if line.endswith("—")] == []
