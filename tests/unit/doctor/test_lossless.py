"""The judge names what is broken where the evidence decides, and never names another thing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.doctor.lossless import judge, tolerance
from specctl.doctor.lossless_types import Answer, Baseline, Break, History, Pick, Place, Probe
from tests.unit.doctor.probes import RIGHT, WRONG, Sizes, probe

BREAKS = (Break.MASK, Break.POSITION, Break.KV, Break.TARGET)


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("rate", [0.15, 0.25, 0.5])
def test_a_break_is_named(broken: Break, rate: float) -> None:
    """With as many picks as a probe takes, and breaks as frequent as seen, each is named."""
    assert [judge(probe(broken, Sizes(rate=rate), seed=seed)).named for seed in range(20)] == [broken] * 20


@pytest.mark.parametrize("broken", BREAKS)
def test_no_other_thing_is_named(broken: Break) -> None:
    """However few picks and however rare its strikes, hardly anything is named or left open without the break itself."""
    sizes = [Sizes(each=each, rate=rate) for each in (1, 3, 8, 20, 40, 80) for rate in (0.01, 0.05, 0.2, 0.6)]
    found = [judge(probe(broken, size, seed=seed)) for size in sizes for seed in range(8)]
    wrong = [one for one in found if one.wrong]
    missed = [one for one in wrong if broken not in {one.named, *one.candidates} and broken is not Break.TARGET]
    assert len(wrong) > len(found) / 2
    assert len(missed) <= 1
    assert {(one.named, one.candidates) for one in found if not one.wrong} <= {(None, ())}


def test_what_is_right_is_lossless() -> None:
    """Without a wrong pick nothing is named, and all are counted."""
    judged = judge(probe(None))
    assert (judged.checked, judged.wrong, judged.named, judged.candidates, judged.first) == (540, 0, None, (), None)


def test_the_first_wrong_pick_is_told() -> None:
    """The judgement holds the first wrong pick and what the target says instead."""
    judged = judge(probe(Break.KV))
    assert judged.first is not None
    assert (judged.first.said, judged.wanted, judged.first.history) == (WRONG, RIGHT, History.MOVED)
    assert "wrong after a path that had to be moved" in judged.why


def test_a_mask_is_not_named_where_positions_are_not_told() -> None:
    """Nodes placed by their index look like a wrong mask: without recorded positions both are left open."""
    judged = judge(probe(Break.MASK, positions_right=None))
    assert (judged.named, judged.candidates) == (None, (Break.MASK, Break.POSITION))


def test_positions_that_the_trace_has_wrong_are_named() -> None:
    """Positions by index strike where a wrong mask does; the trace tells them apart."""
    assert judge(probe(Break.MASK, positions_right=False)).named is Break.POSITION


def test_too_few_chain_nodes_leave_the_mask_open() -> None:
    """Branch nodes alone prove nothing of the mask while no chain node could have shown wrong positions."""
    whole = probe(Break.MASK)
    few = replace(whole, picks=tuple(pick for pick in whole.picks if pick.place is not Place.CHAIN))
    judged = judge(few)
    assert (judged.named, judged.candidates) == (None, (Break.MASK, Break.POSITION))


def test_too_little_before_a_move_leaves_all_open() -> None:
    """What is wrong after a move proves nothing of the cache where nothing was seen before one."""
    whole = probe(Break.KV)
    late = [pick for pick in whole.picks if pick.history is History.MOVED or pick.place is Place.ROOT]
    judged = judge(replace(whole, picks=tuple(late)))
    assert (judged.named, judged.candidates) == (None, (Break.MASK, Break.POSITION, Break.KV))


def test_near_ties_are_no_faults() -> None:
    """A token that differs where the target's lead is small is a tie, counted apart."""
    judged = judge(probe(Break.MASK, gap=0.1))
    assert (judged.wrong, judged.named) == (0, None)
    assert judged.ties > 0
    assert judge(probe(Break.MASK, gap=1.0)).named is Break.MASK


def test_the_baseline_widens_what_counts_as_a_tie() -> None:
    """Leads that prefills themselves do not repeat, and changes of leads between two, set the limit."""
    assert tolerance(Baseline()) == 0.25
    assert tolerance(Baseline(drift=0.2)) == pytest.approx(0.8)
    assert tolerance(Baseline(widest_gap=0.5)) == 1.0


def test_an_engine_that_does_not_repeat_itself_is_not_judged() -> None:
    """Where the same prefill answered twice differently and no lead is told, nothing is named."""
    judged = judge(replace(probe(Break.MASK), baseline=Baseline(asked=10, changed=1)))
    assert (judged.named, judged.candidates) == (None, tuple(Break))


@pytest.mark.parametrize("broken", BREAKS)
def test_noise_hides_no_break(broken: Break) -> None:
    """On an inexact engine breaks stand out of the share that near-ties turn."""
    found = [judge(probe(broken, Sizes(each=72), seed=seed, noise=0.03, struck=0.005)).named for seed in range(20)]
    assert set(found) <= {broken, None}
    assert found.count(broken) >= 18


def test_noise_alone_raises_nothing() -> None:
    """Near-ties at the rate that was seen on real engines are no break, in 60 probes."""
    judged = [judge(probe(None, Sizes(each=72), seed=seed, noise=0.03, struck=0.01)) for seed in range(60)]
    assert {(one.named, one.candidates) for one in judged} == {(None, ())}


def blind(place: Place, history: History, said: int, count: int) -> Probe:
    """Return picks without nodes."""
    picks = tuple(
        Pick(rid="r", step=at, place=place, history=history, said=said, context=(at, count, said))
        for at in range(count)
    )
    return Probe(picks=picks, answers={pick.context: Answer(token=RIGHT) for pick in picks})


def joined(*probes: Probe) -> Probe:
    """Return the probes as one."""
    answers = {context: answer for one in probes for context, answer in one.answers.items()}
    return Probe(picks=tuple(pick for one in probes for pick in one.picks), answers=answers)


def test_without_a_trace_the_causes_are_narrowed() -> None:
    """Wrong first drafts leave mask and positions open; what is wrong only later leaves the cache open too."""
    roots = blind(Place.ROOT, History.FRESH, RIGHT, 20)
    early = judge(joined(roots, blind(Place.DRAFTED, History.FRESH, WRONG, 9)))
    assert (early.named, early.candidates) == (None, (Break.MASK, Break.POSITION))
    late = joined(roots, blind(Place.DRAFTED, History.FRESH, RIGHT, 9), blind(Place.ROOT, History.AFTER, WRONG, 5))
    assert judge(late).candidates == (Break.KV, Break.MASK, Break.POSITION)
    assert "a verify trace would tell" in judge(late).why


def test_a_chain_needs_no_trace() -> None:
    """Wrong drafts of a chain are wrong positions: there is no mask to be wrong."""
    chain = joined(blind(Place.ROOT, History.FRESH, RIGHT, 20), blind(Place.CHAIN, History.FRESH, WRONG, 9))
    assert judge(chain).named is Break.POSITION


def test_unanswered_picks_are_left_out() -> None:
    """A text that the target was not asked about says nothing."""
    assert judge(replace(probe(Break.TARGET), answers={})).checked == 0
