"""Traces as strangers hand them in: cut, huge, of wrong types; the replay answers with a value and accuses nobody."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.doctor import replay
from specctl.doctor.replay_read import MOST_BYTES, MOST_NODES
from tests.examples import HOSTILE
from tests.unit.doctor.traces import random_trace, text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = sorted(random_trace(1)[1])


@settings(max_examples=HOSTILE)
@given(seed=st.integers(0, 999), at=st.integers(0, 9), name=st.sampled_from(FIELDS), value=values)
def test_a_field_of_any_value_never_crashes(seed: int, at: int, name: str, value: object) -> None:
    """Whatever a field holds, every line is taken and the result can be shown."""
    records = random_trace(seed)
    records[at][name] = value
    found = replay.check(text(records))
    assert found.lines == len(records)
    assert all(str(one) for one in found.divergences)


@settings(max_examples=HOSTILE)
@given(seed=st.integers(0, 999), cut=st.integers(0, 3000))
def test_a_cut_file_is_judged_as_far_as_it_goes(seed: int, cut: int) -> None:
    """A file that ends anywhere loses at most its last line, and no divergence comes of it."""
    whole = "\n".join(text(random_trace(seed)))
    found = replay.check(whole[:cut].split("\n"))
    assert found.malformed <= 1
    assert found.divergences == ()


@settings(max_examples=HOSTILE)
@given(seed=st.integers(0, 999), lost=st.sets(st.integers(0, 9), min_size=1))
def test_damaged_lines_are_no_divergence(seed: int, lost: set[int]) -> None:
    """A line that cannot be read breaks the thread of every request and accuses nobody."""
    lines = text(random_trace(seed))
    for at in lost:
        lines[at] = lines[at][: len(lines[at]) // 2]
    found = replay.check(lines)
    assert (found.malformed, found.divergences) == (len(lost), ())
    assert found.complaints[0] == f"line {min(lost) + 1}: no JSON"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xff\xfe{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        ("9" * 10_000, "no JSON"),
        ("[]", "no JSON object"),
        ('{"kind":"verify"}', "version None, expected 1"),
        ('{"v":2,"kind":"verify"}', "version 2, expected 1"),
        ('{"v":true,"kind":"verify"}', "version True, expected 1"),
        ('{"v":1,"kind":["verify"]}', "unknown kind ['verify']"),
        ('{"v":1,"kind":"verify"}', "rid is no text of 1 to 200 characters"),
        ('{"v":1,"kind":"plain","rid":"a","step":-1}', "step is no whole number of at least 0"),
        ('{"v":1,"kind":"plain","rid":"a","step":1,"prefix":1}', "committed is missing"),
        ("x" * (MOST_BYTES + 1), f"over {MOST_BYTES} bytes"),
    ],
)
def test_what_is_no_record_says_why(line: str | bytes, reason: str) -> None:
    """A line that is no record is counted with its reason."""
    found = replay.check([line])
    assert (found.malformed, found.complaints) == (1, (f"line 1: {reason}",))


def test_too_many_nodes_are_no_record() -> None:
    """A step of more nodes than anybody verifies is refused whole."""
    record = random_trace(1)[1] | {"tokens": [0] * (MOST_NODES + 1)}
    assert replay.check([json.dumps(record)]).complaints == (
        f"line 1: tokens is no list of up to {MOST_NODES} whole numbers",
    )


def test_empty_lines_and_files_are_nothing() -> None:
    """Nothing is found in nothing."""
    assert replay.check(["", "\n", b"  "]).malformed == 0
    assert replay.check([]).lines == 0


def test_what_is_kept_is_bounded() -> None:
    """Of a file in which everything diverges the first hundred are kept, and all are counted."""
    records = random_trace(2, requests=1)
    bent = json.dumps(records[1] | {"depth": 999})
    header = json.dumps({"v": 1, "kind": "trace"})
    found = replay.check(itertools.chain.from_iterable([header, bent] for _ in range(500)))
    assert (len(found.divergences), found.diverged) == (100, 500)


def test_a_new_header_breaks_the_thread() -> None:
    """A trace that was begun anew does not continue the old one; its last word says when it was full."""
    first, second = random_trace(3, requests=1), random_trace(4, requests=1)
    lines = [
        *text(first[:3]),
        '{"v":1,"kind":"trace","engine":"lab"}',
        *text(second[1:]),
        '{"v":1,"kind":"end","why":"full"}',
    ]
    found = replay.check(lines)
    assert (found.divergences, found.engine, found.full) == ((), "lab", True)
