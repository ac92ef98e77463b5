"""The replay agrees with every right walk, and names each wrong one at its step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specctl.doctor import replay
from specctl.doctor.replay_types import Kind, ReplayResult
from tests.unit.doctor.traces import VOCABULARY, Record, path_to, random_trace, random_tree, text

seeds = st.integers(0, 1 << 32)
Mutation = Callable[[Record, Random], bool]


def check(records: list[Record], **more: object) -> ReplayResult:
    """Replay records."""
    return replay.check(text(records), **more)  # type: ignore[arg-type]  # the test's own dictionaries


@given(seed=seeds, chain=st.booleans())
def test_a_right_walk_passes(seed: int, chain: bool) -> None:
    """What trying every path finds is what the reference finds, for trees and chains, with ends inside blocks."""
    records = random_trace(seed, chain=chain)
    found = check(records)
    verifies = [record for record in records if record["kind"] == "verify"]
    assert found.divergences == ()
    assert (found.requests, found.malformed, found.sums.steps) == (2, 0, len(verifies))
    assert found.sums.drafts == sum(record["drafts"] for record in verifies)
    assert found.sums.nodes == sum(len(record["tokens"]) for record in verifies)
    assert found.sums.committed == sum(len(record["committed"]) for record in verifies)
    assert found.sums.ended == 2


def dropped_bonus(step: Record, _chance: Random) -> bool:
    """Commit the drafts alone."""
    step["committed"] = step["committed"][:-1]
    return True


def wrong_child(step: Record, chance: Random) -> bool:
    """Go on to a child that the target did not say."""
    last = step["path"][-1]
    children = [node for node, parent in enumerate(step["parents"]) if parent == last]
    if not children:
        return False
    step["path"] = [*step["path"], chance.choice(children)]
    return True


def sibling_accepted(step: Record, chance: Random) -> bool:
    """Take a sibling of the accepted node."""
    if len(step["path"]) < 2:
        return False
    above, node = step["path"][-2:]
    siblings = [other for other, parent in enumerate(step["parents"]) if parent == above and other != node]
    if not siblings:
        return False
    step["path"] = [*step["path"][:-1], chance.choice(siblings)]
    return True


def truncated_path(step: Record, chance: Random) -> bool:
    """Stop the walk early, and count and commit accordingly: only the walk itself gives it away."""
    if len(step["path"]) < 2:
        return False
    kept = chance.randint(1, len(step["path"]) - 1)
    step["path"] = step["path"][:kept]
    step["committed"] = [step["target"][node] for node in step["path"]]
    step["bonus"] = step["committed"][-1]
    step["drafts"] = step["depth"] = kept - 1
    return True


def depth_off(step: Record, chance: Random) -> bool:
    """Take another node's depth for the accepted one."""
    step["depth"] += chance.randint(1, 5)
    return True


def drafts_off(step: Record, _chance: Random) -> bool:
    """Count the bonus as a draft."""
    step["drafts"] += 1
    return True


def nodes_off(step: Record, _chance: Random) -> bool:
    """Leave the root out of the nodes."""
    step["nodes"] -= 1
    return True


def wrong_parent(step: Record, chance: Random) -> bool:
    """Hang a node of the path elsewhere."""
    if len(step["path"]) < 2:
        return False
    node = step["path"][-1]
    others = [other for other in range(node) if other != step["parents"][node]]
    if not others:
        return False
    step["parents"][node] = chance.choice(others)
    return True


def parent_after_child(step: Record, _chance: Random) -> bool:
    """Make a node its own parent."""
    step["parents"][-1] = len(step["parents"]) - 1
    return len(step["parents"]) > 1


def position_off(step: Record, _chance: Random) -> bool:
    """Place drafts one too far."""
    step["positions"] = [at + (node > 0) for node, at in enumerate(step["positions"])]
    return len(step["positions"]) > 1


def over_budget(step: Record, _chance: Random) -> bool:
    """Verify more than the budget."""
    step["budget"] = len(step["tokens"]) - 2
    return len(step["tokens"]) > 2


def thrown_away(step: Record, _chance: Random) -> bool:
    """Commit one token of three or more."""
    step["committed"] = step["committed"][:1]
    return len(step["path"]) > 2


def wrong_token(step: Record, _chance: Random) -> bool:
    """Commit a token that is not the accepted one."""
    step["committed"][0] = VOCABULARY + 1
    return True


def one_too_many(step: Record, _chance: Random) -> bool:
    """Commit a token beyond the bonus."""
    step["committed"] = [*step["committed"], 0]
    return True


def wrong_bonus(step: Record, _chance: Random) -> bool:
    """Take a bonus that the target did not say."""
    step["bonus"] = VOCABULARY + 1
    return True


def stale_prefix(step: Record, _chance: Random) -> bool:
    """Go back by a token."""
    step["prefix"] -= 1
    step["positions"] = [at - 1 for at in step["positions"]]
    return True


def stale_root(step: Record, _chance: Random) -> bool:
    """Begin at an old token."""
    step["tokens"][0] = VOCABULARY + 1
    return True


MUTATIONS: dict[Mutation, set[Kind]] = {
    dropped_bonus: {Kind.BONUS_DROPPED},
    wrong_child: {Kind.NOT_TARGETS},
    sibling_accepted: {Kind.NOT_TARGETS},
    truncated_path: {Kind.WALK_SHORT},
    depth_off: {Kind.DEPTH},
    drafts_off: {Kind.DRAFTS},
    nodes_off: {Kind.NODES},
    wrong_parent: {Kind.NOT_A_CHILD, Kind.POSITION, Kind.TOPOLOGY, Kind.TOO_MANY},
    parent_after_child: {Kind.TOPOLOGY},
    position_off: {Kind.POSITION},
    over_budget: {Kind.TOO_MANY},
    thrown_away: {Kind.THROWN_AWAY},
    wrong_token: {Kind.COMMIT_WRONG},
    one_too_many: {Kind.COMMIT_LONG},
    wrong_bonus: {Kind.BONUS},
    stale_prefix: {Kind.PREFIX},
    stale_root: {Kind.ROOT},
}


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
@given(seed=seeds)
def test_a_mutation_is_named_at_its_step(mutate: Mutation, seed: int) -> None:
    """Whatever one step gets wrong is found first at that step of that request, by its name."""
    chance = Random(seed)
    records = random_trace(seed)
    inner = [at for at, record in enumerate(records) if record["kind"] == "verify" and record["finish"] is None]
    chance.shuffle(inner)
    bent = ((at, copy.deepcopy(records[at])) for at in inner)
    at, record = next(((at, record) for at, record in bent if mutate(record, chance)), (0, records[0]))
    assume(at)
    records[at] = record
    first = check(records).first
    assert first is not None
    assert (first.step, first.rid, first.line) == (records[at]["step"], records[at]["rid"], at + 1)
    assert first.kind in MUTATIONS[mutate]


@given(seed=seeds)
def test_one_fault_counts_once(seed: int) -> None:
    """A step that threw tokens away does not make the right step after it wrong."""
    records = random_trace(seed, requests=1)
    committed = records[1]["committed"]
    assume(len(committed) > 1)
    committed.pop()
    assert [one.kind for one in check(records).divergences] == [Kind.BONUS_DROPPED]


def test_a_sentence_says_step_request_and_figures() -> None:
    """A divergence reads as a sentence."""
    records = random_trace(3)
    records[1]["depth"] += 3
    drafts = records[1]["drafts"]
    wanted = (
        f"step 2, request r0: accepted depth is counted wrong ({drafts + 3} counted, the path has {drafts} drafts; "
        "on any path depth = drafts)"
    )
    assert str(check(records).first) == wanted


def test_what_clients_received_is_compared() -> None:
    """A request whose client got other tokens than were committed diverges where it ends."""
    records = random_trace(5, requests=1)
    sent = [token for record in records for token in record["committed"]]
    assert check(records, streamed={"r0": sent}).divergences == ()
    bent = check(records, streamed={"r0": [*sent[:2], VOCABULARY + 1, *sent[3:]]}).first
    assert bent is not None
    assert (bent.kind, bent.step, bent.said) == (Kind.STREAMED, records[-1]["step"], "token 3 differs")
    short = check(records, streamed={"r0": sent[:-1]}).first
    assert short is not None
    assert short.said == f"{len(sent) - 1} received, {len(sent)} committed"


def taken_back(records: list[Record], at: int) -> Record:
    """Return the prefill of a request that was taken back before the record at that place and goes on with its next token."""
    before, now = records[at - 1], records[at]
    given = sum(len(record["committed"]) for record in records[:at])
    again = {"prompt": records[0]["prompt"] + given, "committed": now["committed"][:1], "finish": None}
    return {"v": 1, "kind": "prefill", "rid": before["rid"], "step": now["step"], **again}


@given(seed=seeds)
def test_what_a_request_was_given_before_it_was_taken_back_counts(seed: int) -> None:
    """A request that was retracted and read again is compared from its first token on, what it was given before included."""
    records = random_trace(seed, requests=1, steps=12)
    places = [at for at in range(1, len(records) - 1) if len(records[at]["committed"]) == 1]
    assume(places)
    records[places[-1]] = taken_back(records, places[-1])
    sent = [token for record in records for token in record["committed"]]
    assert check(records, streamed={"r0": sent}).divergences == ()
    for at in (0, -1):
        bent = list(sent)
        bent[at] = VOCABULARY + 1
        assert [one.kind for one in check(records, streamed={"r0": bent}).divergences] == [Kind.STREAMED]


def test_what_was_lost_before_a_request_was_taken_back_is_not_held_against_it() -> None:
    """Where a line could not be read, nobody knows what a request that is read again was given before."""
    records = next(
        records for seed in range(100) if len((records := random_trace(seed, requests=1, steps=6))[3]["committed"]) == 1
    )
    sent = [token for record in records for token in record["committed"]]
    records[3] = taken_back(records, 3)
    lines = text(records)
    assert replay.check([*lines[:3], "{", *lines[3:]], streamed={"r0": sent}).divergences == ()


def test_an_id_that_is_used_again_is_another_request() -> None:
    """After a request's end, and after a new beginning of the trace, its id's next prompt is begun from nothing."""
    records = random_trace(5, requests=1)
    sent = [token for record in records for token in record["committed"]]
    head = {"v": 1, "kind": "trace", "engine": "any", "version": "1"}
    for between in ([], [head]):
        for first in (records, records[:2] if between else records):
            found = check([*first, *between, *records], streamed={"r0": sent})
            assert found.divergences == ()
    assert check([*records[:2], head, *records], streamed={"r0": sent[:-1]}).by_kind == {Kind.STREAMED: 1}


def test_a_request_that_goes_on_after_its_end() -> None:
    """Nothing may follow a request's end."""
    records = random_trace(7, requests=1)
    again = copy.deepcopy(records[-1])
    again["step"] += 1
    first = check([*records, again]).first
    assert first is not None
    assert (first.kind, first.step) == (Kind.AFTER_END, again["step"])


def test_plain_steps_keep_the_thread() -> None:
    """A step without drafts between two verify steps moves the prefix by its token."""
    records = random_trace(9, requests=1)
    middle = {"v": 1, "kind": "plain", "rid": "r0", "step": 99, "prefix": records[2]["prefix"], "finish": None}
    first = [{**middle, "committed": [records[2]["tokens"][0]]}]
    for record in records[2:]:
        record["prefix"] += 1
        record["positions"] = [at + 1 for at in record["positions"]]
    assert check([*records[:2], *first, *records[2:]]).divergences == ()
    assert check([*records[:2], *records[2:]]).first is not None


def test_what_is_not_told_is_not_checked() -> None:
    """Without positions, knobs and counts the walk is replayed all the same, and the gaps are named."""
    records = random_trace(11, requests=1, steps=2)
    for record in records[1:]:
        for name in ("positions", "block", "budget", "topk", "depth", "drafts", "nodes", "bonus"):
            del record[name]
    found = check(records)
    assert (found.divergences, found.sums.steps) == ((), 2)
    assert found.unchecked == tuple(
        f"{name}: not told in 2 of 2 steps" for name in ("positions", "depth", "drafts", "block", "budget", "topk")
    )


def test_depths_follow_parents() -> None:
    """The brute force's own paths begin at the root."""
    assert path_to([-1, 0, 1, 0, 2], 4) == [0, 1, 2, 4]


def test_a_full_node_ends_a_drawn_tree() -> None:
    """Where a node has all tokens below it, no node after it is its own parent: the brute force would never end."""
    parents, tokens = random_tree(Random(11067), chain=False)
    assert all(parent < node for node, parent in enumerate(parents))
    assert max(parents.count(node) for node in range(len(tokens))) == VOCABULARY
