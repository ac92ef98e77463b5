"""`specctl simulate` as people and programs call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from specctl.cli import simulate
from specctl.errors import UsageError

DATA = Path(__file__).parents[2] / "data" / "traces"
BASE = ("--model", str(DATA / "model.json"), "--cost", "5")


@pytest.fixture(name="app")
def app_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The command, mounted as main.py mounts it, in an empty folder and without a variable that names a width."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    app = typer.Typer()
    app.callback()(lambda: None)
    simulate.mount(app)
    return app


def run(app: typer.Typer, trace: str, *words: str) -> Result:
    """Run a command line in this process."""
    return CliRunner().invoke(app, ["simulate", "--trace", str(DATA / trace), *BASE, *words], standalone_mode=False)


def test_a_table_tells_it(app: typer.Typer) -> None:
    """Title, a row a policy, and what it comes to; the last line is ours."""
    lines = run(app, "concurrency.csv").output.splitlines()
    assert lines[:2] == [
        "concurrency.csv · 7 s · concurrency as it was recorded, whatever serves",
        "for latency · a switch takes 5 s · begins in ddtree:tree_budget=16",
    ]
    assert lines[3].split() == ["POLICY", "MS/TOKEN", "P95", "TOKENS", "SWITCHES", "LOST", "MIN", "REGRET"]
    names = [line.split()[0] for line in lines[4:11]]
    assert names == ["none", "dflash", "ddtree:tree_budget=16", "threshold", "hysteresis", "agent", "clairvoyant"]
    assert lines[-1].startswith("agent              misses ")


def test_json_has_the_same(app: typer.Typer) -> None:
    """The same policies in the same order, times in seconds and unrounded."""
    found = json.loads(run(app, "concurrency.csv", "--json").output)["simulation"]
    assert [row["policy"] for row in found["policies"]] == [
        "static", "static", "static", "threshold", "hysteresis", "agent", "clairvoyant",
    ]  # fmt: skip
    assert found["policies"][2] == {
        "policy": "static", "mode": "ddtree:tree_budget=16", "mean_token_s": 16 / 740, "p95_token_s": 7 / 160, "tokens": 740.0,
        "switches": 0, "lost_s": 0.0, "value": pytest.approx(51.8367, abs=1e-4), "regret_ratio": 0.0,
    }  # fmt: skip


def test_options_reach_the_replay(app: typer.Typer) -> None:
    """Objective, scale, start and the policies that are shown are those of the command line."""
    words = ("--objective", "throughput", "--scale", "2", "--start", "none", "--policy", "agent", "--json")
    found = json.loads(run(app, "azure_conv.csv", *words).output)["simulation"]
    assert (found["objective"], found["requests"], found["start"]) == ("throughput", 48, "none")
    assert [row["policy"] for row in found["policies"]] == ["agent", "hindsight"]


def test_a_drawing_is_written(app: typer.Typer) -> None:
    """--plot leaves a file beside the table."""
    result = run(
        app, "servegen_rate.csv", "--load", "0.2", "--prompt-tokens", "50", "--answer-tokens", "40", "--plot", "p.svg"
    )
    assert result.output.startswith("servegen_rate.csv · 2 h · ")
    assert "<svg " in Path("p.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scale", "1", "--load", "1"), "--scale and --load both say"),
        (("--start", "fastest"), "no algo 'fastest'"),
        (("--plot", "nowhere/p.svg"), "nowhere/p.svg: there is no folder nowhere"),
        (("--prompt-tokens", "0"), "a mean length is 1 to"),
    ],
)
def test_a_misuse_is_told(app: typer.Typer, words: tuple[str, ...], message: str) -> None:
    """Exit code 2, and a hint."""
    result = run(app, "concurrency.csv", *words)
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith(message)
    assert (result.exception.exit_code, bool(result.exception.hint)) == (2, True)
