"""Each contradiction, planted in a healthy server's figures, is named by its id; other checks that see it too are listed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.algos import ALGOS
from specctl.control.mode import mode
from specctl.control.sample.engine import EngineCounters, EngineLoad
from specctl.doctor import lines
from specctl.doctor.evidence import Evidence, Observation
from specctl.doctor.judge import judge
from specctl.doctor.types import Finding
from specctl.lint.types import Severity
from tests.examples import examples
from tests.unit.doctor.worlds import READER, Truth, World, without

TREE = Truth()
CHAIN = Truth(mode=mode("dflash", {"block_size": 8}))
NONE = Truth(mode=mode("none"))
DRAFTING = sorted(name for name, algo in ALGOS.items() if algo.drafts)
CHANGE = 'INFO:     127.0.0.1:40310 - "POST /set_internal_state HTTP/1.1" 200 OK'
NUMBER = r"([\d.]+)"
Bend = Callable[[Evidence], Evidence]


def found(evidence: Evidence) -> dict[str, Finding]:
    """Return the findings by their ids."""
    return {one.id: one for one in judge(evidence).findings}


def figure(name: str, change: Callable[[float], float]) -> Callable[[str], str]:
    """Return a change of one figure of every line that has it."""
    return lambda line: re.sub(rf"({name}){NUMBER}", lambda match: f"{match[1]}{change(float(match[2])):.2f}", line)


def counters(change: Callable[[EngineCounters], EngineCounters], *, which: int = -1) -> Bend:
    """Return a change of one page of counters."""

    def bend(evidence: Evidence) -> Evidence:
        seen = list(evidence.observations)
        page = seen[which].page
        assert page is not None
        seen[which] = replace(seen[which], page=replace(page, counters=change(page.counters)))
        return replace(evidence, observations=tuple(seen))

    return bend


def loads(change: Callable[[EngineLoad], EngineLoad]) -> Bend:
    """Return a change of each answer of /v1/loads."""

    def one(seen: Observation) -> Observation:
        assert seen.look is not None
        return replace(seen, look=replace(seen.look, load=change(seen.look.load)))

    return lambda evidence: replace(evidence, observations=tuple(map(one, evidence.observations)))


def sums(**times: float) -> Bend:
    """Return a change of the sums over decode steps: each named one that many times as large."""

    def change(load: EngineLoad) -> EngineLoad:
        assert load.decoded is not None
        more = {name: getattr(load.decoded, name) * factor for name, factor in times.items()}
        return replace(load, decoded=replace(load.decoded, **more))

    return loads(change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One contradiction: what it is called, the server, how its lines or figures are bent, and the ids that must be found."""

    name: str
    ids: frozenset[str]
    truth: Truth = TREE
    line: Callable[[str], str] = lambda line: line
    bend: Bend = lambda evidence: evidence


CASES = (
    Planted(
        name="depth of another node",
        ids=frozenset({"M003"}),
        line=figure("avg_accepted_depth=", lambda depth: depth + 3),
    ),
    Planted(
        name="bonus left out",
        ids=frozenset({"M004", "M005", "M021"}),
        line=figure("avg_commit_len=", lambda told: told - 1),
    ),
    Planted(
        name="commit cut at 1", ids=frozenset({"M004", "M005", "M021"}), line=figure("avg_commit_len=", lambda _: 1.0)
    ),
    Planted(
        name="accepted drafts thrown away", ids=frozenset({"M004", "M026"}), truth=replace(TREE, kept=1, drafted=0.85)
    ),
    Planted(name="a chain's drafts thrown away", ids=frozenset({"M026"}), truth=replace(CHAIN, kept=1, drafted=0.85)),
    Planted(
        name="requests of five tokens",
        ids=frozenset({"M027"}),
        truth=replace(TREE, lengths=(4, 6), requests=400, drafted=0.85),
    ),
    Planted(
        name="nodes over the budget",
        ids=frozenset({"M015", "M016"}),
        line=figure("avg_actual_nodes=", lambda nodes: nodes + 4),
    ),
    Planted(
        name="another budget", ids=frozenset({"M013", "M016"}), line=lambda line: line.replace("budget=16", "budget=8")
    ),
    Planted(
        name="a path longer than the block",
        ids=frozenset({"M017", "M020"}),
        line=figure("avg_accepted_drafts=", lambda _: 7.5),
    ),
    Planted(name="a rate over one", ids=frozenset({"M018"}), line=figure("accept rate: ", lambda rate: rate + 1)),
    Planted(
        name="a chain's rate of another block",
        ids=frozenset({"M019"}),
        truth=CHAIN,
        line=figure("accept rate: ", lambda rate: rate / 2),
    ),
    Planted(
        name="two lines of one window",
        ids=frozenset({"M020"}),
        line=figure("accept len: ", lambda length: length + 0.4),
    ),
    Planted(
        name="an accept length over the block",
        ids=frozenset({"M001", "M014", "M019"}),
        truth=CHAIN,
        bend=lambda evidence: replace(evidence, mode=mode("dflash", {"block_size": 2})),
    ),
    Planted(name="under one token a step", ids=frozenset({"M002"}), bend=sums(tokens=0.2)),
    Planted(name="more tokens by steps than were counted", ids=frozenset({"M006"}), bend=sums(tokens=1.5)),
    Planted(name="two commits", ids=frozenset({"M007"}), truth=CHAIN, bend=sums(tokens=0.6)),
    Planted(name="more decoding than time", ids=frozenset({"M008"}), bend=sums(busy_s=5.0, request_busy_s=5.0)),
    Planted(
        name="counters that go back",
        ids=frozenset({"M009"}),
        bend=counters(
            lambda page: replace(page, decode_tokens=1.0, generated_tokens=1.0, verify_calls=1.0, requests=1.0)
        ),
    ),
    Planted(
        name="more running than may",
        ids=frozenset({"M010"}),
        bend=loads(lambda load: replace(load, running=9, max_running=8)),
    ),
    Planted(
        name="a tree without its lines",
        ids=frozenset({"M011"}),
        truth=CHAIN,
        bend=lambda evidence: replace(evidence, mode=TREE.mode),
    ),
    Planted(
        name="a tree's lines of a chain",
        ids=frozenset({"M011"}),
        truth=TREE,
        bend=lambda evidence: replace(evidence, mode=CHAIN.mode),
    ),
    Planted(
        name="speculation that commits one",
        ids=frozenset({"M012"}),
        truth=NONE,
        bend=lambda evidence: replace(evidence, mode=CHAIN.mode),
    ),
    Planted(
        name="plain decoding that commits two",
        ids=frozenset({"M012"}),
        truth=CHAIN,
        bend=lambda evidence: replace(evidence, mode=NONE.mode),
    ),
    Planted(
        name="draft tokens of another block",
        ids=frozenset({"M014"}),
        truth=CHAIN,
        bend=counters(lambda page: replace(page, draft_tokens=16.0)),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_is_named(case: Planted) -> None:
    """The finding that the contradiction is about is there."""
    evidence = case.bend(World.of(case.truth).evidence(case.line))
    assert case.ids <= set(found(evidence)), {one.id: one.message for one in found(evidence).values()}


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**31), st.integers(6, 16), st.floats(0.5, 0.97), st.integers(1, 3))
def test_a_bonus_left_out_is_always_named(seed: int, block: int, drafted: float, batch: int) -> None:
    """However many drafts are accepted, so that one token of a step is little: more lines fall short than requests end.

    Where there are few lines, what requests got says it.
    """
    knobs = {"block_size": block, "tree_budget": 2 * block, "topk_cap": 4}
    truth = Truth(seed=seed, mode=mode("ddtree", knobs), drafted=drafted, batch=batch, lengths=(1200, 1600), requests=6)
    evidence = World.of(truth).evidence(figure("avg_commit_len=", lambda told: told - 1))
    named = found(evidence)
    assert {"M004", "M021"} & set(named)
    assert {"M026", "M027"} & set(named) == set()
    assert {one.effect.partition(":")[0] for one in named.values() if one.id in ("M004", "M021")} == {"none on tokens"}


def test_the_agents_own_audit_is_heard() -> None:
    """What the agent found and we cannot decide is a finding; what we see to be well is not, whatever it said before."""
    seen = World.of(TREE).evidence()
    blind = without(seen, "observations", "started_s")
    assert "M006" not in found(blind)
    assert "M006" in found(replace(blind, agent_finds=("M006", "M003")))
    assert found(replace(seen, agent_finds=("M006", "M003"))) == {}


@pytest.mark.parametrize("before", [15, 64])
def test_lines_of_a_mode_before_a_live_change_are_not_held_against_the_present_one(before: int) -> None:
    """After a change of the budget the log has lines of both: only those that came since speak of what runs now."""
    knobs = dict(TREE.mode.knobs)
    log_before = World.of(replace(TREE, mode=mode("ddtree", {**knobs, "tree_budget": before}), drafted=0.95)).log
    world = World.of(replace(TREE, drafted=0.2))
    now = replace(world.evidence(), steady=False, started_s=None)
    both = replace(now, log=lines.read([*log_before, *world.log], READER, whole=True))
    assert found(both) == {}
    assert {one.id for one in judge(both).passed} >= {"M005", "M013", "M015"}
    assert "M013" in found(replace(both, mode=mode("ddtree", {**knobs, "tree_budget": before})))
    told = lines.read([*log_before, CHANGE, *world.log], READER, whole=True)
    assert found(without(replace(both, log=told), "served", "served_log")) == {}
    unloaded = without(both, "served", "served_log")
    assert found(unloaded) == {}
    assert "M013" in found(replace(unloaded, mode=mode("ddtree", {**knobs, "tree_budget": before})))


HARMLESS = ("depth of another node", "bonus left out", "commit cut at 1")
LOST = ("accepted drafts thrown away",)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in HARMLESS], ids=lambda case: case.name)
def test_a_metric_that_lies_costs_no_tokens(case: Planted) -> None:
    """Where requests get what was accepted, the effect is none on tokens, and nothing is said to be thrown away."""
    named = found(World.of(case.truth).evidence(case.line))
    assert "M026" not in named
    assert {one.effect.partition(":")[0] for one in named.values() if one.id in ("M003", "M004", "M021")} == {
        "none on tokens"
    }


def test_lost_tokens_are_told_from_a_lie() -> None:
    """Where requests get less than was accepted, tokens are thrown away: an error, and the line's own commit is called no lie."""
    named = found(World.of(replace(TREE, kept=1, drafted=0.85)).evidence())
    assert named["M026"].severity is Severity.ERROR
    assert named["M004"].severity is Severity.ERROR
    assert "M021" not in named
    assert "tokens are lost" in named["M004"].effect


def test_an_early_end_is_told_from_a_loss() -> None:
    """Where requests end inside their blocks, nothing is thrown away and the commit is no contradiction."""
    named = found(World.of(replace(TREE, lengths=(4, 6), requests=400, drafted=0.85)).evidence())
    assert set(named) == {"M027"}
    assert named["M027"].severity is Severity.NOTE


@pytest.mark.parametrize("truth", [TREE, CHAIN])
def test_without_a_count_of_steps_a_loss_is_unknown(truth: Truth) -> None:
    """Where nobody counted verify steps beside tokens, neither a loss nor a lie is claimed, and what would decide it is said."""
    world = World.of(replace(truth, kept=1, drafted=0.85))
    report = judge(without(world.evidence(), "served", "served_log", "observations"))
    assert {"M021", "M026"} <= {one.id for one in report.unknown}
    assert not {"M021", "M026"} & {one.id for one in report.findings}
    assert all("--live" in one.decide for one in report.unknown if one.id in ("M021", "M026"))


@settings(max_examples=examples(15), deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(3, 16),
    st.integers(2, 40),
    st.floats(0.5, 3.0),
    st.floats(0.3, 0.9),
    st.integers(1, 4),
)
def test_a_wrong_depth_is_always_named(
    seed: int, block: int, budget: int, more: float, drafted: float, batch: int
) -> None:
    """Whatever the tree, a depth beyond its drafts is M003 and costs no token."""
    knobs = {"block_size": block, "tree_budget": budget, "topk_cap": 4}
    truth = Truth(seed=seed, mode=mode("ddtree", knobs), drafted=drafted, batch=batch)
    named = found(World.of(truth).evidence(figure("avg_accepted_depth=", lambda depth: depth + more)))
    assert set(named) == {"M003"}
    assert named["M003"].effect.startswith("none on tokens")


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**31), st.integers(4, 16), st.floats(0.6, 0.9), st.sampled_from(DRAFTING))
def test_a_loss_is_always_named(seed: int, block: int, drafted: float, algo: str) -> None:
    """Whatever the algo and block, drafts that are accepted and not committed are M026, as far as they are a tenth of all."""
    knobs = {"block_size": block, "tree_budget": 2 * block, "topk_cap": 4}
    own = {name: value for name, value in knobs.items() if ALGOS[algo].knob(name) is not None}
    truth = Truth(seed=seed, mode=mode(algo, own), drafted=drafted, kept=1)
    world = World.of(truth)
    due = 1 + sum(truth_drafts(world)) / len(truth_drafts(world))
    got = sum(one.tokens - 1 for one in world.served) / sum(one.verify_calls or 0 for one in world.served)
    named = found(world.evidence())
    assert ("M026" in named) or got > due * 0.85


def truth_drafts(world: World) -> list[float]:
    """Return the drafts of each log window, by its decode line."""
    return [float(found_[1]) - 1 for line in world.log if (found_ := re.search(r"accept len: ([\d.]+)", line))]
