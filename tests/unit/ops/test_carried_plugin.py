"""A plugin in a release: held by it, found by its unit, bounded by what the inventory may ask of it, compared like other files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from specctl.adapters import plugin_files
from specctl.adapters.templates import Templates
from specctl.engines.types import PLUGINS
from specctl.errors import UnsupportedError
from specctl.fleet.types import Host
from specctl.ops import render
from specctl.rollout import launch as launches
from specctl.rollout.release import Release, differing
from tests.unit.fleet.inventories import host

ROOT = Path(__file__).parents[3]
NAME = "sglang-0.5.23+ddtree"
SERVER = """
servers:
  chat:
    {{engine: {engine}, target: big, draft: small, port: 1, python: /p, algo: ddtree, env: {env},
     knobs: {{dflash: {{block_size: 8}}, ddtree: {{block_size: 8, tree_budget: {budget}, topk_cap: 4}}}}, agent: {agent}}}
hosts: {{gpu1: {{servers: [chat], service_manager: {manager}}}}}
"""


def made(
    *, engine: str = NAME, env: str = "{}", budget: int = 16, agent: str = "{}", manager: str = "systemd"
) -> tuple[Host, Release]:
    """Render a release as number 7."""
    found = host(SERVER.format(engine=engine, env=env, budget=budget, agent=agent, manager=manager))
    release = render.release(Templates(working_dir=ROOT), found, found.servers[0], release_id="7", secrets={})
    return found, release


def env_of(algo: str, **given: object) -> dict[str, str]:
    """Return the environment of an algo's launch."""
    found, _ = made(**given)  # type: ignore[arg-type]  # keywords of made
    return dict(launches.build(found, found.servers[0], algo).env)


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_is_whole(name: str) -> None:
    """Every module of the package is carried as it is, with metadata whose entry point names what is in it."""
    carried = {file.name: file.content for file in plugin_files.of(name)}
    home = ROOT / "agents" / name
    assert {f"plugins/{name}/{path.name}": path.read_text() for path in home.glob("*.py")}.items() <= carried.items()
    (points,) = [text for path, text in carried.items() if path.endswith(".dist-info/entry_points.txt")]
    entry, _, target = points.splitlines()[1].partition(" = ")
    module, _, function = target.partition(":")
    code = ast.parse(carried[f"plugins/{module.replace('.', '/')}.py"])
    assert entry == PLUGINS[name][1]
    assert function in [node.name for node in code.body if isinstance(node, ast.FunctionDef)]


def test_a_plugin_that_is_not_installed_is_said() -> None:
    """Without the package there is nothing to carry, and the way out is named."""
    with pytest.raises(UnsupportedError, match="the plugin no_such_plugin is not installed with specctl"):
        plugin_files.of("no_such_plugin")


def test_a_release_holds_the_plugin_and_its_units_find_it() -> None:
    """The drafting algos' units search the release's folder first; plain decoding loads nothing."""
    _, release = made(env="{PYTHONPATH: /mine, SGLANG_PLUGINS: 'own, other'}")
    units = {algo: file.content for algo, name in release.units.items() if (file := release.file(name)) is not None}
    for algo in ("dflash", "ddtree"):
        assert "Environment=PYTHONPATH=/var/lib/specctl/chat/releases/7/plugins:/mine\n" in units[algo]
        assert "Environment=SGLANG_PLUGINS=own,other,ddtree\n" in units[algo]
    assert "Environment=PYTHONPATH=/mine\n" in units["none"]
    assert release.file("plugins/sglang_ddtree/plugin.py") is not None


def test_under_supervisor_the_script_finds_it() -> None:
    """The script that supervisor starts exports the same path."""
    _, release = made(manager="supervisor")
    script = release.file("ddtree.sh")
    assert script is not None
    assert "PYTHONPATH=/var/lib/specctl/chat/releases/7/plugins\n" in script.content


def test_a_release_without_a_plugin_holds_none() -> None:
    """A profile without a plugin carries nothing."""
    _, release = made(engine="lab")
    assert [file.name for file in release.files if "/" in file.name] == []


def test_a_manifest_names_no_release_in_a_launch() -> None:
    """What is compared between releases says "the plugins of this release", so that a new number is no change."""
    _, release = made()
    manifest = release.manifest(salt="s", who="me", when="now", version="0")
    launch = release.launches["ddtree"]["env"]
    assert isinstance(launch, dict)
    assert launch["PYTHONPATH"] == "<plugins>"
    assert differing(release, manifest) == ()
    files = manifest["files"]
    assert isinstance(files, dict)
    older = {**manifest, "files": {**files, "plugins/sglang_ddtree/tree.py": "0" * 64}}
    assert differing(release, older) == ("plugins/sglang_ddtree/tree.py",)


def test_a_stored_launch_searches_its_own_release() -> None:
    """A release that is gone back to uses the plugin that it holds, not today's."""
    found, release = made()
    kept = release.launches["ddtree"]
    launch = launches.stored(found, found.servers[0], "ddtree", kept, {}, "3")
    assert launch.plugs
    assert launch.environment("/r/3")["PYTHONPATH"] == "/r/3/plugins"


@pytest.mark.parametrize(
    ("given", "budget", "topk"),
    [
        ({}, "16", "4"),
        ({"budget": 4}, "7", "4"),
        (
            {"agent": "{mode: act, algos: [ddtree], knobs: {ddtree: {tree_budget: [8, 31], topk_cap: [2, 8]}}}"},
            "31",
            "8",
        ),
    ],
)
def test_a_running_engine_may_be_told_all_that_the_inventory_allows(
    given: dict[str, object], budget: str, topk: str
) -> None:
    """The highest that any algo, or the agent, would tell it: the chain needs its block's depths however small the tree is."""
    for algo in ("dflash", "ddtree"):
        env = env_of(algo, **given)
        assert (env["DDTREE_MAX_BUDGET"], env["DDTREE_MAX_TOPK"]) == (budget, topk)
    assert "DDTREE_MAX_BUDGET" not in env_of("none", **given)


def test_a_running_engine_is_told_which_budgets_to_prepare_for() -> None:
    """Those to which the agent may turn it: its bounds and the powers of two between; none where it owns none."""
    agent = "{mode: act, algos: [ddtree], knobs: {ddtree: {tree_budget: [6, 40]}}}"
    assert env_of("dflash", agent=agent)["DDTREE_GRAPH_BUDGETS"] == "6,8,16,32,40"
    assert "DDTREE_GRAPH_BUDGETS" not in env_of("ddtree")


def test_a_limit_of_the_inventorys_own_stays() -> None:
    """Somebody who reserves more of the cache keeps it."""
    assert env_of("ddtree", env="{DDTREE_MAX_BUDGET: 64}")["DDTREE_MAX_BUDGET"] == "64"
