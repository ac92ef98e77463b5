"""What an agent's answer to `snapshot` adds to a sight: the very answer that the agent makes, older ones and broken ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control import wire
from specctl.control.mode import parse
from specctl.control.sample.engine import Activity, EngineLoad
from specctl.control.sample.gpu import Throttle
from specctl.control.sight import Decided, Source, State
from specctl.control.sight_agent import knows, laid_over, past
from specctl.control.sight_wire import as_wire
from specctl.control.window import Figures
from specctl_agent.pictures import Picture, ServerPicture
from specctl_agent.told import told_sources
from tests import sights
from tests.unit.agent.pictured import BLIND, FULL, SAMPLE, SERVER, SUMS

BASE = replace(
    sights.BARE, server="k26", state=State.NOT_READY.value, deployed=sights.TREE, live=sights.TREE, age_s=0.0
)
LOAD = EngineLoad(
    running=7, waiting=2, used_tokens=250, pool_tokens=1000, age_s=0.3, lifetime_accept_length=2.0, decoded=SUMS
)
NOW = Figures(span_s=10.0, known_s=8.0, decoded=replace(SUMS, tokens=2400.0, requests=1000.0))
SEEN = replace(SERVER, load=LOAD, now=NOW)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def answer(server: ServerPicture = SEEN, picture: Picture = FULL) -> Mapping[str, object]:
    """Return what an agent with this picture answers, as it arrives."""
    return wire.result_of(wire.answer(told_sources(replace(picture, servers=(server,)))))


def test_everything_that_an_agent_sees() -> None:
    """Figures of now with the age of the engine's publication, the mode, decision, orders and GPUs come from the agent."""
    found = laid_over(BASE, answer(), ())
    assert found.running == sights.whole(7, 0.8)
    assert found.waiting == sights.whole(2, 0.8)
    assert found.tokens_per_s == sights.amount(300.0, 0.8)
    assert found.accept_length == sights.amount(2.4, 0.8)
    assert found.kv_ratio == sights.amount(0.25, 0.8)
    assert (found.state, found.ready, found.live) == ("ready", True, parse("ddtree:tree_budget=16"))
    assert found.agent is not None
    assert found.agent.decision == Decided(
        text="switch dflash",
        rule="gain",
        reason="9 requests: dflash serves 1.31 of ddtree",
        at="2026-11-29T14:02:11+00:00",
        for_s=10.0,
    )
    assert (found.agent.conduct, found.agent.held, found.agent.frozen) == ("act", "firmware", "the gain did not show")
    assert found.agent.findings == ("M005",)


@pytest.mark.parametrize(
    ("told_at", "heard"),
    [
        (None, False),
        ("2026-11-29T14:02:10+00:00", False),
        ("nonsense", False),
        ("2026-11-29T14:02:11+00:00", True),
        ("2026-11-29T15:02:12+01:00", True),
    ],
)
def test_a_record_that_the_agent_has_not_read_yet(told_at: str | None, heard: bool) -> None:
    """Where a record says that the engine was told another mode since, that counts; an agent that knows of it knows better."""
    chain, started = parse("dflash:block_size=8"), parse("ddtree:tree_budget=16")
    moved = replace(BASE, deployed=started, live=chain, live_by="ops@desk", live_at="2026-11-29T14:02:11+00:00")
    for mode in (started, parse("ddtree:tree_budget=8"), parse("none")):
        seen = replace(SEEN, table=None, mode=mode, told_at=told_at)
        assert laid_over(moved, answer(seen), ()).live == (mode if heard else chain)


def test_an_agent_is_believed_where_nothing_is_on_record() -> None:
    """Its own live change is on record a moment after it was made."""
    chain = parse("dflash:block_size=8")
    assert laid_over(BASE, answer(replace(SEEN, table=None, mode=chain)), ()).live == chain


def test_a_tables_row_of_now_is_what_runs() -> None:
    """An engine that follows a table is in more modes than anybody told it: the agent says which."""
    chain, started = parse("dflash:block_size=8"), parse("ddtree:tree_budget=16")
    at = "2026-11-29T14:02:11+00:00"
    moved = replace(BASE, deployed=started, live=chain, live_by="specctl-agent", live_at=at)
    assert SEEN.table is not None
    assert laid_over(moved, answer(replace(SEEN, told_at=at)), ()).live == started


@pytest.mark.parametrize(
    ("mode", "proven"),
    [
        ("ddtree:tree_budget=16", True),
        ("ddtree:topk_cap=4,tree_budget=16", True),
        ("ddtree:tree_budget=8", None),
        ("none", None),
    ],
)
def test_a_proof_is_of_the_mode_that_was_proven(mode: str, proven: bool | None) -> None:
    """What a record proved says nothing of another mode that the agent sees; the engine's fuller words name the same one."""
    base = replace(BASE, live=parse("ddtree:tree_budget=16"), proven=True)
    found = laid_over(base, answer(replace(SEEN, table=None, mode=parse(mode))), ())
    assert (found.live, found.proven) == (parse(mode), proven)


def test_gpus_by_nvml() -> None:
    """A GPU's figures, its name from the facts, and its reasons of slowed clocks; a field that NVML does not give is None."""
    found = laid_over(BASE, answer(), ()).gpus
    assert found is not None
    first, second = found
    assert (first.power_w, first.model, first.source) == (612.5, "NVIDIA H200", Source.AGENT)
    assert (first.throttles, first.slowing) == ((Throttle.SW_POWER_CAP, Throttle.HW_THERMAL), (Throttle.HW_THERMAL,))
    assert (second.power_w, second.throttles, second.slowing, second.memory_used_bytes) == (None, None, None, None)


def test_only_the_servers_own_gpus() -> None:
    """A server that has some of a host's GPUs shows those."""
    found = laid_over(BASE, answer(), (1,)).gpus
    assert [gpu.index for gpu in found or ()] == [1]


@pytest.mark.parametrize(
    ("activity", "state", "ready"),
    [
        (Activity.ACTIVE, "ready", True),
        (Activity.IDLE, "ready", True),
        (Activity.UNREADY, "not ready", False),
        (Activity.STALE, "not ready", False),
        (Activity.FROZEN, "frozen", False),
    ],
)
def test_states_by_what_the_agent_saw(activity: Activity, state: str, ready: bool) -> None:
    """What the agent saw of the engine is its state, where its unit runs; a loading one keeps what the host says."""
    sample = replace(SAMPLE, activity=activity)
    found = laid_over(BASE, answer(replace(SEEN, sample=sample)), ())
    assert (found.state, found.ready) == (state, ready)
    loading = laid_over(replace(BASE, state=State.LOADING.value), answer(replace(SEEN, sample=sample)), ())
    assert loading.state == "loading"


def test_an_idle_engine_serves_nothing() -> None:
    """No token in the last seconds of a live answer is 0 tokens a second, and no accept length."""
    quiet = replace(NOW, decoded=replace(SUMS, tokens=0.0, requests=0.0))
    found = laid_over(BASE, answer(replace(SEEN, now=quiet)), ())
    assert found.tokens_per_s == sights.amount(0.0, 0.8)
    assert found.accept_length is None


def test_a_blind_agent() -> None:
    """An agent that sees neither engine nor GPUs adds its decisions alone: no figure, none of them 0."""
    told = wire.result_of(wire.answer(told_sources(BLIND)))
    found = laid_over(BASE, told, ())
    assert (found.running, found.waiting, found.tokens_per_s, found.kv_ratio) == (None, None, None, None)
    assert (found.state, found.gpus) == (BASE.state, None)


def test_an_older_agent() -> None:
    """An agent of wire version 1.0 tells no `status`: its sample is shown, and what it lacks is not known."""
    told = json.loads(json.dumps(answer()))
    for row in told["servers"].values():
        del row["status"]
    found = laid_over(BASE, told, ())
    assert (found.running, found.tokens_per_s) == (sights.whole(7, 0.5), None)
    assert found.agent is not None
    assert found.agent.decision is None


def test_a_server_that_the_agent_does_not_watch() -> None:
    """Nothing of another server's is shown for one that the agent has not seen."""
    assert not knows(answer(), "chat")
    found = laid_over(replace(BASE, server="chat"), answer(), ())
    assert (found.running, found.state) == (None, BASE.state)


def test_the_past_that_an_agent_kept() -> None:
    """A history becomes lines: counts as they are, tokens as means over ten points, gaps as gaps; rows of version 1.0 lack one."""
    rows = [[3, 0, 100.0, 2.0], [3, 0, 300.0, None], [None, None, None, None], [1, 0, 50.0]]
    found = past({"period_s": 1.0, "points": rows})
    assert found is not None
    assert found.running == (3.0, 3.0, None, 1.0)
    assert found.tokens_per_s == (100.0, 200.0, None, 150.0)
    assert found.accept_length == (2.0, None, None, None)
    assert past({}) is None


@given(st.dictionaries(st.sampled_from(["servers", "nvml", "version", "troubles", "nvml_age_s"]), JSON), JSON)
def test_nonsense_is_nothing(told: dict[str, object], row: object) -> None:
    """Whatever an agent answers, a sight comes of it that JSON can hold."""
    found = laid_over(BASE, {**told, "servers": {"k26": {"engine": row, "engine_age_s": 1.0, "status": row}}}, ())
    json.dumps(as_wire(found), allow_nan=False)
    json.dumps(as_wire(laid_over(BASE, told, ())), allow_nan=False)
