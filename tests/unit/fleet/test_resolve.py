"""Layers over layers: which value wins, what null takes away, and where each value came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from specctl.errors import InventoryError
from specctl.fleet.types import Host, Limits, Origin, SecretRef, SecretSource, ServiceManager, UnitSettings, Via, Waiver
from tests.unit.fleet.inventories import MODELS, host, resolved, server

LAYERS: Mapping[str, str] = {
    "defaults": "defaults: {{launch: {0}}}",
    "hardware:box": "hardware: {{box: {{launch: {0}}}}}",
    "server:chat": "servers: {{chat: {{engine: lab, target: big, draft: small, port: 1, python: /p, {1}}}}}",
    "group:first": "groups: {{first: {{launch: {0}}}, second: {{launch: {2}}}}}",
    "group:second": "",
    "host:gpu1": "hosts: {{gpu1: {{hardware: box, groups: [first, second], servers: [chat], launch: {0}}}}}",
}


def stacked(*, until: str) -> str:
    """Return an inventory in which every layer up to one sets served_name and a variable to its own name."""
    order = list(LAYERS)
    lines = []
    for layer, template in LAYERS.items():
        said = f"served_name: '{layer}', env: {{WHO: '{layer}'}}" if order.index(layer) <= order.index(until) else ""
        second = "{served_name: 'group:second', env: {WHO: 'group:second'}}" if order.index(until) >= 4 else "{}"
        lines.append(template.format("{" + said + "}", said, second))
    return "\n".join(lines)


@pytest.mark.parametrize("layer", list(LAYERS))
def test_the_later_layer_wins(layer: str) -> None:
    """Defaults → hardware → server → groups in their order → host: the last one that speaks is heard, and named as the origin."""
    got = server(stacked(until=layer))
    assert (got.served_name, got.env["WHO"]) == (layer, layer)
    assert (got.provenance["served_name"].layer, got.provenance["env.WHO"].layer) == (layer, layer)


def test_a_value_knows_its_line_and_column() -> None:
    """Provenance points at the key in its file; what no file says is built in."""
    got = (
        resolved(
            """\
        models: {big: {path: /b}}
        servers:
          chat:
            engine: lab
            target: big
            port: 30001
            venv: /opt/venv
            options: {page-size: 1}
        hosts: {gpu1: {servers: [chat]}}
        """
        )
        .fleet.hosts[0]
        .servers[0]
        .provenance
    )
    place = {"layer": "server:chat", "file": "a.yaml"}
    assert got["port"] == Origin(layer="server:chat", file="a.yaml", line=6, column=5)
    assert got["options.--page-size"] == Origin(layer="server:chat", file="a.yaml", line=8, column=15)
    assert got["target"] == Origin(**place, line=5, column=5)
    assert got["bind"] == Origin(layer="built in")


def test_mappings_merge_by_key_and_keep_their_order() -> None:
    """A later layer changes an option in its place and adds new ones at the end, whichever way the flag is spelled."""
    got = server(
        """
        defaults: {launch: {python: /p, port: 1, options: {first: 1, second: 2, --third: 3}}}
        servers: {chat: {engine: lab, target: big, options: {--second: two, fourth: 4}}}
        hosts: {gpu1: {servers: [chat]}}
        """
    )
    assert list(got.options.items()) == [("--first", 1), ("--second", "two"), ("--third", 3), ("--fourth", 4)]


def test_null_takes_an_inherited_value_away() -> None:
    """Null removes a key, or a whole mapping; what is built in holds again."""
    got = server(
        """
        defaults:
          launch:
            python: /p
            port: 1
            served_name: name
            options: {a: 1, b: 2}
            env: {A: "1", B: "2"}
            knobs: {dflash: {block_size: 8}, ddtree: {tree_budget: 7, topk_cap: 2}}
            limits: {load: 1m, drain: 1m}
            secrets: {api_key: env:KEY}
            waivers: {W031: because}
        servers: {chat: {engine: lab, target: big, draft: small}}
        hosts:
          gpu1:
            servers: [chat]
            launch:
              served_name: null
              options: {a: null}
              env: null
              knobs: {dflash: null, ddtree: {topk_cap: null}}
              limits: {load: null}
              secrets: null
              waivers: {W031: null}
        """
    )
    assert (got.served_name, dict(got.options), dict(got.env)) == (None, {"--b": 2}, {})
    assert {algo: dict(knobs) for algo, knobs in got.knobs.items()} == {"ddtree": {"tree_budget": 7}}
    assert got.limits == Limits(drain_s=60.0)
    assert (dict(got.secrets), got.waivers) == ({}, ())


def test_null_then_a_value_again() -> None:
    """A layer above the one that took a value away may set it again."""
    got = server(
        """
        defaults: {launch: {python: /p, port: 1, env: {A: one, B: two}}}
        groups: {g: {launch: {env: null}}}
        servers: {chat: {engine: lab, target: big}}
        hosts: {gpu1: {groups: [g], servers: [chat], launch: {env: {A: three}}}}
        """
    )
    assert dict(got.env) == {"A": "three"}


def test_venv_and_python_are_one_slot() -> None:
    """The later of venv and python decides the interpreter."""
    text = """
        defaults: {{launch: {{port: 1, {0}}}}}
        servers: {{chat: {{engine: lab, target: big}}}}
        hosts: {{gpu1: {{servers: [chat], launch: {{{1}}}}}}}
        """
    assert server(text.format("python: /usr/bin/python3", "venv: /opt/venv/")).python == "/opt/venv/bin/python"
    assert server(text.format("venv: /opt/venv", "python: /usr/bin/python3")).python == "/usr/bin/python3"


def test_a_server_is_built_in_whole() -> None:
    """Every setting arrives, with its unit read."""
    got = server(
        """
        servers:
          chat:
            engine: lab
            target: big
            draft: small
            venv: /opt/venv
            cuda_home: /cuda
            bind: 0.0.0.0
            port: 30001
            tp: 2
            gpus: 4-5
            algo: ddtree
            knobs: {ddtree: {tree_budget: 7}}
            options: {flag: true, off: false, text: abc, number: 0.85, several: [a, 1]}
            env: {PLAIN: text, NUMBER: 1.50, ZERO: 0}
            secrets: {api_key: env:KEY, admin_api_key: file:~/key, hf_token: "cmd:pass show hub"}
            served_name: kimi
            working_dir: /srv
            limits: {load: 10m, drain: 30s, stop: 5s, stall: 1m, smoke: 20s}
            unit: {user: engine, memory_max: 2GiB, restart: false, extra: {LimitNOFILE: "9", Slice: [a.slice, b.slice]}}
            waivers: {W031: "no key, on purpose"}
        hosts: {gpu1: {servers: [chat]}}
        """
    )
    assert (got.python, got.cuda_home, got.bind, got.port, got.tp, got.gpus) == (
        "/opt/venv/bin/python",
        "/cuda",
        "0.0.0.0",
        30001,
        2,
        (4, 5),
    )
    assert dict(got.options) == {
        "--flag": True,
        "--off": False,
        "--text": "abc",
        "--number": 0.85,
        "--several": ("a", "1"),
    }
    assert dict(got.env) == {"PLAIN": "text", "NUMBER": "1.50", "ZERO": "0"}
    assert dict(got.secrets) == {
        "api_key": SecretRef(source=SecretSource.ENV, locator="KEY"),
        "admin_api_key": SecretRef(source=SecretSource.FILE, locator="~/key"),
        "hf_token": SecretRef(source=SecretSource.CMD, locator="pass show hub"),
    }
    assert got.limits == Limits(load_s=600, drain_s=30, stop_s=5, stall_s=60, smoke_s=20)
    assert got.unit == UnitSettings(
        user="engine",
        memory_max="2147483648",
        restart=False,
        extra=(("LimitNOFILE", "9"), ("Slice", "a.slice"), ("Slice", "b.slice")),
    )
    assert (got.algo, got.served_name, got.working_dir) == ("ddtree", "kimi", "/srv")
    assert got.waivers == (Waiver(rule="W031", reason="no key, on purpose"),)
    assert (got.target.path, got.draft and got.draft.target) == ("/srv/big", "big")


def test_a_host_that_says_nothing_has_what_is_built_in() -> None:
    """A bare name is a host, reached as OpenSSH knows it."""
    got = host("hosts: {gpu1: }")
    provenance = got.provenance
    assert got == Host(name="gpu1", via=Via.SSH, provenance=provenance)
    assert {origin.layer for origin in provenance.values()} == {"built in"}


def test_host_settings_come_from_defaults_groups_and_the_host() -> None:
    """Connection settings merge by key over defaults, groups and the host itself."""
    got = host(
        """
        defaults: {connect: {user: ops, port: 22, sudo: true}, state_dir: /srv/specctl, python: python3.9}
        groups: {g: {connect: {port: 2222}, service_manager: supervisor, hosts: [gpu1]}}
        hosts: {gpu1: {connect: {address: 192.0.2.7, user: root}}}
        """
    )
    assert (got.user, got.port, got.sudo, got.address) == ("root", 2222, True, "192.0.2.7")
    assert (got.manager, got.state_dir, got.python) == (
        ServiceManager.SUPERVISOR,
        PurePosixPath("/srv/specctl"),
        "python3.9",
    )
    assert got.provenance["connect.port"].layer == "group:g"
    assert got.provenance["groups"] == Origin(layer="group:g", file="a.yaml", line=7, column=66)


def test_a_host_names_its_groups_first() -> None:
    """Groups that a host names come in its order, those that name it after them in file order."""
    got = host(
        """
        groups: {a: {hosts: [gpu1]}, b: {}, c: {hosts: [gpu1]}, d: {}}
        hosts: {gpu1: {groups: [d, c]}}
        """
    )
    assert got.groups == ("d", "c", "a")


def test_files_add_up() -> None:
    """Several files are one inventory, hosts in the order of files."""
    fleet = resolved(
        MODELS,
        "hosts: {gpu2: {servers: [chat]}, gpu1: {}}",
        "servers: {chat: {engine: lab, target: big, port: 1, python: /p}}\nhosts: {gpu0: }",
    ).fleet
    assert [one.name for one in fleet.hosts] == ["gpu2", "gpu1", "gpu0"]
    assert fleet.files == ("a.yaml", "b.yaml", "c.yaml")


def test_a_name_in_two_files_names_both_places() -> None:
    """The same name in two files is a problem of the second that points at the first."""
    with pytest.raises(InventoryError) as caught:
        resolved("hosts:\n  gpu1: {}\ndefaults: {python: a}", "defaults: {python: b}\nhosts: {gpu1: {}}")
    assert [str(problem) for problem in caught.value.problems] == [
        "b.yaml:1:1: defaults: is declared twice: it stands in a.yaml:3:1 already",
        "b.yaml:2:9: hosts.gpu1: is declared twice: it stands in a.yaml:2:3 already",
    ]


def test_problems_come_by_file_and_line() -> None:
    """All problems of all files at once: files in the order given, lines in order, whatever kind they are."""
    with pytest.raises(InventoryError) as caught:
        resolved("hosts: {gpu1: {servers: [chat]}}\nhost: {}", "", "hosts: {GPU: {sudo: true}}")
    assert [(problem.file, problem.line) for problem in caught.value.problems] == [
        ("a.yaml", 1),
        ("a.yaml", 2),
        ("b.yaml", None),
        ("c.yaml", 1),
        ("c.yaml", 1),
    ]
