"""Prometheus' text format: read back by the reference parser, and honest about what is unknown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from specctl_agent.exposition import Family, Kind, render


def test_unknown_is_absent() -> None:
    """None and not-a-number leave no sample, and a family without samples leaves no line."""
    family = Family("specctl_gpu_power_watts", Kind.GAUGE, "Power.")
    family.add(None, {"gpu": "0"})
    family.add(math.nan)
    assert render([family]) == b""
    family.add(0.0)
    assert render([family]) == (
        b"# HELP specctl_gpu_power_watts Power.\n# TYPE specctl_gpu_power_watts gauge\nspecctl_gpu_power_watts 0\n"
    )


@given(st.dictionaries(st.text(max_size=20), st.floats(allow_nan=False), max_size=5))
def test_every_text_and_number_is_read_back(samples: dict[str, float]) -> None:
    """Whatever a host calls its GPUs, the reference parser reads the same label and the same number."""
    family = Family("specctl_thing_ratio", Kind.GAUGE, 'A "thing" \\ with\nall sorts.')
    for text, value in samples.items():
        family.add(value, {"name": text})
    page = render([family]).decode()
    read = [sample for found in text_string_to_metric_families(page) for sample in found.samples]
    # The format's text is UTF-8, which has no lone surrogates; they come as question marks.
    plain = {text.encode("utf-8", "replace").decode(): value for text, value in samples.items()}
    assert {sample.labels["name"]: sample.value for sample in read} == plain


@pytest.mark.parametrize(
    ("name", "kind"),
    [("up", Kind.GAUGE), ("specctl_Up", Kind.GAUGE), ("specctl_x", Kind.COUNTER), ("specctl_x_total", Kind.GAUGE)],
)
def test_names_follow_the_conventions(name: str, kind: Kind) -> None:
    """A name without our prefix, or whose ending belies its kind, is a mistake of ours and refused."""
    with pytest.raises(ValueError, match="is no name"):
        Family(name, kind, "What.")
