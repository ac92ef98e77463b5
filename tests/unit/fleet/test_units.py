"""Durations, sizes and GPU lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.fleet import units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90.0),
        ("8m", 480.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        ("2d", 172800.0),
        ("1m 30s", 90.0),
    ],
)
def test_durations_add_up(text: str, expected: float) -> None:
    """A duration is the sum of its parts."""
    assert units.seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "90", "m", "5x", "-5s", "1e3s", "90s\n", "31d", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A duration without its unit, or out of reason, is refused in words."""
    with pytest.raises(ValueError, match="must be"):
        units.seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("590GB", 590 * 1000**3),
        ("96GiB", 96 * 1024**3),
        ("6.5GB", 6_500_000_000),
        ("1.5 KiB", 1536),
        ("7B", 7),
        ("2TB", 2 * 10**12),
    ],
)
def test_sizes_are_exact_in_both_systems(text: str, expected: int) -> None:
    """SI units are powers of 1000, binary ones of 1024."""
    assert units.size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "590", "590 gigabytes", "GB", "1.5B", "96Gib", "-1GB", "1GB\n"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """A size without its unit, or with half a byte, is refused in words."""
    with pytest.raises(ValueError, match="must be"):
        units.size_bytes(text)


@given(st.integers(min_value=0, max_value=10**9))
def test_a_size_is_written_as_it_is_read(size: int) -> None:
    """Writing a size and reading it back loses nothing."""
    assert units.size_bytes(units.size_text(size)) == size


def test_sizes_are_written_short() -> None:
    """A size is written in the unit that fits it."""
    assert [units.size_text(size) for size in (590 * 10**9, 96 * 2**30, 6_500_000_000, 0, 1536)] == [
        "590GB",
        "96GiB",
        "6.5GB",
        "0B",
        "1536B",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(2, (0, 1)), ("0-3", (0, 1, 2, 3)), ("0-1,6", (0, 1, 6)), ("4, 2", (4, 2)), ([3, 1], (3, 1))],
)
def test_gpus_are_counted_ranged_or_listed(value: int | str | list[int], expected: tuple[int, ...]) -> None:
    """A count begins at zero; ranges include both ends; order is kept."""
    assert units.gpu_indices(value) == expected


@pytest.mark.parametrize("value", [0, -1, 1025, "", "a", "3-1", "0-0,0", "0-9999", [-1], [0, 0], []])
def test_impossible_gpus_are_refused(value: int | str | list[int]) -> None:
    """No GPU, a GPU twice, a backward range and absurd numbers are refused in words."""
    with pytest.raises(ValueError, match=r"must be|twice|backwards"):
        units.gpu_indices(value)
