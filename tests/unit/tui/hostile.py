"""Sights as no host should send them: any text, any figure, anything missing."""

from __future__ import annotations

from hypothesis import strategies as st

from specctl.control.mode import Mode
from specctl.control.sample.gpu import Throttle
from specctl.control.sight import AgentSight, Decided, GpuSight, LastAct, Loading, Sight, Source, State, Told
from specctl.control.sight_events import Event, Kind
from specctl.rollout.facts import Lease
from specctl.rollout.guarded import Guard

NASTY = st.sampled_from(
    (
        "[red]markup[/red]",
        "[/]",
        "\\[bold]",
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "a\nb\tc\r\x00",
        "x" * 200,
        "漢字" * 60,
        "🙂👩‍👩‍👧‍👦",
        "é́́́",
        "\u202eevil\u2066",
        "\ud800",
        "%s {0} $HOME",
        "—",
        "",
        " ",
    )
)
TEXT = st.one_of(NASTY, st.text(max_size=30))
FIGURE = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(min_value=0.0, max_value=1e6),
    st.sampled_from((0.0, -1.0, 1e300, 0.5)),
)
COUNT = st.integers(min_value=-5, max_value=10**15)
MAYBE_FIGURE = st.none() | FIGURE
SOURCE = st.sampled_from(tuple(Source))
STATE = st.one_of(st.sampled_from([state.value for state in State]), TEXT)
MODE = st.builds(
    lambda algo, knobs: Mode(algo, tuple(sorted(knobs.items()))),
    st.one_of(st.sampled_from(("none", "dflash", "ddtree")), TEXT),
    st.dictionaries(TEXT, st.integers(-5, 10**9), max_size=3),
)
THROTTLES = st.none() | st.lists(st.sampled_from(tuple(Throttle)), max_size=3).map(tuple)
GPU = st.builds(
    GpuSight,
    index=st.integers(0, 64),
    age_s=MAYBE_FIGURE,
    source=SOURCE,
    uuid=st.none() | TEXT,
    model=st.none() | TEXT,
    memory_used_bytes=st.none() | COUNT,
    memory_total_bytes=st.none() | COUNT,
    power_w=MAYBE_FIGURE,
    power_limit_w=MAYBE_FIGURE,
    busy_ratio=MAYBE_FIGURE,
    temperature_c=MAYBE_FIGURE,
    sm_clock_hz=st.none() | COUNT,
    sm_clock_max_hz=st.none() | COUNT,
    throttles=THROTTLES,
    slowing=THROTTLES,
)
AGENT = st.builds(
    AgentSight,
    conduct=st.none() | TEXT,
    version=st.none() | TEXT,
    decision=st.none()
    | st.builds(
        Decided, text=TEXT, rule=st.none() | TEXT, reason=st.none() | TEXT, at=st.none() | TEXT, for_s=MAYBE_FIGURE
    ),
    acting=st.none() | TEXT,
    pinned=st.none() | TEXT,
    pin_left_s=MAYBE_FIGURE,
    held=st.none() | TEXT,
    frozen=st.none() | TEXT,
    findings=st.lists(TEXT, max_size=2).map(tuple),
    troubles=st.dictionaries(TEXT, TEXT, max_size=2),
)
LOADING = st.builds(
    Loading,
    phase=TEXT,
    elapsed_s=MAYBE_FIGURE,
    progress=MAYBE_FIGURE,
    detail=st.none() | TEXT,
    eta_s=MAYBE_FIGURE,
    fatal=st.none() | TEXT,
)
GUARD = st.builds(
    Guard, phase=TEXT, act=st.none() | TEXT, who=st.none() | TEXT, hard_left_s=MAYBE_FIGURE, reason=st.none() | TEXT
)
LAST = st.builds(
    LastAct, act=TEXT, at=st.none() | TEXT, age_s=MAYBE_FIGURE, who=st.none() | TEXT, result=st.none() | TEXT
)
TOLD_COUNT = st.none() | st.builds(Told, value=COUNT, age_s=MAYBE_FIGURE, source=SOURCE)
TOLD_FIGURE = st.none() | st.builds(Told, value=FIGURE, age_s=MAYBE_FIGURE, source=SOURCE)
SIGHT = st.builds(
    Sight,
    host=TEXT,
    server=TEXT,
    state=STATE,
    groups=st.lists(TEXT, max_size=3).map(tuple),
    reason=st.none() | TEXT,
    hint=st.none() | TEXT,
    desired=st.none() | MODE,
    deployed=st.none() | MODE,
    live=st.none() | MODE,
    live_by=st.none() | TEXT,
    release=st.none() | TEXT,
    proven=st.none() | st.booleans(),
    owned=st.lists(TEXT, max_size=2).map(tuple),
    ready=st.none() | st.booleans(),
    loading=st.none() | LOADING,
    running=TOLD_COUNT,
    waiting=TOLD_COUNT,
    tokens_per_s=TOLD_FIGURE,
    accept_length=TOLD_FIGURE,
    kv_ratio=TOLD_FIGURE,
    gpus=st.none() | st.lists(GPU, max_size=3).map(tuple),
    gpu_trouble=st.none() | TEXT,
    agent=st.none() | AGENT,
    agent_trouble=st.none() | TEXT,
    drift=st.lists(TEXT, max_size=2).map(tuple),
    warnings=st.lists(TEXT, max_size=2).map(tuple),
    lease=st.none() | st.builds(Lease, owner=TEXT, reason=st.none() | TEXT),
    guard=st.none() | GUARD,
    last=st.none() | LAST,
    age_s=MAYBE_FIGURE,
)
EVENT = st.builds(Event, at=FIGURE, host=TEXT, server=TEXT, kind=st.sampled_from(tuple(Kind)), text=TEXT)
SERIES = st.lists(MAYBE_FIGURE, max_size=40).map(tuple)
