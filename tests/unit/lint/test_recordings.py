"""Held against starts of the real engine: what its parser and checks refused the linter says before, and what ran it lets pass."""

from __future__ import annotations

import csv
import dataclasses
import shlex
from pathlib import Path

import pytest

from specctl.lint.run import lint
from specctl.lint.subject import Subject
from specctl.ops.lint import flag_table
from specctl.rollout.launch import Launch
from tests.unit.lint.subjects import fleet

DATA = Path(__file__).parents[2] / "data" / "sglang-0.5.23" / "commands" / "commands.tsv"
# The patch of these recordings let DFLASH run on a processor, which the wheel itself refuses (spec-DFLASH-on-cpu).
PATCHED = ("failed-starts-dflash-patched", "spec-dflash")
FORETOLD = {
    "failed-starts/unknown-flag": {"E001"},
    "failed-starts/attention-backend-invalid": {"E007"},
    "failed-starts/spec-algorithm-unknown-DDTREE": {"E010"},
    "failed-starts/spec-DFLASH-on-cpu": {"E019"},
    "failed-starts/spec-EAGLE3-no-draft-flag": {"E011"},
    "failed-starts/spec-STANDALONE-no-draft-flag": {"E011"},
    "failed-starts/mem-fraction-1.5": {"E040"},
    "failed-starts/mem-fraction-negative": {"E040"},
    "failed-starts-dflash-patched/no-draft-flag": {"E011"},
    # These run, and show or carry their keys.
    "admin-api-key": {"E031", "E032"},
    "api-key": {"E032"},
    "api-key-and-admin-api-key": {"E032"},
}
# What lies in files or in the machine, which the linter does not see: preflight and the gate do.
UNSEEN = {
    "model-path-missing",
    "model-id-not-cached-offline",
    "corrupt-safetensors",
    "corrupt-config-json",
    "weights-file-absent",
    "architecture-unknown",
    "tokenizer-absent",
    "port-in-use",
    "context-length-too-large",
    "mem-fraction-tiny",
    "attention-backend-flashinfer-on-cpu",
    "attention-backend-triton-on-cpu",
    "attention-backend-fa3-on-cpu",
    "spec-STANDALONE-draft-path-missing",
    "spec-NGRAM-draft-path-missing",
    "device-cuda-without-gpu",
    "draft-path-missing",
    "target-layer-out-of-range",
    "last-layer-not-capturable",
    "mask-token-outside-vocab",
    "drafter-is-a-plain-llama",
}


def rows() -> list[dict[str, str]]:
    """Return the recorded command lines."""
    with DATA.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def found(arguments: str) -> tuple[set[str], set[str]]:
    """Lint a command line as a launch of the stock engine; return the ids of errors and of warnings."""
    host = fleet().hosts[0]
    stock = dataclasses.replace(host.servers[0], secrets={}, gpus=(), tp=None)
    argv = ("python", "-m", "sglang.launch_server", *shlex.split(arguments))
    launch = Launch(host=host.name, server=stock.name, algo="none", argv=argv, env={}, knobs={})
    findings = lint(Subject.of(dataclasses.replace(host, servers=(stock,)), stock, launch, flag_table("sglang-0.5.23")))
    return {one.rule.id for one in findings if one.is_error}, {one.rule.id for one in findings if one.is_warning}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["case"])
def test_a_recorded_start_is_judged_as_it_ended(row: dict[str, str]) -> None:
    """Errors are exactly those that the engine met and that a command line shows; what started is no error but for its keys."""
    errors, _ = found(row["arguments"])
    if row["case"].startswith(PATCHED):
        assert "E019" in errors
        errors -= {"E019"}
    assert errors == FORETOLD.get(row["case"], set())
    if row["ended"] == "parser":
        assert errors


def test_what_is_not_foretold_lies_outside_the_command_line() -> None:
    """Every recorded failure is foretold, or is of a file, a machine or a model; the odd split is a warning."""
    rest = {row["case"] for row in rows() if row["ended"] != "started"} - set(FORETOLD)
    (split,) = [row for row in rows() if row["case"].endswith("tp-size-3-indivisible")]
    assert "W043" in found(split["arguments"])[1]
    assert {case.rpartition("/")[2] for case in rest} - {"tp-size-3-indivisible"} == UNSEEN


def test_metrics_left_out_are_a_warning() -> None:
    """The recording without --enable-metrics, whose rates all read 0."""
    by_case = {row["case"]: row["arguments"] for row in rows()}
    assert "W032" in found(by_case["no-metrics-flag"])[1]
    assert "W032" not in found(by_case["startup-ok"])[1]
