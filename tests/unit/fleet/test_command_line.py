"""The command line over selected servers: it wins there, touches nothing else, and may say only what an inventory may."""

from __future__ import annotations

import pytest

from specctl.errors import UnsupportedError, UsageError
from specctl.fleet.overrides import Overrides
from specctl.fleet.select import Selection, select
from specctl.fleet.types import Host, Origin, Server
from tests.unit.fleet.inventories import MODELS, resolved

TEXT = (
    MODELS
    + """
defaults: {launch: {python: /p}}
servers:
  lab:
    {engine: lab, target: big, draft: small, port: 1, algo: dflash, knobs: {ddtree: {tree_budget: 8, topk_cap: 2}}, env: {A: x}}
  stock: {engine: sglang-0.5.23, target: big, draft: small, port: 2}
  bare: {engine: lab, target: big, port: 3}
hosts: {gpu1: {servers: [lab]}, gpu2: {servers: [lab, stock, bare]}}
"""
)


def over(overrides: Overrides, *servers: str, host: str = "gpu2") -> tuple[tuple[Host, Server], ...]:
    """Lay a command line over some servers of a host."""
    inventory = resolved(TEXT)
    return inventory.over(select(inventory.fleet, Selection(hosts=(host,), servers=servers)), overrides)


def test_the_command_line_wins_over_the_host() -> None:
    """Algo, knobs, options and variables of the command line are the last layer, and say so."""
    overrides = Overrides(algo="ddtree", knobs={"tree_budget": 32}, options={"page-size": 1}, env={"A": "y"})
    ((host, server),) = over(overrides, "lab")
    assert (server.algo, dict(server.knobs["ddtree"])) == ("ddtree", {"tree_budget": 32, "topk_cap": 2})
    assert (dict(server.options), dict(server.env)) == ({"--page-size": 1}, {"A": "y"})
    assert server.provenance["knobs.ddtree.tree_budget"] == Origin(layer="command line")
    assert server.provenance["knobs.ddtree.topk_cap"].layer == "server:lab"
    assert host.server("lab") == server


def test_other_servers_of_the_host_stay_as_they_are() -> None:
    """Only the selected servers change; the host holds the changed and the unchanged ones."""
    before = resolved(TEXT).fleet.host("gpu2")
    ((host, _),) = over(Overrides(algo="none"), "lab")
    assert before is not None
    assert host.server("lab") != before.server("lab")
    assert host.server("stock") == before.server("stock")


def test_knobs_belong_to_the_algo_that_results() -> None:
    """Without --algo the knobs are those of the inventory's algo."""
    ((_, server),) = over(Overrides(knobs={"block_size": 4}), "lab")
    assert dict(server.knobs["dflash"]) == {"block_size": 4}


def test_an_algo_that_the_profile_lacks_is_unsupported() -> None:
    """The refusal names the host, what the profile has, and the profiles to choose instead."""
    with pytest.raises(UnsupportedError) as caught:
        over(Overrides(algo="ddtree"), "stock")
    assert str(caught.value) == "gpu2: sglang-0.5.23 cannot decode ddtree (it has none, dflash)"
    assert caught.value.hint == "set servers.stock.engine to lab, sglang-0.5.23+ddtree or sglang-pr29907"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("overrides", "server", "message"),
    [
        (
            Overrides(algo="dtree"),
            "lab",
            "algo: there is no algo dtree (there is ddtree, dflash, none) (did you mean ddtree?)",
        ),
        (Overrides(algo="dflash"), "bare", "algo: dflash drafts, and bare names no draft: give servers.bare.draft"),
        (Overrides(knobs={"block_size": 1}), "lab", "knobs.dflash.block_size: block_size is 1, outside 2 to 64"),
        (Overrides(algo="none", knobs={"x": 1}), "lab", "knobs.none.x: none has no knob x (it has none at all)"),
        (Overrides(options={"port": 1}), "lab", "options.port: specctl writes --port itself: say it as port"),
        (
            Overrides(options={"api-key": "sk-1"}),
            "lab",
            (
                "options.api-key: a secret may not stand in the engine's arguments, which ps shows: "
                "write secrets: {api_key: env:API_KEY}"
            ),
        ),
        (Overrides(env={"A B": "c"}), "lab", 'env."A B": "A B" cannot name a variable: letters, digits and _'),
        (Overrides(env={"A": "b\nc"}), "lab", "env.A: holds a line break, which no service manager carries"),
    ],
)
def test_what_an_inventory_may_not_say_the_command_line_may_not_either(
    overrides: Overrides, server: str, message: str
) -> None:
    """A wrong value is a usage error that names the host and the near miss."""
    with pytest.raises(UsageError) as caught:
        over(overrides, server)
    assert str(caught.value) == f"gpu2: {message}"
