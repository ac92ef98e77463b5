"""The sweep, held against machines whose truth is known: what it says holds, and it keeps its time."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest

from specctl.control.crossovers import Answer
from specctl.measure.chance import seeded
from specctl.measure.sweep import Place, Question, Segment, grid
from specctl.measure.sweep_found import found
from specctl.measure.sweep_next import next_block
from tests.examples import examples
from tests.unit.measure.sweep_worlds import CHAIN, MODES, NONE, TREES, Machine, Truth, truth

QUESTION = Question(modes=MODES, grid=grid(1, 64, 4), segment_s=10.0)
LIMIT_S = 900.0
CROSSING = Truth(fixed_s=0.02, packed_s=3e-4, knee=64, accept={NONE: 1.0, CHAIN: 3.0, TREES[1]: 4.0})
THREE = replace(QUESTION, modes=(NONE, CHAIN, TREES[1]))


def machine(seed: int, *, noise: float = 0.02, drift: float = 0.1, world: Truth | None = None) -> Machine:
    """Return a machine by chance."""
    chance = seeded(seed)
    return Machine(truth=world or truth(chance), chance=chance, noise=noise, drift=drift, jitter=0.3, segment_s=10.0)


@pytest.mark.parametrize(("noise", "drift"), [(0.02, 0.1), (0.05, 1.0)])
def test_a_crossover_holds_the_truth(noise: float, drift: float) -> None:
    """At either end of a crossover the true best mode is among those named: at least 95 % of the time, drift or not."""
    count, right = 0, 0
    for seed in range(examples(12)):
        one = machine(seed, noise=noise, drift=drift)
        segments = one.swept(QUESTION, LIMIT_S)
        for each in found(QUESTION, segments).crossovers:
            count += 1
            low, high = one.truth.best(MODES, each.low), one.truth.best(MODES, each.high)
            right += low in each.before and high in each.after
            assert each.at is None or each.low <= each.at <= each.high
    assert count >= 5
    assert right >= 0.95 * count


def test_verdicts_on_trees_hold() -> None:
    """Where trees are said to pay they lead in truth, and where never, no tree leads by more than what counts as level."""
    told: Counter[Answer] = Counter()
    for seed in range(examples(12)):
        one = machine(seed)
        said = found(QUESTION, one.swept(QUESTION, LIMIT_S)).trees
        assert said is not None
        told[said.answer] += 1
        for at in QUESTION.grid if said.answer is Answer.NEVER else said.at:
            tree = max(one.truth.rate(mode, at) for mode in TREES)
            other = max(one.truth.rate(mode, at) for mode in (NONE, CHAIN))
            if said.answer is Answer.NEVER:
                assert tree < other * (1 + QUESTION.level_ratio)
            else:
                assert tree > other
    assert told[Answer.PAYS]


def test_a_tree_that_never_pays_is_said_to() -> None:
    """A tree that checks more and accepts no more never pays, and the sweep says so; drafts pay all the same."""
    world = Truth(fixed_s=0.02, packed_s=1e-4, knee=0, accept={NONE: 1.0, CHAIN: 3.0, TREES[1]: 3.0})
    said = found(THREE, machine(1, noise=0.01, world=world).swept(THREE, LIMIT_S))
    assert said.trees is not None
    assert said.drafts is not None
    assert (said.trees.answer, said.drafts.answer) == (Answer.NEVER, Answer.PAYS)


def test_without_time_nothing_is_decided() -> None:
    """Two noisy rounds leave all open, and that is what is said."""
    world = Truth(fixed_s=0.02, packed_s=0, knee=0, accept={NONE: 1.0, CHAIN: 1.02, TREES[1]: 1.04})
    said = found(THREE, machine(2, noise=0.1, world=world).swept(THREE, 250.0))
    assert said.trees is not None
    assert said.trees.answer is Answer.OPEN
    assert said.crossovers == ()
    assert set(said.open) == set(THREE.grid)


@pytest.mark.parametrize("by_mode", [False, True])
def test_the_limit_is_kept_to_one_segment(by_mode: bool) -> None:
    """However segments stretch, what was spent goes beyond the limit by less than one of them."""
    for seed in range(examples(5)):
        one = machine(seed)
        one.switch_s = 100.0 if by_mode else 0.0
        question = replace(QUESTION, switch_s=one.switch_s, by_mode=by_mode)
        one.swept(question, limit_s := 1500.0)
        assert one.now_s <= limit_s + 1.3 * one.segment_s + one.switch_s
        assert one.served


def test_nothing_is_measured_outside_of_what_was_asked() -> None:
    """No concurrency beyond the grid's ends, no mode that was not asked for, and none that is worse for certain goes on."""
    one = machine(3)
    segments = one.swept(QUESTION, LIMIT_S)
    assert {each.place.mode for each in segments} <= set(MODES)
    assert {each.place.concurrency for each in segments} <= set(range(1, 65))
    spent = Counter(each.place.mode for each in segments)
    assert spent[NONE] < max(spent.values())


def test_a_round_turns_its_order() -> None:
    """Each order of modes at a concurrency is followed by its reverse, so that no mode is always the last."""
    segments = machine(4).swept(THREE, LIMIT_S)
    first, second = (
        [each.place.mode for each in segments if each.round == number] for number in _rounds(segments, 1)[:2]
    )
    assert first == second[::-1]


def _rounds(segments: list[Segment], at: int) -> list[int]:
    return sorted({each.round for each in segments if each.place.concurrency == at})


def test_a_linear_drift_is_no_advantage() -> None:
    """Two modes that serve alike are never told apart on a machine that loses half of its speed in the hour."""
    same = Truth(fixed_s=0.02, packed_s=0, knee=0, accept={NONE: 2.0, CHAIN: 2.0})
    question = replace(QUESTION, modes=(NONE, CHAIN))
    wrong = 0
    for seed in range(examples(12)):
        one = Machine(truth=same, chance=seeded(seed), noise=0.01, segment_s=10.0, drift=0.0)
        one.drift, one.now_s = 0.7, 0.0
        wrong += sum(len(each.contenders) < 2 for each in found(question, one.swept(question, LIMIT_S)).orders.values())
    assert wrong <= 1 + 0.05 * examples(12) * len(question.grid)


def test_a_stretch_with_a_change_is_narrowed() -> None:
    """Between two concurrencies with other best modes one is added; the crossover ends within less than the grid's step."""
    said = found(THREE, machine(5, noise=0.005, world=CROSSING).swept(THREE, 3600.0))
    (first, *_) = said.crossovers
    assert first.high / first.low < 4
    assert set(said.orders) > set(THREE.grid)


def test_changes_of_mode_are_paid_once_a_pass() -> None:
    """Where a change of mode is a restart, a pass goes through the concurrencies mode by mode, and the next one backwards."""
    question = replace(THREE, by_mode=True, switch_s=300.0)
    one = machine(6)
    one.switch_s = 300.0
    served = [each.place.mode for each in one.swept(question, 7200.0)]
    assert [mode for mode, _ in itertools.groupby(served)][:5] == [NONE, CHAIN, TREES[1], CHAIN, NONE]


def test_a_sweep_goes_on_from_what_was_measured() -> None:
    """What an interrupted sweep measured is not measured again: the survey is whole after as many rounds as without a break."""
    half = machine(7).swept(THREE, 130.0)
    rest = machine(8).swept(THREE, 130.0, before=half)
    assert rest[: len(half)] == half
    assert all(len(_rounds(rest, at)) <= 3 for at in THREE.grid)


def test_spoiled_segments_do_not_count() -> None:
    """A segment that something else disturbed is in no mean; where all are, nothing is known, and the survey ends all the same."""
    one = machine(9)
    good = one.swept(THREE, 300.0)
    assert found(THREE, [replace(each, spoiled="other requests ran") for each in good]).orders == {}
    spoiled: list[Segment] = []
    while (block := next_block(THREE, spoiled, 1e9)) is not None:
        spoiled += [replace(one.measure(place, block.number), spoiled="other requests ran") for place in block.places]
    assert all(len(_rounds(spoiled, at)) == 6 for at in THREE.grid)


@pytest.mark.parametrize(
    "wrong",
    [
        {"modes": (NONE,)},
        {"modes": (NONE, NONE)},
        {"grid": ()},
        {"grid": (4, 2)},
        {"grid": (0, 4)},
        {"grid": (1, 5000)},
    ],
)
def test_what_cannot_be_asked_is_refused(wrong: dict[str, tuple[int, ...]]) -> None:
    """One mode alone, concurrencies out of order or of range."""
    with pytest.raises(ValueError, match=r"modes|concurrencies|requests"):
        replace(QUESTION, **wrong)  # type: ignore[arg-type]  # one wrong value at a time


def test_a_grid_has_both_ends() -> None:
    """Steps by a ratio, the end whatever it is."""
    assert (grid(1, 64, 4), grid(3, 50, 2), grid(8, 8, 2)) == ((1, 4, 16, 64), (3, 6, 12, 24, 48, 50), (8,))


def test_a_mean_tells_its_error() -> None:
    """The error of a point falls with its segments, and has what rounds differ by."""
    rates = {NONE: (10.0, 20.0, 10.0, 20.0), CHAIN: (20.2, 40.0, 20.0, 40.2)}
    segments = [
        Segment(place=Place(mode=mode, concurrency=1), round=number, tokens_s=rate, took_s=1.0)
        for mode, row in rates.items()
        for number, rate in enumerate(row)
    ]
    (order,) = found(replace(QUESTION, modes=(NONE, CHAIN)), segments).orders.values()
    assert order.contenders == (CHAIN,)
    error = order.means[CHAIN].error
    assert error is not None
    assert 0.15 < error / order.means[CHAIN].tokens_s < 0.25
