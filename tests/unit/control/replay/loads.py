"""Servers and loads that the replay's tests share, and what hypothesis draws them from."""

from __future__ import annotations

from hypothesis import strategies as st

from specctl.control.mode import Mode, mode
from specctl.control.replay.load import Requests
from specctl.control.replay.outage import Outage
from specctl.control.replay.service import Service

NONE = mode("none")
CHAIN = mode("dflash")
TREE = mode("ddtree", {"tree_budget": 16})
# A tree that wins for few requests, a chain, and none that wins for many.
SERVICE = Service(
    rates={
        NONE: ((1, 40.0), (4, 150.0), (8, 280.0)),
        CHAIN: ((1, 70.0), (4, 200.0), (8, 230.0)),
        TREE: ((1, 100.0), (4, 160.0), (8, 160.0)),
    },
    max_running=8,
    prefill_s=0.001,
)


def flat(rate: float, *, most: int = 4, prefill_s: float = 0.0) -> Service:
    """Return a server with one mode that gives all requests together the same rate however many there are."""
    return Service(rates={NONE: ((1e-9, rate),)}, max_running=most, prefill_s=prefill_s)


def requests(*rows: tuple[float, int, int], span_s: float | None = None) -> Requests:
    """Make requests of (arrival, prompt, answer)."""
    at_s, inputs, outputs = zip(*rows, strict=True)
    return Requests(at_s=at_s, inputs=inputs, outputs=outputs, span_s=at_s[-1] if span_s is None else span_s)


@st.composite
def loads(draw: st.DrawFn) -> Requests:
    """Draw up to forty requests, some at once, some after a pause."""
    rows = draw(
        st.lists(st.tuples(st.floats(0, 30), st.integers(0, 3000), st.integers(1, 400)), min_size=1, max_size=40)
    )
    return requests(*sorted(rows))


MODES: st.SearchStrategy[Mode] = st.sampled_from([NONE, CHAIN, TREE])
OUTAGES = st.builds(Outage, seconds=st.sampled_from([0.0, 0.1, 1.0, 2.5, 7.0]), drains=st.booleans())
