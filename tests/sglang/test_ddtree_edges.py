"""DDTREE where requests are unusual, with a block wider than the draft was made for and a policy from the start."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fleet.waiting import until
from tests.sglang import ddtree_cases as cases
from tests.sglang.ddtree_cases import PROMPTS, Body, Plain
from tests.sglang.ddtree_engine import Answer, Engine, started

pytestmark = pytest.mark.sglang

WIDE = 12
ENV = {"DDTREE_POLICY": f"1:20/4,3:{WIDE - 1}/1,5:0", "DDTREE_TOPK": "2"}
LONG = 900
IDLE_WITHIN_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, plain: Plain) -> Iterator[Engine]:  # one engine at a time
    """Give an engine whose batches of one or two get a tree, larger ones the chain, and those of five no draft."""
    options = ("--speculative-dflash-block-size", str(WIDE))
    with started(tmp_path_factory.mktemp("edges"), "DDTREE", env=ENV, options=options) as engine:
        yield engine


def long_body(number: int) -> Body:
    """Return a request that runs for a while, with an id."""
    return {**cases.greedy(PROMPTS[number], tokens=LONG), "rid": f"long-{number}"}


def streamed(engine: Engine, body: Body) -> list[Answer]:
    """Return all that was told of a request while it ran."""
    return list(engine.stream(body))


def is_beginning(part: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a text is how another one begins."""
    return list(part) == list(whole[: len(part)])


def idle(engine: Engine) -> None:
    """Wait until nothing runs, and see that then no token is held for anybody."""
    until(lambda: engine.load()[0] == 0, what="nothing runs", within_s=IDLE_WITHIN_S)
    engine.flush()
    assert engine.load() == (0, 0)


def test_policy_of_the_start_is_told(server: Engine) -> None:
    """The start line and the state have the table that the environment gave, and limits that reach as far."""
    line = (
        f"block_size={WIDE}, tree_budget=16, topk_cap=2, max_budget=20, max_topk=4, policy=1:20/4,3:{WIDE - 1}/1,5:0/2"
    )
    assert f"Initialized DDTREE worker. {line}" in server.log()
    assert server.state()["ddtree_policy"] == [
        {"from": 1, "ddtree_budget": 20, "ddtree_topk": 4},
        {"from": 3, "ddtree_budget": WIDE - 1, "ddtree_topk": 1},
        {"from": 5, "ddtree_budget": 0, "ddtree_topk": 2},
    ]


@pytest.mark.parametrize("at_once", [1, 3, 6])
def test_block_wider_than_the_drafts_changes_no_text(server: Engine, plain: Plain, at_once: int) -> None:
    """By tree, by chain and without drafts each text is plain decoding's, though the draft never saw so wide a block."""
    answers = server.ask_all(cases.plain_bodies(), at_once=at_once)
    assert [answer.tokens for answer in answers] == plain.texts
    idle(server)


def test_shortest_and_longest_requests_are_answered_as_plainly(server: Engine, plain: Plain) -> None:
    """Prompts and texts of one token, and a text to the end of the model's context, are plain decoding's."""
    bodies = cases.special_bodies(plain.texts)
    for name in ("prompt of one token", "prompt of one token, limit 1", "limit 1", "text to the end of the context"):
        answer, wanted = server.ask(bodies[name]), plain.special[name]
        assert (name, answer.tokens) == (name, wanted.tokens)
        assert answer.meta["finish_reason"] == wanted.meta["finish_reason"]
    idle(server)


def test_streams_grow_to_the_plain_text(server: Engine, plain: Plain) -> None:
    """Of six streams each event goes on from the one before, and the last has plain decoding's text."""
    with ThreadPoolExecutor(len(PROMPTS)) as pool:
        told = list(pool.map(lambda body: streamed(server, body), cases.plain_bodies()))
    for events, text in zip(told, plain.texts, strict=True):
        assert len(events) > 1
        assert all(is_beginning(event.tokens, text) for event in events)
        assert events[-1].tokens == text


def test_cancelled_requests_leave_the_others_alone(server: Engine, plain: Plain) -> None:
    """Requests that are aborted or hung up on while six run end early with a beginning of their text; the others lose nothing."""
    with ThreadPoolExecutor(len(PROMPTS)) as pool:
        ends = [pool.submit(streamed, server, long_body(number)) for number in (0, 1)]
        until(lambda: server.load()[0] == len(ends), what="both run", within_s=IDLE_WITHIN_S)
        others = [pool.submit(server.ask, body) for body in cases.plain_bodies()[2:]]
        gone = server.stream({**cases.greedy(PROMPTS[5], tokens=LONG), "rid": "gone"})
        heard = next(gone)
        gone.close()  # type: ignore[attr-defined]  # a generator: it hangs up
        server.post("/abort_request", {"rid": "long-0"})
        answers = [one.result().tokens for one in others]
        server.post("/abort_request", {"rid": "long-1"})
        cut = [one.result()[-1] for one in ends]
    assert answers == plain.texts[2:]
    assert is_beginning(heard.tokens, plain.texts[5])
    for answer, text in zip(cut, plain.texts, strict=False):
        assert len(answer.tokens) < LONG
        assert answer.meta["finish_reason"]["type"] == "abort"  # type: ignore[index]  # JSON
        assert is_beginning(answer.tokens[: len(text)], text)
    idle(server)
    assert server.ask(cases.plain_bodies()[5]).tokens == plain.texts[5]


def test_tables_change_while_requests_run(server: Engine, plain: Plain) -> None:
    """Whole tables that are put in and taken out while requests come and go change no token."""
    chance = random.Random(8)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(lambda: [server.ask_all(cases.plain_bodies(), at_once=each) for each in (6, 2, 6, 3)])
        while not asking.done():
            starts = chance.sample(range(1, 7), 3)
            table = {f"ddtree_budget_from_{start}": chance.randint(0, 20) for start in starts}
            table |= {f"ddtree_topk_from_{start}": chance.randint(1, 4) for start in starts[:2]}
            assert server.turn(**table)
            assert server.turn(ddtree_budget=chance.randint(0, 20))
        found = asking.result()
    assert [[answer.tokens for answer in answers] for answers in found] == [plain.texts] * 4
    idle(server)
