"""`specctl inventory …` and `specctl init` as people and programs call them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from specctl.cli import inventory, options
from specctl.errors import InventoryError, SpecctlError, UsageError

EXAMPLE = str(Path(__file__).parents[3] / "inventory" / "example.yaml")
SMALL = """
models: {big: {path: /srv/big}}
servers: {chat: {engine: lab, target: big, port: 30001, python: /p, secrets: {api_key: env:SECRET_VALUE}}}
hosts: {gpu1: {servers: [chat]}, gpu2: {}}
"""


@pytest.fixture(name="app")
def app_of_its_own() -> typer.Typer:
    """The group and the command beside it, mounted as main.py mounts them."""
    app = typer.Typer()
    app.add_typer(inventory.app, name="inventory")
    inventory.mount(app)
    return app


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without variables that name an inventory or a width."""
    monkeypatch.chdir(tmp_path)
    for name in ("SPECCTL_INVENTORY", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(app: typer.Typer, *words: str) -> Result:
    """Run a command line in this process."""
    return CliRunner().invoke(app, list(words))


def failure(app: typer.Typer, *words: str) -> SpecctlError:
    """Run a command line that ends in an error which main.py prints."""
    result = run(app, *words)
    assert isinstance(result.exception, SpecctlError)
    return result.exception


def test_check_says_what_is_there(app: typer.Typer) -> None:
    """A sound inventory is one line, with counts."""
    result = run(app, "inventory", "check", "-i", EXAMPLE)
    assert result.output == f"{EXAMPLE}: sound · 3 hosts · 3 servers\n"
    assert result.exit_code == 0


def test_check_raises_every_problem(app: typer.Typer) -> None:
    """An inventory with problems ends in an error that carries them, exit code 2."""
    Path("inventory.yaml").write_text("hosts: {gpu1: {sudo: true, groups: [x]}}")
    error = failure(app, "inventory", "check")
    assert isinstance(error, InventoryError)
    assert error.exit_code == 2
    assert [str(problem) for problem in error.problems] == [
        (
            "inventory.yaml:1:16: hosts.gpu1.sudo: unknown key (known here: connect, launch, service_manager, state_dir, "
            "python, hardware, groups, servers)"
        ),
        "inventory.yaml:1:37: hosts.gpu1.groups[0]: there is no group x (there is none)",
    ]


def test_check_as_json(app: typer.Typer) -> None:
    """Problems are objects on stdout, and the command still fails."""
    Path("inventory.yaml").write_text("host: {}")
    result = CliRunner().invoke(app, ["inventory", "check", "--json"], standalone_mode=False)
    assert result.return_value == 2
    said = json.loads(result.output)
    assert said["sound"] is False
    assert said["problems"] == [
        {
            "file": "inventory.yaml",
            "line": 1,
            "column": 1,
            "path": "host",
            "message": "unknown key",
            "suggestion": "hosts",
        }
    ]
    Path("inventory.yaml").write_text(SMALL)
    assert json.loads(run(app, "inventory", "check", "--json").output) == {
        "sound": True,
        "files": ["inventory.yaml"],
        "hosts": 2,
        "servers": 1,
        "problems": [],
    }


def test_list_shows_a_line_for_each_server(app: typer.Typer) -> None:
    """Hosts in file order, those without a server too; what is unknown is a dash."""
    Path("inventory.yaml").write_text(SMALL)
    lines = [line.split() for line in run(app, "inventory", "list").output.splitlines()]
    assert lines == [
        ["HOST", "SERVER", "ALGO", "ENGINE", "TARGET", "PORT", "GPUS", "CONNECT", "GROUPS"],
        ["gpu1", "chat", "none", "lab", "big", "30001", "—", "gpu1", "—"],
        ["gpu2", "—", "—", "—", "—", "—", "—", "gpu2", "—"],
    ]


def test_list_takes_a_selection(app: typer.Typer) -> None:
    """Selectors narrow the list; one that matches nothing is an error."""
    assert "b300" not in run(app, "inventory", "list", "-i", EXAMPLE, "--host", "ct*").output
    error = failure(app, "inventory", "list", "-i", EXAMPLE, "--group", "kimmi")
    assert error.message == "kimmi matches no group with hosts in the inventory (did you mean kimi?)"


def test_list_as_json(app: typer.Typer) -> None:
    """The same values as an object, servers in their hosts."""
    hosts = json.loads(run(app, "inventory", "list", "-i", EXAMPLE, "--json").output)["hosts"]
    assert [(host["name"], [server["name"] for server in host["servers"]]) for host in hosts] == [
        ("ct200", ["k26"]),
        ("b300", ["k26-stock"]),
        ("local", ["lab"]),
    ]
    assert hosts[0]["servers"][0]["target"]["size_bytes"] == 590_000_000_000


def test_show_says_where_values_come_from(app: typer.Typer) -> None:
    """Each value with its layer, file, line and column; what is built in says so."""
    Path("inventory.yaml").write_text(SMALL)
    output = run(app, "inventory", "show", "--host", "gpu1", "--provenance").output
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "port 30001 server:chat (inventory.yaml:3:44)" in lines
    assert "bind 127.0.0.1 built in" in lines
    assert "secrets.api_key env:SECRET_VALUE server:chat (inventory.yaml:3:79)" in lines


def test_show_without_provenance_is_values_alone(app: typer.Typer) -> None:
    """Without --provenance there is no third column."""
    Path("inventory.yaml").write_text(SMALL)
    assert "server:chat" not in run(app, "inventory", "show", "--host", "gpu1").output


def test_show_as_json_has_everything(app: typer.Typer) -> None:
    """Values and their provenance; a secret stays a reference whatever the environment holds."""
    Path("inventory.yaml").write_text(SMALL)
    os.environ["SECRET_VALUE"] = "sk-very-secret"
    try:
        output = run(app, "inventory", "show", "--host", "gpu1", "--json").output
    finally:
        del os.environ["SECRET_VALUE"]
    (host,) = json.loads(output)["hosts"]
    (server,) = host["servers"]
    assert server["secrets"] == {"api_key": "env:SECRET_VALUE"}
    assert server["provenance"]["port"] == {"layer": "server:chat", "file": "inventory.yaml", "line": 3, "column": 44}
    assert host["provenance"]["state_dir"] == {"layer": "built in", "file": None, "line": None, "column": None}
    assert "sk-very-secret" not in output


def test_show_of_one_server(app: typer.Typer) -> None:
    """--server narrows, and one that is not there is an error."""
    assert (
        "lab · lab · ddtree"
        in run(app, "inventory", "show", "-i", EXAMPLE, "--host", "local", "--server", "lab").output
    )
    error = failure(app, "inventory", "show", "-i", EXAMPLE, "--host", "local", "--server", "lba")
    assert error.message == "lba matches no server on the selected hosts (did you mean lab?)"


def test_narrow_terminals_lose_columns_and_never_meaning(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 and at 40 columns every line fits, and host, server and algo are there in whole."""
    for width, columns in ((80, 7), (40, 4)):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = run(app, "inventory", "list", "-i", EXAMPLE).output.splitlines()
        assert max(len(line) for line in lines) <= width
        assert len(lines) == 4
        assert [line.split()[:3] for line in lines[1:]] == [
            ["ct200", "k26", "dflash"],
            ["b300", "k26-stock", "dflash"],
            ["local", "lab", "ddtree"],
        ]
        assert len(lines[0].split()) == columns


def test_show_folds_at_80_columns(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long values and places are folded, not cut."""
    monkeypatch.setenv("COLUMNS", "80")
    output = run(app, "inventory", "show", "-i", EXAMPLE, "--host", "ct200", "--provenance").output
    assert max(len(line) for line in output.splitlines()) <= 80
    assert "…" not in output


def test_schema_is_the_shipped_one(app: typer.Typer) -> None:
    """`inventory schema` prints inventory/schema.json."""
    shipped = Path(EXAMPLE).with_name("schema.json").read_text(encoding="utf-8")
    assert run(app, "inventory", "schema").output == shipped


def test_init_writes_an_inventory_that_is_sound(app: typer.Typer) -> None:
    """The starter passes its own check, and is found without an option."""
    assert run(app, "init").output.startswith("wrote inventory.yaml")
    assert run(app, "inventory", "check").output == "inventory.yaml: sound · 1 host · 1 server\n"


def test_init_lab_writes_one_that_works_on_this_machine(app: typer.Typer) -> None:
    """The lab's starter is sound and its models and interpreter are there."""
    result = run(app, "init", "--lab")
    assert (result.exit_code, "deploy -i inventory.yaml --host local" in result.output) == (0, True)
    (host,) = json.loads(run(app, "inventory", "show", "--host", "local", "--json").output)["hosts"]
    (server,) = host["servers"]
    assert (host["connect"]["via"], server["engine"]) == ("local", "lab")
    assert all(Path(path).exists() for path in (server["python"], server["target"]["path"], server["draft"]["path"]))


def test_init_never_writes_over_a_file_unless_forced(app: typer.Typer) -> None:
    """A file that is there stays as it is, unless --force says otherwise."""
    Path("inventory.yaml").write_text("mine")
    error = failure(app, "init")
    assert (error.message, error.hint) == (
        "inventory.yaml exists already",
        "specctl init --force inventory.yaml writes over it",
    )
    assert Path("inventory.yaml").read_text() == "mine"
    assert run(app, "init", "--force").exit_code == 0
    assert Path("inventory.yaml").read_text().startswith("# An inventory")
    Path("other.yaml").write_text("mine")
    assert failure(app, "init", "other.yaml").hint == "specctl init --force other.yaml writes over it"


def test_init_where_nothing_can_be_written(app: typer.Typer) -> None:
    """A folder that is not there is an error, not a traceback."""
    assert failure(app, "init", "missing/inventory.yaml").message == (
        "missing/inventory.yaml cannot be written: No such file or directory"
    )
    Path("there").mkdir()
    error = failure(app, "init", "there")
    assert (error.message, error.hint) == ("there is a folder", "specctl init there/inventory.yaml")


def test_knobs_are_read_or_refused() -> None:
    """NAME=NUMBER, each once; anything else is refused with an example."""
    assert options.knobs(["tree_budget=16", "topk_cap=4"]) == {"tree_budget": 16, "topk_cap": 4}
    assert options.knobs(None) == {}
    for wrong in ("tree_budget", "=4", "a=b", "a=-1", "a=1.5", "a=99999999999"):
        with pytest.raises(UsageError, match="is not NAME=NUMBER"):
            options.knobs([wrong])
    with pytest.raises(UsageError, match="given twice"):
        options.knobs(["a=1", "a=2"])
