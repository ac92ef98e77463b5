"""A server that requests share: what it serves and when, and that a switch neither loses a token nor serves one twice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.control.mode import Mode
from specctl.control.replay.load import Requests
from specctl.control.replay.outage import LIVE, Outage
from specctl.control.replay.queueing import Server
from specctl.control.replay.service import Service
from tests.unit.control.replay.loads import CHAIN, MODES, NONE, OUTAGES, SERVICE, TREE, flat, loads, requests

MOVES = st.lists(st.tuples(st.floats(0, 60), MODES, OUTAGES), max_size=6)


def run(
    service: Service, load: Requests, *, moves: Sequence[tuple[float, Mode, Outage]] = (), mode: Mode = NONE
) -> Server:
    """Return a server that has worked a load off, switched on the way."""
    server = Server(service, load, mode)
    for at_s, goal, outage in moves:
        server.advance(at_s)
        server.switch(goal, outage)
    server.advance(math.inf)
    return server


def test_one_request_decodes_at_the_rate_of_one() -> None:
    """A request alone takes its prompt's reading time and its answer at the rate of one."""
    server = run(flat(10.0, prefill_s=0.01), requests((2.0, 100, 50)))
    assert server.finished_s == pytest.approx([2.0 + 1.0 + 5.0])


def test_requests_share_the_rate_equally() -> None:
    """Two requests at once each get half; when the shorter ends, the other gets all."""
    server = run(flat(10.0), requests((0.0, 0, 10), (0.0, 0, 30)))
    assert server.finished_s == pytest.approx([2.0, 4.0])


def test_one_that_comes_later_shares_from_then_on() -> None:
    """The first has the server to itself for a second, then both have half of it."""
    server = run(flat(10.0), requests((0.0, 0, 20), (1.0, 0, 10)))
    assert server.finished_s == pytest.approx([3.0, 3.0])


def test_reading_a_prompt_stops_decoding() -> None:
    """While the second request's prompt is read the first one waits."""
    server = run(flat(10.0, prefill_s=0.01), requests((0.0, 0, 20), (1.0, 50, 10)))
    assert server.finished_s == pytest.approx([3.5, 3.5])


def test_who_finds_no_room_waits_in_order() -> None:
    """With room for one, requests are served one after the other."""
    load = requests((0.0, 0, 10), (0.1, 0, 10), (0.2, 0, 10))
    server = Server(flat(10.0, most=1), load, NONE)
    server.advance(0.5)
    assert (server.running, server.waiting) == (1, 2)
    server.advance(math.inf)
    assert server.finished_s == pytest.approx([1.0, 2.0, 3.0])


def test_a_restart_lets_the_running_end_and_the_others_wait() -> None:
    """Begun at one second: the running request ends at two, the server is back at five, and who came meanwhile is served then."""
    load = requests((0.0, 0, 20), (1.5, 0, 10))
    server = run(flat(10.0), load, moves=[(1.0, NONE, Outage(seconds=3.0, drains=True))])
    assert server.finished_s == pytest.approx([2.0, 6.0])
    assert (server.lost_s, server.switches) == pytest.approx((4.0, 1))
    assert server.log == [(0.0, NONE), (1.0, None), (5.0, NONE)]


def test_a_live_switch_keeps_who_runs() -> None:
    """Decoding stops for the tenth of a second that it takes, no longer, and then goes on in the new mode."""
    server = run(SERVICE, requests((0.0, 0, 140)), moves=[(1.0, TREE, LIVE)], mode=NONE)
    assert server.finished_s == pytest.approx([2.1])
    assert server.mode == TREE
    assert server.lost_s == pytest.approx(0.1)


@pytest.mark.parametrize("drains", [True, False])
@pytest.mark.parametrize("busy", [True, False])
def test_a_switch_that_takes_no_time_takes_none(drains: bool, busy: bool) -> None:
    """It is over at once, but for the drain."""
    load = requests((0.0 if busy else 5.0, 0, 140))
    server = run(SERVICE, load, moves=[(1.0, TREE, Outage(seconds=0.0, drains=drains))], mode=NONE)
    finished = 3.5 if busy and drains else 2.0 if busy else 6.4
    assert server.finished_s == pytest.approx([finished])
    assert server.mode == TREE
    assert server.lost_s == pytest.approx(2.5 if busy and drains else 0.0)


def test_one_switch_at_a_time() -> None:
    """A second switch is refused while one is under way, and possible when it is over."""
    server = Server(SERVICE, requests((0.0, 0, 10)), NONE)
    server.switch(TREE, Outage(seconds=2.0, drains=True))
    assert server.switching
    with pytest.raises(ValueError, match="under way"):
        server.switch(CHAIN, LIVE)
    server.advance(2.0)
    assert (server.switching, server.mode) == (False, TREE)
    server.switch(CHAIN, LIVE)


@given(loads(), MODES, MOVES, st.lists(st.floats(0, 100), max_size=5))
def test_no_token_is_lost_or_served_twice(
    load: Requests, mode: Mode, moves: list[tuple[float, Mode, Outage]], looks: list[float]
) -> None:
    """Whatever switches when: at any moment a request ran, waits or ended, and at the end each has exactly its tokens."""
    server = Server(SERVICE, load, mode)
    steps = sorted(
        [*((at_s, goal, outage) for at_s, goal, outage in moves), *((at_s, None, None) for at_s in looks)], key=first
    )
    before = 0.0
    for at_s, goal, outage in steps:
        server.advance(at_s)
        ended = [number for number, end in enumerate(server.finished_s) if end <= at_s]
        assert server.running + server.waiting + len(ended) == sum(at <= at_s for at in load.at_s)
        assert server.running <= SERVICE.max_running
        assert before - 1e-6 <= server.served <= load.tokens + 1e-6
        assert server.served >= sum(load.outputs[number] for number in ended) - 1e-6
        before = server.served
        if goal is not None and outage is not None and not server.switching:
            server.switch(goal, outage)
    server.advance(math.inf)
    assert server.idle
    assert server.served == pytest.approx(load.tokens)
    assert all(end > at for end, at in zip(server.finished_s, load.at_s, strict=True))


def first(step: tuple[float, object, object]) -> float:
    """Return when a step is."""
    return step[0]


@given(loads(), MODES)
def test_who_is_served_does_not_depend_on_who_looks(load: Requests, mode: Mode) -> None:
    """Advanced second by second or in one go, the same requests end at the same moments."""
    slowly = Server(SERVICE, load, mode)
    for second in range(60):
        slowly.advance(float(second))
    slowly.advance(math.inf)
    assert slowly.finished_s == pytest.approx(run(SERVICE, load, mode=mode).finished_s)


def test_who_ends_as_another_arrives_has_ended() -> None:
    """However time is cut up, and whatever rounding makes of it: the newcomer's prompt does not hold up who was done."""
    load = requests((0.0, 0, 10), (0.0, 0, 10), (2.0, 100, 10))
    server = Server(flat(10.0, prefill_s=0.01), load, NONE)
    for tenth in range(1, 60):
        server.advance(tenth / 10)
    assert server.finished_s == pytest.approx([2.0, 2.0, 4.0])


@given(loads(), MODES)
def test_no_more_is_served_than_the_rate_allows(load: Requests, mode: Mode) -> None:
    """A load takes no less than its tokens at the mode's best rate and its prompts' reading."""
    server = run(SERVICE, load, mode=mode)
    least = load.tokens / SERVICE.capacity(mode) + sum(load.inputs) * SERVICE.prefill_s
    assert max(server.finished_s) - load.at_s[0] >= least * (1 - 1e-9)
