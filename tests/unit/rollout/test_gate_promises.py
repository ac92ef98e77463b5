"""What the health gate promises whatever is observed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.rollout import gate
from specctl.rollout.gate_types import GateSpec, PastLoad, Ready, TimedOut
from specctl.rollout.observation import Observation, Port, UnitState
from tests.examples import examples
from tests.unit.rollout.replay import INVOCATION, OOM, RAISED, SIGQUIT, spec_for

LINES = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.sampled_from(
            [
                OOM,
                SIGQUIT,
                RAISED,
                "[2026-11-29 16:39:06 TP0] Load weight begin. avail mem=90 GB",
                "[2026-11-29 16:39:06 TP0] Load weight end.",
                "[2026-11-29 16:39:06] Init parallel begin.",
                "[2026-11-29 16:39:06] KV Cache is allocated. x",
                "[2026-11-29 16:39:06] Capture target verify CUDA graph begin. backend=full",
                "Capturing batches (bs=24 avail_mem=4.08 GB):  50%|█████     | 24/0 [00:10<",
                "Multi-thread loading shards: 900% Completed | 9/1 [00:00<",
                "Loading safetensors checkpoint shards:   5% Completed | 3/61 [",
                "INFO:     Uvicorn running on http://127.0.0.1:1",
                "The server is fired up and ready to roll!",
                "KeyError: 'x'",
                "\r\r\x1b[31m",
            ]
        ),
    ),
    max_size=4,
)
WHOLE = st.one_of(st.none(), st.integers(-(2**63), 2**63))
NUMBER = st.one_of(st.none(), st.floats(), st.integers(0, 10**6).map(float))
UNITS = st.builds(
    UnitState,
    active=st.sampled_from(
        [None, "active", "active", "active", "activating", "failed", "inactive", "deactivating", "?"]
    ),
    sub=st.sampled_from([None, "running", "auto-restart", "dead"]),
    invocation=st.sampled_from([None, INVOCATION, INVOCATION, INVOCATION, "other"]),
    restarts=st.sampled_from([None, 0, 0, 0, 1]),
    exit_status=st.one_of(st.none(), st.integers(-300, 300)),
)
OBSERVATIONS = st.builds(
    Observation,
    at_s=st.one_of(st.floats(), st.floats(0, 2000)),
    unit=UNITS,
    port=st.sampled_from([None, *Port]),
    ready=st.sampled_from([None, 200, 503, 0]),
    lines=LINES.map(tuple),
    processes=st.sampled_from([None, 0, 5]),
    rss_bytes=WHOLE,
    read_bytes=WHOLE,
    cpu_s=NUMBER,
    gpu_bytes=WHOLE,
    journal_lost=st.booleans(),
)
SPECS = st.builds(
    spec_for,
    load_s=st.floats(1.0, 1000.0),
    stall_s=st.floats(1.0, 500.0),
    has_draft=st.booleans(),
    target_bytes=st.sampled_from([None, 0, 10**6, 10**12]),
    draft_bytes=st.sampled_from([None, 0, 10**6]),
    past_loads=st.lists(st.floats(0.0, 900.0).map(lambda total: PastLoad(total_s=total)), max_size=3).map(tuple),
)


@settings(max_examples=examples(200), deadline=None)
@given(SPECS, st.lists(OBSERVATIONS, max_size=12))
def test_whatever_is_observed_the_gate_keeps_its_promises(spec: GateSpec, seen: list[Observation]) -> None:
    """Random looks never crash it; a final verdict stays; ready only by an own port's 200; ETA and progress stay in range."""
    state = gate.begin(spec)
    for each in seen:
        before, state = state, gate.advance(spec, state, each)
        if before.is_final:
            assert state == before
        if isinstance(state.verdict, Ready) and not before.is_final:
            assert each.port is Port.OWN
            assert each.ready == 200
            assert each.unit.invocation in {None, INVOCATION}
        assert state.eta_s is None or state.eta_s >= 0.0
        assert state.progress is None or 0.0 <= state.progress <= 1.0
        assert state.elapsed_s >= before.elapsed_s
        places = [span.phase.place for span in state.phases]
        assert places == sorted(set(places))
        if state.verdict != before.verdict and isinstance(state.verdict, TimedOut):
            assert state.elapsed_s >= spec.load_s
    concluded = gate.conclude(spec, state)
    assert concluded.is_final or concluded == state
