"""Each fault that the lab can be bent by, on its real server: the doctor names it, and nothing that it is not.

The doctor's own load and probe run as in `specctl doctor --live`; findings are compared whole.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from specctl.control.mode import mode
from specctl.doctor import lossless
from specctl.doctor.judge import judge
from specctl.doctor.lossless_types import Break
from tests.doctorlab import CHAIN, TREE, ids, lab, patient
from tests.unit.cli.test_local_deploy import Place

pytestmark = pytest.mark.slow  # a start of a server for each fault

LOSSLESS: Mapping[tuple[str, ...], set[str]] = {
    ("mask-wrong",): {"L002"},
    ("position-off-by-one",): {"L003", "L012"},
    ("position-is-index",): {"L003", "L012"},
    ("kv-not-moved",): {"L004"},
    ("features-wrong",): {"L005"},
    ("walk-short",): {"L011"},
    ("wrong-token:7",): {"L010"},
    ("early-stop:9",): {"L007"},
}
"""What the probe finds by itself, no log and no load needed."""
FIGURES: Mapping[tuple[str, ...], set[str]] = {
    (): set(),
    ("metric-depth-off",): {"M003"},
    ("commit-truncated",): {"M004", "M021"},
    ("bonus-missing",): {"M004", "M021"},
    ("stale-gauge",): {"M022"},
    ("budget-ignored",): {"M016", "L013"},
    ("drafts-discarded",): {"M004", "M026", "L006", "L011"},
    ("drafts-discarded", "commit-claimed"): {"M026", "L006", "L011"},
    ("mask-wrong", "metric-depth-off"): {"L002", "M003"},
    ("kv-not-moved", "commit-truncated"): {"L004", "M004", "M021"},
    ("features-wrong", "bonus-missing"): {"L005", "M004", "M021"},
    ("drafts-discarded", "commit-truncated"): {"M004", "M026", "L006", "L011"},
}
"""What takes the log and a load too, and pairs of faults."""


@pytest.mark.parametrize("faults", LOSSLESS, ids="+".join)
def test_the_probe_names_it(faults: tuple[str, ...], tmp_path: Path) -> None:
    """A fault of decoding is named by the probe, exactly."""
    with lab(tmp_path, faults) as server:
        _, report = patient(server.ready()).examined(TREE, load=False)
    assert ids(report) == LOSSLESS[faults], report.findings


@pytest.mark.parametrize("faults", FIGURES, ids=lambda faults: "+".join(faults) or "healthy")
def test_figures_and_probe_name_it(faults: tuple[str, ...], tmp_path: Path) -> None:
    """A fault of the figures, of the commit, or two faults at once, each found and told apart."""
    with lab(tmp_path, faults) as server:
        _, report = patient(server.ready()).examined(TREE)
    assert ids(report) == FIGURES[faults], report.findings


NAMED = {
    "mask-wrong": Break.MASK,
    "position-off-by-one": Break.POSITION,
    "position-is-index": Break.POSITION,
    "kv-not-moved": Break.KV,
}
LEFT_OPEN = {"mask-wrong", "position-is-index"}
"""Where positions are not recorded these two look the same: nodes with others before them are wrong."""
WIDTHS = (
    mode("ddtree", {"block_size": 8, "tree_budget": 7, "topk_cap": 2}),
    mode("ddtree", {"block_size": 4, "tree_budget": 12, "topk_cap": 4}),
    mode("ddtree", {"block_size": 8, "tree_budget": 32, "topk_cap": 8}),
)


@pytest.mark.parametrize("fault", NAMED)
def test_breaks_are_told_apart_at_every_width(fault: str, tmp_path: Path) -> None:
    """For narrow, shallow and wide trees the break is named; without recorded positions it is named too, or left open."""
    with lab(tmp_path, (fault,)) as server:
        one = patient(server.ready())
        for width in WIDTHS:
            one.switch(width)
            probe = one.probed(width)
            assert lossless.judge(probe).named is NAMED[fault], (width, lossless.judge(probe))
            bare = lossless.judge(replace(probe, positions_right=None))
            if fault in LEFT_OPEN:
                assert (bare.named, bare.candidates) == (None, (Break.MASK, Break.POSITION)), (width, bare)
            else:
                assert bare.named is NAMED[fault], (width, bare)


@pytest.mark.parametrize("fault", ["mask-wrong", "position-off-by-one", "kv-not-moved"])
def test_without_a_trace_the_cause_is_narrowed(fault: str, tmp_path: Path) -> None:
    """An engine that writes no trace has wrong tokens found all the same, and what is left open holds the true cause."""
    with lab(tmp_path, (fault,), trace=False) as server:
        evidence, report = patient(server.ready()).examined(TREE, load=False)
    assert evidence.probe is not None
    judged = lossless.judge(evidence.probe)
    assert ids(report) == {"L001"}
    assert judged.named is None
    assert NAMED[fault] in judged.candidates


def test_a_chain_at_wrong_positions_needs_no_trace(tmp_path: Path) -> None:
    """A chain has no mask to be wrong: its wrong drafts are named as positions from the answers alone."""
    with lab(tmp_path, ("position-off-by-one",), trace=False, start=CHAIN) as server:
        _, report = patient(server.ready()).examined(CHAIN, load=False)
    assert ids(report) == {"L003"}


def test_features_without_a_trace_show_in_acceptance(tmp_path: Path) -> None:
    """Without a trace wrong features are found by what fresh requests accept, or not known; nothing else is blamed."""
    with lab(tmp_path, ("features-wrong",), trace=False) as server:
        evidence, report = patient(server.ready()).examined(TREE, load=False)
    assert evidence.probe is not None
    assert evidence.probe.drafts
    assert ids(report) | {unknown.id for unknown in report.unknown if unknown.id == "L005"} == {"L005"}


def test_nodes_that_cost_too_much(tmp_path: Path) -> None:
    """By the throughput of two widths each node's cost is told, and a wide tree that does not pay."""
    with lab(tmp_path, ("slow-nodes:0.0005",)) as server:
        one = patient(server.ready())
        one.switch(CHAIN)
        narrow, _ = one.examined(CHAIN, probe=False)
        one.switch(WIDTHS[2])
        wide, _ = one.examined(WIDTHS[2], probe=False)
    report = judge(replace(wide, speeds=(*narrow.speeds, *wide.speeds)))
    (found,) = [finding for finding in report.findings if finding.id == "S002"]
    cost = re.search(r"([\d.]+) ms a node", " ".join(found.evidence))
    assert cost is not None
    assert float(cost[1]) > 0.5


def told_by(*words: str) -> Mapping[str, Any]:
    """Return what a specctl command tells as JSON."""
    argv = [sys.executable, "-m", "specctl", *words, "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


def test_a_recorded_trace_is_judged_without_a_server(tmp_path: Path) -> None:
    """`specctl doctor --trace FILE` names the step of a request that threw tokens away; a sound trace passes."""
    with lab(tmp_path, ("walk-short",)) as server:
        server.ready().generate(tokens=60, rid="lost")
    told = told_by("doctor", "--trace", str(tmp_path / "verify.jsonl"))
    (finding,) = [finding for finding in told["findings"] if finding["id"] == "L011"]
    assert [one["id"] for one in told["findings"]] == ["L011"]
    assert "request lost: the walk stopped though the target agrees with a draft below" in " ".join(finding["evidence"])


def test_the_command_names_two_faults_of_a_deployed_server(tmp_path: Path) -> None:
    """`specctl doctor --live` finds a fault of decoding and one of the figures on a server that specctl deployed."""
    place = Place(tmp_path)
    assert place.run("init", "--lab").returncode == 0
    place.write(yaml.safe_load(place.path.read_text(encoding="utf-8")))
    options = {"inject": "kv-not-moved,metric-depth-off", "verify-trace": str(tmp_path / "verify.jsonl")}
    place.describe(options, {"SPECCTL_LAB_ALLOW_FAULTS": "1"})
    try:
        done = place.run("deploy", "--host", "local", "--algo", "ddtree", "--yes")
        assert done.returncode == 0, done.stderr
        (server,) = cast(Sequence[Mapping[str, Any]], place.read("doctor", "--host", "local", "--live")["servers"])
    finally:
        place.end_daemons()
    found = {finding["id"]: finding["confidence"] for finding in server["findings"]}
    assert {check_id: found.get(check_id) for check_id in ("L004", "M003")} == {"L004": "certain", "M003": "certain"}
    assert {check_id for check_id in found if check_id[0] != "C"} == {"L004", "M003"}
