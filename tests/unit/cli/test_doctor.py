"""`specctl doctor` on files: reports, exit codes, and one clear error for what cannot be read or meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from specctl.cli import main as command_line
from specctl.doctor.catalogue import by_id
from specctl.errors import InventoryError, SpecctlError, UsageError

LIE = "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=8.00 avg_accepted_drafts=1.00 avg_commit_len=2.00 avg_accepted_depth=4.00\n"
WIDE = "{mode: none, tokens_s: 98}, {mode: 'ddtree:block_size=8,tree_budget=32', tokens_s: 50}"


def run(*words: str, text: str | None = None) -> Result:
    """Run `specctl doctor`."""
    command_line.mount()
    return CliRunner().invoke(command_line.app, ["doctor", *words], input=text, standalone_mode=False)


def refused(*words: str) -> SpecctlError:
    """Return the error that the command ends with."""
    error = run(*words).exception
    assert isinstance(error, SpecctlError), error
    return error


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A log with one wrong line."""
    path = tmp_path / "engine.log"
    path.write_text(LIE, encoding="utf-8")
    return str(path)


def test_a_log_is_judged(log: str) -> None:
    """The line's lie is named, and the exit code is 0: the doctor did what it was asked."""
    result = run("--log", log)
    assert result.return_value == 0, result.output
    assert "M003  the depth metric lies" in result.stdout


def test_standard_input_is_a_log() -> None:
    """A dash reads what another command pipes in."""
    assert "M003" in run("--log", "-", text=LIE).stdout


def test_since_takes_the_end_of_a_file(tmp_path: Path) -> None:
    """Of a log that was given only what lies so long before its newest line is judged, as of a host's."""
    path = tmp_path / "engine.log"
    path.write_text(f"[2026-11-30 10:00:00] {LIE}[2026-11-30 10:30:00] The server is fired up\n", encoding="utf-8")
    assert "M003  the depth metric lies" in run("--log", str(path), "--since", "1h").stdout
    assert "the depth metric lies" not in run("--log", str(path), "--since", "10m").stdout


def test_the_heading_says_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no engine's log is no sound server: that none of its lines tells of decoding stands above."""
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "notes.txt"
    path.write_text("a\nb\n", encoding="utf-8")
    assert run("--log", str(path)).stdout.splitlines()[0].endswith("notes.txt · 2 log lines, 0 of decoding")


def test_json_has_the_files_and_the_report(log: str) -> None:
    """The same values, for programs."""
    told = json.loads(run("--log", log, "--json").stdout)
    assert (told["files"], told["log_lines"]) == ({"log": log}, 1)
    assert [one["id"] for one in told["findings"]] == ["M003"]
    assert {one["id"] for one in told["unknown"]} | {one["id"] for one in told["passed"]} <= set(by_id())


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("note", 6), ("warning", 6), ("error", 0)])
def test_findings_fail_only_where_asked(log: str, fail_on: str, code: int) -> None:
    """Exit code 6 comes with a finding of that weight or a graver, and only with --fail-on."""
    assert run("--log", log, "--fail-on", fail_on).return_value == code


def test_log_and_figures_go_together(log: str, tmp_path: Path) -> None:
    """Figures say what the log is of, and speed is judged beside truth."""
    path = tmp_path / "f.yaml"
    path.write_text(f"mode: 'ddtree:block_size=8,tree_budget=32'\nspeeds: [{WIDE}]\n", encoding="utf-8")
    told = json.loads(run("--log", log, "--figures", str(path), "--json").stdout)
    assert [one["id"] for one in told["findings"]] == ["M003", "S001"]


def test_an_engine_profile_says_how_a_build_counts(log: str) -> None:
    """A profile is named, or refused with the ones that there are."""
    assert run("--log", log, "--engine", "lab").return_value == 0
    error = refused("--log", log, "--engine", "labb")
    assert isinstance(error, UsageError)
    assert error.hint == "did you mean lab?, or -i PATH has it"


def test_an_inventorys_own_profile_reads_a_log(log: str, tmp_path: Path) -> None:
    """With -i the inventory's profiles can be named too, and an inventory that is not right is told in full."""
    own = tmp_path / "inventory.yaml"
    profile = "  ours: {extends: lab, tree_line: 'no such line'}"
    own.write_text(f"hosts: {{gpu1: {{}}}}\nengine_profiles:\n{profile}\n", encoding="utf-8")
    told = json.loads(run("-i", str(own), "--log", log, "--engine", "ours", "--json").stdout)
    assert "M003" not in [one["id"] for one in told["findings"]]
    assert "M003" in [one["id"] for one in json.loads(run("--log", log, "--json").stdout)["findings"]]
    assert refused("-i", str(own), "--log", log, "--engine", "our").hint == "did you mean ours?"
    own.write_text("hosts: {gpu1: {}}\nengine_profiles: {ours: {extends: labb}}\n", encoding="utf-8")
    assert isinstance(refused("-i", str(own), "--log", log, "--engine", "ours"), InventoryError)


def test_checks_are_listed() -> None:
    """--checks lists every id, also for programs."""
    shown = run("--checks").stdout.splitlines()
    assert [line.split()[0] for line in shown] == list(by_id())
    told = json.loads(run("--checks", "--json").stdout)["checks"]
    assert [one["id"] for one in told] == list(by_id())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--log", "no/such.log"), "no/such.log: cannot be read: no such file or directory"),
        (("--figures", "no/such.yaml"), "no/such.yaml: there is no such file"),
        (("--log", "x", "--host", "ct200"), "files are judged without a host"),
        (("--log", "x", "--live"), "files are judged without a host"),
        (("--mode", "none"), "--engine and --mode are for files"),
        (("--host", "a", "--since", "5"), "--since 5: must be a duration with its unit, such as 90s, 8m or 1h30m"),
        (("--trace", "x", "--since", "5m"), "--since takes a part of a log, and none is given"),
        (("--host", "a", "--since", "0s"), "--since 0s is no time"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], message: str) -> None:
    """One sentence says what, and a hint what to do."""
    error = refused(*words)
    assert isinstance(error, UsageError)
    assert error.message == message
    assert error.hint


def test_a_wrong_mode_is_refused(log: str) -> None:
    """A mode that there is not is named with those that there are."""
    assert "there are ddtree, dflash, none" in refused("--log", log, "--mode", "dtree").message


def test_a_wrong_figures_file_is_refused_with_its_lines(tmp_path: Path) -> None:
    """Every problem is told with its line."""
    path = tmp_path / "f.yaml"
    path.write_text("mode: none\nspeeds:\n  - {mode: none, tokens_s: -1}\nlogg: x\n", encoding="utf-8")
    words = refused("--figures", str(path)).message
    assert f"{path}:3: speeds[0].tokens_s: a number from 0 on is wanted, not -1" in words
    assert f"{path}:4: logg: there is no such key" in words


def test_a_trace_that_is_none_is_no_crash(tmp_path: Path) -> None:
    """Whatever stands in a file that is given as a trace, there is a report."""
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\x00\xff not a trace\n{}\n[]\n" * 100)
    result = run("--trace", str(path))
    assert result.return_value == 0, result.output
    assert result.stdout.splitlines()[-1].endswith("unknown")
