"""/v1/loads from a snapshot."""

from __future__ import annotations

import datetime as dt

import pytest

from specctl.lab.serve import loads
from specctl.lab.serve.readings import Footprint, LoadSnapshot

FOOTPRINT = Footprint(weight_bytes=1 << 30, kv_bytes=1 << 29, available_bytes=0, capacity_tokens=4096)
NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


def load(snapshot: LoadSnapshot, include: str | None = None) -> dict[str, object]:
    """Return the one rank's load."""
    return loads.load(snapshot, FOOTPRINT, max_running=8, wanted=loads.sections(include))


def test_both_time_stamps() -> None:
    """The outer time stamp is now, the inner one that of the publication; their difference is the age."""
    document = loads.document(LoadSnapshot(at=5.0), FOOTPRINT, max_running=8, wanted=loads.sections(None), now=NOW)
    assert document["timestamp"] == "2026-01-02T00:00:00+00:00"
    entries = document["loads"]
    assert isinstance(entries, list)
    assert entries[0]["timestamp"] == 5.0


def test_totals_count_the_queue() -> None:
    """Total and active tokens are those in use plus those that wait."""
    found = load(LoadSnapshot(at=0.0, used_tokens=10, waiting_tokens=5))
    assert (found["num_used_tokens"], found["num_total_tokens"], found["num_active_tokens"]) == (10, 15, 15)


@pytest.mark.parametrize(
    ("include", "nested"),
    [
        (None, {"memory", "speculative", "disaggregation", "queues"}),
        ("core", set()),
        ("spec", {"speculative"}),
        ("memory, queues", {"memory", "queues"}),
        ("all", {"memory", "speculative", "disaggregation", "queues"}),
    ],
)
def test_sections(include: str | None, nested: set[str]) -> None:
    """`include` chooses the nested sections; the core is always there."""
    found = load(LoadSnapshot(at=0.0, accept_length=2.0, accept_rate=0.1), include)
    assert {name for name, value in found.items() if isinstance(value, dict)} == nested


def test_unknown_section() -> None:
    """An unknown section is an error, as in the real server."""
    with pytest.raises(loads.UnknownSectionError):
        loads.sections("nosuch")


def test_unknown_acceptance_is_absent() -> None:
    """Without a known accept length there is no speculative section."""
    assert "speculative" not in load(LoadSnapshot(at=0.0))


def test_prometheus_flattens() -> None:
    """The text format flattens nested numbers and leaves the rank and the moments out."""
    text = loads.prometheus(load(LoadSnapshot(at=0.0, running=3)))
    assert 'sglang_num_running_reqs{dp_rank="0"} 3' in text
    assert 'sglang_memory_weight_gb{dp_rank="0"} 1.0' in text
    assert "moments" not in text
    assert "sglang_dp_rank" not in text
