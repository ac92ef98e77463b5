"""Settling: metrics and trace get what requests were given, of requests that still ran, and the engine's own work is done first."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="torch is not installed: settling is not tested here")

import torch

from sglang_ddtree import settling, trace, tree_torch
from sglang_ddtree.metrics import Meter, Pass, Sums

BEGUN = Pass(requests=2, budget=3, topk=2, nodes=4, build_s=0.0)


@dataclass(slots=True, kw_only=True)
class Request:
    """A request of the engine's, as far as settling looks at it."""

    rid: str
    origin_input_ids: list[int]
    output_ids: list[int] = field(default_factory=list)
    finished_reason: SimpleNamespace | None = None
    limit: int | None = None
    is_retracted: bool = False

    def finished(self) -> bool:
        """Whether it ended."""
        return self.finished_reason is not None

    @property
    def output_ids_through_stop(self) -> list[int]:
        """What it was given."""
        return self.output_ids[: self.limit]

    def end(self, kind: str, limit: int) -> None:
        """End with so many tokens."""
        self.finished_reason, self.limit = SimpleNamespace(to_json=lambda: {"type": kind}), limit


def booked(path: Path | None) -> tuple[SimpleNamespace, list[Sums]]:
    """Return a processor with a book, and the sums that are published."""
    published: list[Sums] = []
    traced = None if path is None else trace.Trace(path, version="0.5.23", limit_bytes=100_000)
    book = settling.Book(Meter(100, lambda _, sums: published.append(sums)), traced, 8)
    return SimpleNamespace(draft_worker=SimpleNamespace(book=book)), published


def shown() -> settling.Shown:
    """Return a pass over two requests whose trees have two drafts each; the first accepts one, the second none."""
    trees = tree_torch.grow(
        torch.tensor([5, 6]), torch.tensor([[[1, 2]], [[3, 4]]]), torch.tensor([[[-0.5, -1.0]]] * 2), 3
    )
    picks = torch.tensor([[2, 0, 7, 0], [9, 0, 0, 0]])
    walked = tree_torch.walk(trees, tree_torch.ancestors(trees), picks, 1)
    return settling.Shown(lengths=torch.tensor([12, 20]), trees=trees, picks=picks, walked=walked)


def settle_with(requests: list[Request], given: list[list[int]]) -> SimpleNamespace:
    """Return a result whose settling gives each request these tokens."""
    result = SimpleNamespace(num_correct_drafts_per_req_cpu=[len(tokens) - 1 for tokens in given])
    for request, tokens in zip(requests, given, strict=True):
        request.output_ids += tokens
    return result


def test_pass_is_entered_as_it_was_settled(tmp_path: Path) -> None:
    """The trace has what was sent, cut where the request ended; metrics have accepted drafts and tokens that were given."""
    processor, published = booked(tmp_path / "trace")
    requests = [Request(rid="a", origin_input_ids=[0] * 12), Request(rid="b", origin_input_ids=[0] * 20)]
    result = SimpleNamespace(num_correct_drafts_per_req_cpu=None)
    setattr(result, settling.CARRIED, settling.Step(begun=BEGUN, shown=shown()))

    def settle(_processor: object, batch: SimpleNamespace, result: SimpleNamespace) -> str:
        result.num_correct_drafts_per_req_cpu = settle_with(batch.reqs, [[2, 7], [9]]).num_correct_drafts_per_req_cpu
        batch.reqs[0].end("length", 1)
        return "answer"

    answer = settling._decoded(settle, processor, SimpleNamespace(reqs=requests), result)

    assert answer == "answer"
    assert published == [Sums(steps=1, verifies=2, nodes=8, accepted=1, committed=2, build_s=0.0)]
    first, second = (json.loads(text) for text in (tmp_path / "trace").read_text().splitlines()[1:])
    assert (first["rid"], first["committed"], first["finish"], first["path"], first["bonus"]) == (
        "a",
        [2],
        "length",
        [0, 2],
        7,
    )
    assert (second["tokens"], second["prefix"], second["path"], second["finish"]) == ([6, 3, 4], 20, [0], None)


def test_ended_requests_are_left_out() -> None:
    """A request that had ended or was taken back before its pass came back counts for nothing."""
    processor, published = booked(None)
    ended, retracted = (Request(rid=name, origin_input_ids=[1]) for name in ("ended", "retracted"))
    ended.end("stop", 0)
    retracted.is_retracted = True
    runs = Request(rid="runs", origin_input_ids=[1])
    result = SimpleNamespace(num_correct_drafts_per_req_cpu=[3, 3, 2])
    setattr(result, settling.CARRIED, settling.Step(begun=BEGUN, shown=None))

    def settle(_processor: object, batch: SimpleNamespace, _result: object) -> None:
        batch.reqs[2].output_ids += [1, 2, 3]

    settling._decoded(settle, processor, SimpleNamespace(reqs=[ended, retracted, runs]), result)

    assert published == [Sums(steps=1, verifies=1, nodes=4, accepted=2, committed=3, build_s=0.0)]


def test_prompts_are_entered_with_their_last_piece(tmp_path: Path) -> None:
    """A prompt is entered when its first token is there; after a retraction what was written before belongs to it."""
    processor, _ = booked(tmp_path / "trace")
    piece, fresh = Request(rid="piece", origin_input_ids=[0] * 9), Request(rid="fresh", origin_input_ids=[0] * 3)
    again = Request(rid="again", origin_input_ids=[0] * 4, output_ids=[7, 8])

    def settle(_processor: object, batch: SimpleNamespace, _result: object) -> None:
        batch.reqs[1].output_ids.append(5)
        batch.reqs[2].output_ids.append(6)

    batch = SimpleNamespace(reqs=[piece, fresh, again])
    settling._prefilled(settle, processor, batch, SimpleNamespace())

    found = [json.loads(text) for text in (tmp_path / "trace").read_text().splitlines()[1:]]
    assert [(line["rid"], line["prompt"], line["committed"]) for line in found] == [
        ("fresh", 3, [5]),
        ("again", 6, [6]),
    ]


def test_results_of_others_are_let_through() -> None:
    """A result that carries no step, and a worker that is not the plugin's, are the engine's alone."""
    settled: list[object] = []

    def settle(*values: object) -> str:
        settled.append(values)
        return "answer"

    processor, published = booked(None)
    for other in (processor, SimpleNamespace(draft_worker=object())):
        for hook in (settling._decoded, settling._prefilled):
            assert hook(settle, other, SimpleNamespace(reqs=[]), SimpleNamespace()) == "answer"
    assert (len(settled), published) == (4, [])


def test_trace_that_ended_is_told_no_more(tmp_path: Path) -> None:
    """Once a trace is full no pass is looked at for it, since each look waits for the device."""
    full = trace.Trace(tmp_path / "trace", version="0.5.23", limit_bytes=100)
    book = settling.Book(Meter(100, lambda *_: None), full, 8)
    requests = [Request(rid="a", origin_input_ids=[0] * 12, output_ids=[1, 2])]
    result = SimpleNamespace(num_correct_drafts_per_req_cpu=[1])
    setattr(result, settling.CARRIED, settling.Step(begun=BEGUN, shown=shown()))
    processor = SimpleNamespace(draft_worker=SimpleNamespace(book=book))
    settling._decoded(lambda *_: None, processor, SimpleNamespace(reqs=requests), result)
    assert book.traced is None
    assert json.loads((tmp_path / "trace").read_text().splitlines()[-1])["why"] == "full"
