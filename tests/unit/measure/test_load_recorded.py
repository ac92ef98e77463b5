"""Streams of a real SGLang, line by line."""

from __future__ import annotations

from pathlib import Path

from specctl.measure.load_stream import DONE, End, Tokens, event

STREAMS = Path("tests/data/sglang-0.5.23/streams")


def events(name: str) -> list[object]:
    """Return what a recorded stream says."""
    lines = (STREAMS / name).read_bytes().split(b"\n")
    return [found for line in lines if (found := event(line)) is not None]


def test_real_stream_is_read_whole() -> None:
    """Each chunk has the engine's count so far, a step of two tokens is one chunk, the end has prompt and verify steps."""
    *chunks, end, done = events("dflash-24.txt")
    counts = [chunk.count for chunk in chunks if isinstance(chunk, Tokens)]
    assert len(counts) == len(chunks)
    told = [count for count in counts if count is not None]
    assert counts == sorted(set(told))
    assert len(counts) < 23
    assert end == End(reason="length", count=24, prompt_tokens=9, cached_tokens=0, verify_steps=22)
    assert done is DONE


def test_real_refusal_of_a_full_queue_comes_inside_a_stream() -> None:
    """SGLang answers a streamed request with 200 and refuses inside the stream: that is an abort with words, and no token."""
    end, done = events("queue-full.txt")
    assert end == End(reason="abort", count=0, words="The request queue is full.")
    assert done is DONE
