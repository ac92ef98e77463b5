"""The agent's profile as a series to be replayed."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control import profile_codec
from specctl.control.profile import SLICE_S, ConcurrencyProfile, Slice
from specctl.control.profile_bins import BINS, Distribution, middle
from specctl.control.replay import formats, profiled
from specctl.control.replay.formats import MisreadError
from specctl.control.replay.load import Series

SECONDS = st.lists(st.integers(0, 60), min_size=BINS, max_size=BINS).map(lambda parts: tuple(map(float, parts)))


def profile(*slices: tuple[float, ...]) -> ConcurrencyProfile:
    """Return a profile with these seconds by bin in slices that follow each other."""
    parts = [Slice(begin_s=number * SLICE_S, load=Distribution(seconds=each)) for number, each in enumerate(slices)]
    return ConcurrencyProfile(slices=tuple(parts))


@given(st.lists(SECONDS, min_size=1, max_size=4))
def test_a_profile_keeps_its_time_at_each_concurrency(slices: list[tuple[float, ...]]) -> None:
    """Slice after slice, every second of each concurrency is there once; the same profile is always laid out the same."""
    if not any(map(any, slices)):
        with pytest.raises(ValueError, match="watched nothing"):
            profiled.series(profile(*slices))
        return
    found = list(profiled.series(profile(*slices)).levels)
    assert found == list(profiled.series(profile(*slices)).levels)
    for each in slices:
        part, found = found[: int(sum(each))], found[int(sum(each)) :]
        assert Counter(part) == {middle(place): int(seconds) for place, seconds in enumerate(each) if seconds}
    assert found == []


def test_a_profiles_file_is_a_trace() -> None:
    """What the agent writes is read as the last day's concurrency; time that it did not know is left out."""
    load = Distribution(seconds=(60.0, 30.0, *([0.0] * (BINS - 2))), unknown_s=500.0)
    kept = ConcurrencyProfile(slices=(Slice(begin_s=600.0, load=load),))
    found = formats.parse(json.dumps(profile_codec.to_json(kept)))
    assert isinstance(found, Series)
    assert (found.span_s, Counter(found.levels)) == (90.0, {0.0: 60, 1.0: 30})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"slices": []}', "it has no version"),
        ('{"slices": [', "Expecting value"),
        (json.dumps(profile_codec.to_json(ConcurrencyProfile())), "the profile has watched nothing yet"),
    ],
)
def test_a_profile_that_is_none_is_told(text: str, words: str) -> None:
    """What looks like a profile and cannot be replayed as one is an error of the file's first line."""
    with pytest.raises(MisreadError, match=f"line 1: not a profile of the agent's: {words}"):
        formats.parse(text)
