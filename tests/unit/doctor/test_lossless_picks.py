"""Where a pick stands, and what the cache had been through, from a trace or from the stream alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specctl.doctor.lossless_picks import moments, picks, records_of, spread, streamed_picks
from specctl.doctor.lossless_stream import Chunk, chunks, told
from specctl.doctor.lossless_types import History, Pick, Place
from tests.unit.doctor.traces import Record, path_to, random_trace, text


def requests(records: list[Record], rid: str) -> tuple[list[int], list[Record]]:
    """Return a made-up prompt of the right length, and a request's records."""
    own = [record for record in records if record["rid"] == rid]
    return [90 + at for at in range(own[0]["prompt"])], own


@given(seed=st.integers(0, 1 << 32), chain=st.booleans())
def test_contexts_are_the_texts_that_nodes_follow(seed: int, chain: bool) -> None:
    """A node's context is all that was committed, then its path; places and histories are what the paths say."""
    records = random_trace(seed, chain=chain, steps=5)
    prompt, own = requests(records, "r1")
    found = moments(prompt, records_of(text(records), ["r1"])["r1"])
    steps = [record for record in own if record["kind"] == "verify"]
    assert [moment.record.step for moment in found] == [record["step"] for record in steps]
    tokens, straight = [*prompt, *own[0]["committed"]], True
    for moment, record in zip(found, steps, strict=True):
        parents = record.get("parents") or list(range(-1, len(record["tokens"]) - 1))
        for pick in picks("r1", moment):
            assert pick.node is not None
            path = path_to(parents, pick.node)
            assert pick.context == (*tokens, *(record["tokens"][node] for node in path[1:]))
            alone = path == list(range(pick.node + 1))
            assert pick.place is (Place.BRANCH if not alone else Place.CHAIN if pick.node else Place.ROOT)
            assert (pick.history is not History.MOVED) == straight
            assert pick.said == record["target"][pick.node]
        kept = record["path"][: len(record["committed"])]
        straight = straight and kept == list(range(len(kept)))
        tokens += record["committed"]
    assert found[0].history is History.FRESH


def test_a_step_that_does_not_follow_ends_the_list() -> None:
    """After a step that does not continue the text nothing is asked about."""
    records = random_trace(3, steps=5)
    prompt, own = requests(records, "r0")
    own[3]["prefix"] += 1
    assert len(moments(prompt, records_of(text(records), ["r0"])["r0"])) == 2
    assert moments(prompt[1:], records_of(text(records), ["r0"])["r0"]) == ()


def test_a_request_without_its_beginning_is_left_out() -> None:
    """A trace that began in the middle of a request does not tell its text."""
    assert records_of(text(random_trace(3)[1:]), ["r0"]) == {}


def test_chunks_are_steps() -> None:
    """The first token of a chunk is a root's, the others accepted drafts; a prefill's token is none of them."""
    came = (
        Chunk(tokens=(1,), steps=0),
        Chunk(tokens=(2,), steps=1),
        Chunk(tokens=(3, 4), steps=1),
        Chunk(tokens=(5,), steps=1),
    )
    found = streamed_picks("r", [9], came, chain=False)
    assert [(pick.said, pick.place, pick.history, pick.context) for pick in found] == [
        (2, Place.ROOT, History.FRESH, (9, 1)),
        (3, Place.ROOT, History.FRESH, (9, 1, 2)),
        (4, Place.DRAFTED, History.FRESH, (9, 1, 2, 3)),
        (5, Place.ROOT, History.AFTER, (9, 1, 2, 3, 4)),
    ]
    assert streamed_picks("r", [9], came, chain=True)[2].place is Place.CHAIN


def test_of_merged_chunks_only_the_first_token_is_known() -> None:
    """Of an event that two steps went into one does not know where the second began."""
    came = (Chunk(tokens=(1,), steps=0), Chunk(tokens=(2, 3, 4), steps=2), Chunk(tokens=(5,), steps=1))
    assert [pick.said for pick in streamed_picks("r", [9], came, chain=False)] == [2, 5]


def test_a_step_that_came_with_the_prefill_may_have_accepted_drafts() -> None:
    """Where the first event holds more than the prefill's token, nothing after it is before any accepted draft."""
    came = (Chunk(tokens=(1, 2, 3), steps=1), Chunk(tokens=(4,), steps=1))
    assert [(pick.said, pick.history) for pick in streamed_picks("r", [9], came, chain=False)] == [(4, History.AFTER)]


def test_events_become_chunks() -> None:
    """Each event repeats the whole answer; what it adds is a chunk, with the steps and right drafts that it counts."""
    events = [
        told({"output_ids": [1], "meta_info": {"prompt_tokens": 4}}),
        told({"output_ids": [1, 2, 3], "meta_info": {"spec_verify_ct": 1, "spec_num_correct_drafts": 1}}),
        told({"output_ids": [1, 2, 3], "meta_info": {"spec_verify_ct": 1}}),
        told({"output_ids": [1, 2, 3, 4], "meta_info": {"spec_verify_ct": 2, "spec_num_correct_drafts": 4}}),
    ]
    assert chunks([event for event in events if event is not None]) == (
        Chunk(tokens=(1,), steps=0, correct=0),
        Chunk(tokens=(2, 3), steps=1, correct=1),
        Chunk(tokens=(4,), steps=1, correct=3),
    )


@given(
    st.dictionaries(
        st.sampled_from(["output_ids", "meta_info", "text"]),
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_answers_of_any_shape_are_read(body: dict[str, object]) -> None:
    """An answer without token ids is None; any other is read as far as it is sound."""
    found = told(body)
    assert found is None or found.tokens == tuple(body["output_ids"])  # type: ignore[arg-type]  # a list, as it was read


def test_picks_are_spread_and_none_twice() -> None:
    """Of many picks some of each place and history are kept, evenly, each context once."""
    many = [
        Pick(rid="r", step=at, place=place, history=History.FRESH, said=0, context=(at % 100, 0))
        for place in (Place.ROOT, Place.CHAIN)
        for at in range(200)
    ]
    kept = spread(many, 10)
    assert [pick.step for pick in kept] == [*range(0, 100, 10)] * 2
