"""The lab's verify trace on the real server: every step of every request, begun and ended live, whole lines, bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specctl.doctor import replay
from specctl.lab.serve.verifytrace import VerifyTrace
from specctl.lab.types import Emission, FinishReason, Mode, StepReport, Verify, Walk
from tests.labmodels import Folders
from tests.labserver import LabServer
from tests.unit.lab.serve.test_switching import DFLASH, NONE, TREE, switch

MODE = Mode(algo="ddtree", knobs={"block_size": 8, "tree_budget": 3, "topk_cap": 2})
REPORT = StepReport(
    emissions=(Emission(rid="a1", tokens=(4, 8), before=13, finish=FinishReason.LENGTH),),
    verifies=(
        Verify(
            rid="a1",
            nodes=4,
            accepted_drafts=1,
            accepted_depth=1,
            committed=2,
            walk=Walk(
                tokens=(51, 9, 4, 9), positions=(12, 13, 13, 14), target=(4, 3, 8, 3), path=(0, 2), parents=(0, 0, 0, 1)
            ),
        ),
    ),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the trace goes."""
    return tmp_path_factory.mktemp("trace") / "verify.jsonl"


@pytest.fixture(scope="module")
def traced(folders: Folders, logs: Path, path: Path) -> Iterator[LabServer]:
    """A server that traces."""
    with LabServer(folders, logs, "--verify-trace", str(path), "--max-running-requests", "4") as started:
        yield started.ready()


def set_trace(server: LabServer, value: int) -> list[bool]:
    """Begin or end the trace."""
    answer: list[bool] = server.post("/set_internal_state", {"server_args": {"verify_trace": value}}).json()
    return answer


@pytest.mark.parametrize("wanted", [NONE, DFLASH, TREE], ids=["none", "dflash", "ddtree"])
def test_the_trace_is_what_clients_got(wanted: Mapping[str, object], traced: LabServer, path: Path) -> None:
    """Of requests side by side the trace tells every token that their clients received, and the replay agrees with every step."""
    switch(traced, wanted)
    assert set_trace(traced, 1) == [True]
    with ThreadPoolExecutor(max_workers=6) as pool:
        answers = list(
            pool.map(lambda at: traced.generate(f"def f{at}(", tokens=20 + at, rid=f"q{at}").json(), range(6))
        )
    streamed = {f"q{at}": answer["output_ids"] for at, answer in enumerate(answers)}
    found = replay.check(path.open("rb"), streamed=streamed)
    calls = sum(answer["meta_info"].get("spec_verify_ct", 0) for answer in answers)
    assert (found.divergences, found.malformed, found.engine, found.requests) == ((), 0, "lab", 6)
    assert found.sums.steps == calls
    assert found.unchecked == ()
    assert (found.plain_steps > 0) == (wanted is NONE)
    switch(traced, NONE)


def test_the_trace_ends_and_begins_anew(traced: LabServer, path: Path) -> None:
    """Ended, nothing is written; begun again, the file starts over; /server_info tells where it is."""
    assert set_trace(traced, 0) == [True]
    before = path.read_bytes()
    traced.generate(tokens=5)
    assert path.read_bytes() == before
    assert set_trace(traced, 1) == [True]
    traced.generate(tokens=5, rid="again")
    lines = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    assert lines[0]["kind"] == "trace"
    assert {line["rid"] for line in lines[1:]} == {"again"}
    assert traced.get("/server_info").json()["verify_trace"] == str(path)


def test_a_server_without_a_trace_refuses(server: LabServer) -> None:
    """Without the option nothing can be begun, and /server_info does not tell a path."""
    assert set_trace(server, 1) == [False]
    assert "without --verify-trace" in server.log()
    assert "verify_trace" not in server.get("/server_info").json()


def test_a_missing_folder_ends_the_start(folders: Folders, logs: Path, tmp_path: Path) -> None:
    """A trace that could not be written is refused before anything loads."""
    with LabServer(folders, logs, "--verify-trace", str(tmp_path / "none" / "t.jsonl")) as refused:
        assert refused.wait_exit() == 1
        assert "--verify-trace: there is no folder" in refused.log()


def test_a_line_is_what_the_document_shows(tmp_path: Path) -> None:
    """The example of docs/verify-trace.md is a line as it is written."""
    trace = VerifyTrace(tmp_path / "t.jsonl", 10_000)
    trace.begin()
    for _ in range(7):
        trace.record(REPORT, MODE)
    trace.end()
    document = (Path(__file__).parents[4] / "docs" / "verify-trace.md").read_text(encoding="utf-8")
    example = "".join(line.strip() for line in document.splitlines() if line.startswith("    "))
    written = (tmp_path / "t.jsonl").read_text(encoding="ascii").splitlines()[-1]
    assert json.loads(example) == json.loads(written) | {"finish": None}


def test_a_full_file_ends_with_whole_lines(tmp_path: Path) -> None:
    """At its limit a file ends with a line that says so, and never exceeds it."""
    trace = VerifyTrace(tmp_path / "t.jsonl", 2000)
    trace.begin()
    for _ in range(50):
        trace.record(REPORT, MODE)
    written = (tmp_path / "t.jsonl").read_bytes()
    assert len(written) <= 2000
    assert written.endswith(b'{"v":1,"kind":"end","why":"full"}\n')
    assert replay.check(written.splitlines()).full


def test_a_full_disk_ends_the_file_alone() -> None:
    """Where nothing can be written the trace ends, and the server decodes on."""
    trace = VerifyTrace(Path("/dev/full"), 10_000)
    trace.begin()
    trace.record(REPORT, MODE)
    trace.end()


def test_steps_are_counted_while_nothing_is_written(tmp_path: Path) -> None:
    """A trace begun later goes on with the engine's own numbers of steps."""
    trace = VerifyTrace(tmp_path / "t.jsonl", 10_000)
    trace.record(REPORT, MODE)
    trace.begin()
    trace.record(REPORT, MODE)
    trace.end()
    assert json.loads((tmp_path / "t.jsonl").read_text(encoding="ascii").splitlines()[1])["step"] == 2
