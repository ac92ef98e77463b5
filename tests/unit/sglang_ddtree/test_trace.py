"""The verify trace: lines as docs/verify-trace.md says them, and a file that ends at its limit."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sglang_ddtree import trace

ENDING = trace.Ending(rid="a1", committed=[4, 8], finish=None)
VERIFIED = trace.Verified(
    prefix=12,
    tokens=[51, 9, 4, 9],
    parents=[0, 0, 0, 1],
    positions=[12, 13, 13, 14],
    target=[4, 3, 8, 3],
    path=[0, 2],
)
TREE = trace.Settings(block=8, budget=3, topk=2)


def lines(path: Path) -> list[dict[str, object]]:
    """Return a file's lines."""
    return [json.loads(text) for text in path.read_text().splitlines()]


@contextmanager
def room(limit_bytes: int) -> Iterator[None]:
    """Let no file of this process grow past so many bytes: the kernel writes what fits, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give where a trace is written."""
    return tmp_path / "trace.jsonl"


def test_pass_is_written_as_documented(path: Path) -> None:
    """A pass that accepted one draft of a tree of four nodes is the example of the format's page."""
    trace.Trace(path, version="0.5.23", limit_bytes=10_000).verify(7, ENDING, VERIFIED, TREE)
    head, verify = lines(path)
    assert head == {"v": 1, "kind": "trace", "engine": "sglang-ddtree", "version": "0.5.23"}
    assert verify == {
        "v": 1,
        "kind": "verify",
        "rid": "a1",
        "step": 7,
        "prefix": 12,
        "block": 8,
        "budget": 3,
        "topk": 2,
        "tokens": [51, 9, 4, 9],
        "parents": [-1, 0, 0, 1],
        "positions": [12, 13, 13, 14],
        "target": [4, 3, 8, 3],
        "path": [0, 2],
        "bonus": 8,
        "committed": [4, 8],
        "finish": None,
        "nodes": 4,
        "drafts": 1,
        "depth": 1,
    }


def test_prompts_and_plain_steps_are_written(path: Path) -> None:
    """A prompt and a step without drafts have what the replay follows a request by, and no figures of a tree."""
    written = trace.Trace(path, version="0.5.23", limit_bytes=10_000)
    written.prefill(1, trace.Ending(rid="a1", committed=[51], finish=None), 12)
    written.verify(
        2, trace.Ending(rid="a1", committed=[4], finish="length"), VERIFIED, trace.Settings(block=8, budget=0, topk=1)
    )
    assert lines(path)[1:] == [
        {"v": 1, "kind": "prefill", "step": 1, "prompt": 12, "rid": "a1", "committed": [51], "finish": None},
        {"v": 1, "kind": "plain", "step": 2, "prefix": 12, "rid": "a1", "committed": [4], "finish": "length"},
    ]


def test_file_ends_at_its_limit(path: Path) -> None:
    """At the limit the trace says that it is full and takes no more, whole lines only."""
    written = trace.Trace(path, version="0.5.23", limit_bytes=700)
    for step in range(20):
        written.verify(step, ENDING, VERIFIED, TREE)
    found = lines(path)
    assert found[-1] == {"v": 1, "kind": "end", "why": "full"}
    assert len(found) < 6


def test_full_disk_ends_the_trace_alone() -> None:
    """Where nothing can be written the trace ends, and whoever writes into it is none the wiser."""
    written = trace.Trace(Path("/dev/full"), version="0.5.23", limit_bytes=10_000)
    assert written.ended
    written.verify(1, ENDING, VERIFIED, TREE)


def test_line_that_the_disk_has_no_room_for_is_taken_back(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A disk that fills up in the middle of a line leaves whole lines, and the log says why the trace ends."""
    written = trace.Trace(path, version="0.5.23", limit_bytes=100_000)
    with room(path.stat().st_size + 1000):
        for step in range(20):
            written.verify(step, ENDING, VERIFIED, TREE)
    assert written.ended
    assert [line["kind"] for line in lines(path)] == ["trace", *["verify"] * (len(lines(path)) - 1)]
    assert 2 <= len(lines(path)) < 8
    assert f"DDTREE: the trace {path} ends: " in caplog.text


def test_trace_is_asked_for_by_the_environment(path: Path) -> None:
    """Without a word there is none; a limit that is no number is refused, and a folder that there is not, with nothing written."""
    assert trace.asked_for({}, "0.5.23") is None
    assert trace.asked_for({"DDTREE_TRACE": str(path), "DDTREE_TRACE_MB": "1"}, "0.5.23") is not None
    with pytest.raises(ValueError, match="DDTREE_TRACE_MB=much is no number of megabytes"):
        trace.limit({"DDTREE_TRACE": str(path), "DDTREE_TRACE_MB": "much"})
    with pytest.raises(ValueError, match=r"DDTREE_TRACE=.*/gone/trace: no file can be made in .*/gone"):
        trace.limit({"DDTREE_TRACE": str(path.parent / "gone" / "trace")})
    fresh = path.with_name("fresh")
    assert trace.limit({"DDTREE_TRACE": str(fresh)}) == (fresh, 64_000_000)
    assert not fresh.exists()
