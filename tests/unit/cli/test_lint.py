"""`specctl lint` as people and programs call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from specctl.cli import lint
from specctl.errors import UsageError
from specctl.lint.catalogue import by_id

INVENTORY = Path(__file__).parents[3] / "inventory"
SMALL = """
models: {big: {path: /srv/big}}
servers:
  chat: {engine: sglang-0.5.23, target: big, port: 30001, python: /p, options: {enable-metrics: true}}
hosts: {gpu1: {servers: [chat]}, gpu2: {servers: [chat], launch: {OPTIONS}}}
"""


@pytest.fixture(name="app")
def app_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The command, mounted as main.py mounts it, in an empty folder and without variables that name an inventory or a width."""
    monkeypatch.chdir(tmp_path)
    for name in ("SPECCTL_INVENTORY", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    app = typer.Typer()
    app.callback()(lambda: None)
    lint.mount(app)
    return app


def run(app: typer.Typer, *words: str) -> Result:
    """Run a command line in this process; its exit code is what it returns."""
    return CliRunner().invoke(app, ["lint", *words], standalone_mode=False)


def inventory(options: str) -> None:
    """Write an inventory of two hosts, the second with launch settings of its own."""
    Path("inventory.yaml").write_text(SMALL.replace("OPTIONS", options), encoding="utf-8")


def test_a_clean_inventory_is_one_line(app: typer.Typer) -> None:
    """Nothing found: a line with the count, exit code 0; without a selection all servers are looked at."""
    result = run(app, "-i", str(INVENTORY / "example.yaml"))
    assert (result.output, result.return_value) == ("3 servers · clean\n", 0)


def test_what_is_waived_is_listed_with_its_reason(app: typer.Typer) -> None:
    """The field's waivers are shown, and even --strict passes."""
    result = run(app, "--strict", "-i", str(INVENTORY / "field.yaml"))
    lines = result.output.splitlines()
    assert lines[0] == "ct200 · k26 · field-fork"
    assert lines[1] == (
        "  W031  waived: open to the network without an API key — no API key on 0.0.0.0; the deployment as it was"
    )
    assert (lines[-1], result.return_value) == ("1 server · clean · 4 waived", 0)


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        ("options: {skip-server-warmup: true}", (), 0),
        ("options: {skip-server-warmup: true}", ("--strict",), 2),
        ("options: {decode-log-interval: 100}", ("--strict",), 0),
        ("options: {contxt-length: 32768}", (), 2),
        ("options: {contxt-length: 32768}, waivers: {E001: a fork of ours}", ("--strict",), 0),
    ],
)
def test_exit_codes(app: typer.Typer, options: str, words: tuple[str, ...], code: int) -> None:
    """2 for an error; for a warning with --strict alone; never for a note, nor for what is waived."""
    inventory(options)
    assert run(app, *words).return_value == code


def test_a_selection_is_looked_at_alone(app: typer.Typer) -> None:
    """Selectors work as elsewhere, and one that matches nothing is an error."""
    inventory("options: {contxt-length: 32768}")
    assert run(app, "--host", "gpu1").output == "1 server · clean\n"
    assert run(app, "--exclude", "gpu2").return_value == 0
    assert run(app, "--host", "gpu2").return_value == 2
    assert isinstance(run(app, "--host", "gpu3").exception, UsageError)


def test_as_json(app: typer.Typer) -> None:
    """Servers that were looked at and findings as objects, with the place of each."""
    inventory("options: {contxt-length: 32768}")
    result = run(app, "--json")
    said = json.loads(result.output)
    assert (said["sound"], result.return_value) == (False, 2)
    assert said["servers"] == [{"host": "gpu1", "server": "chat"}, {"host": "gpu2", "server": "chat"}]
    (found,) = said["findings"]
    assert (found["id"], found["severity"], found["host"], found["algos"]) == ("E001", "error", "gpu2", ["none"])
    assert found["origin"] == {"layer": "host:gpu2", "file": "inventory.yaml", "line": 5, "column": 77}


def test_rules_are_listed(app: typer.Typer) -> None:
    """Every rule in a line, or as an object with its reason and remedy; no inventory is needed."""
    lines = run(app, "--rules").output.splitlines()
    assert [line.split()[0] for line in lines] == list(by_id())
    rows = json.loads(run(app, "--rules", "--json").output)["rules"]
    assert {row["id"]: row["remedy"] for row in rows} == {name: rule.remedy for name, rule in by_id().items()}
