"""Decide which mode a server should be in: one pure rule for the agent, `specctl simulate` and the benchmark.

The rule is that of a metrical task system over N modes. A mode's regret is what the best mode would be worth per second at the
concurrency at hand, less its own worth; a change costs its seconds of not serving times the pace of serving lately. The *work* of a
mode is what the past would have cost at least, had one ended in it (the work function of Borodin, Linial and Saks, "An optimal
on-line algorithm for metrical task system", J. ACM 39, 1992). The running mode is left once its work is above another's by `most`
prices, or by `least` prices when as much came from gains of more than `large_ratio` (Limits.enough has both by the length of the
change): what is far better is reached soon, what is a little better must stay so for long.

Competitive bound, for prices that do not change. Let d be the dearest price, V the number of different modes that are run, OPT the
least total of regret and prices that any schedule pays when a change costs it `most` times its price. Then the rule pays at most
V (1 + 1/least) (OPT + most d). Proof: while a mode runs, its regret is the rise of its work, for its work meets its cap only where
the rule leaves it; the stays of one mode do not overlap, so that its rises add up to at most its last work, OPT + most d; and all
prices together are at most 1/least times all rises, for a change is made only where it lowers the work of what runs by least times
its price. What the guards forbid, the tolerance, and acts of foresight (each costs its price at most) come on top.
tests/unit/control/test_policy_bound.py holds it against the exact schedule by dynamic programming, adversarial loads included.

Each tick: state = advance(state, view, limits, now); answer = decide(view, state, limits, now). Once an act is done: state =
arrived(state, old, answer, ...); where it failed: failed(...). Where a person resumes: resumed(...).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specctl.control import policy_book
from specctl.control import policy_guard as guards
from specctl.control import policy_words as words
from specctl.control.limits import LONG_S, Limits
from specctl.control.mode import Mode
from specctl.control.objective import Objective
from specctl.control.policy_book import Book
from specctl.control.policy_foresight import Outlook, outlook
from specctl.control.policy_ledger import Ledger
from specctl.control.policy_state import Freeze, State, Trial
from specctl.control.policy_time import aged, elapsed, spending
from specctl.control.policy_trial import Verdict, judged, watched
from specctl.control.policy_types import Act, Decision, Grounds, Hold, Means, Now, Price, SetKnobs, SwitchAlgo, View
from specctl.control.rates import Rates


def advance(state: State, view: View, limits: Limits, now: Now) -> State:
    """Count the time since the last call in, as spent at the view's concurrency; time that cannot be trusted is not counted.

    A gap of more than `stale_s`, another boot and a clock that went back age what must not be forgotten (pauses, the day's changes)
    and leave the sums alone.
    """
    gap = elapsed(state.at, now)
    state = aged(state, gap.seconds, now)
    if view.mode != state.mode:
        state = replace(state, mode=view.mode, dwell_s=0.0, trial=None, gains={})
    if not gap.trusted or gap.seconds > limits.stale_s or guards.forbidden(view, limits) is not None:
        return state
    book = book_of(view, limits)
    if book is None or view.concurrency is None or gap.seconds <= 0:
        return state
    ledger = Ledger(book, state, limits)
    ledger.advance(gap.seconds, view.concurrency)
    since_s = state.since_look_s + gap.seconds
    state = ledger.settled(state, since_look_s=0.0 if since_s >= limits.look_s else since_s)
    return watched(state, view, gap.seconds, limits)


def book_of(view: View, limits: Limits) -> Book | None:
    """Return the worths and prices as the view has them; None where there is no model or the running mode is not known."""
    if view.rates is None or view.mode is None or view.mode not in view.modes:
        return None
    return Book(view.rates, view.objective, view.modes, view.costs, view.mode, limits)


def decide(view: View, state: State, limits: Limits, now: Now, ledger: Ledger | None = None) -> Decision:
    """Say what to do now; `state` has been advanced to now. `ledger`: the state's sums where the caller has them at hand."""
    forbidden = guards.forbidden(view, limits)
    if forbidden is not None:
        return Hold(why=forbidden)
    if view.mode != state.mode:
        return Hold(why=words.not_advanced(view, state))
    if view.pin is not None and view.pin.left_s > 0:
        return _pinned(view)
    book = book_of(view, limits) if ledger is None else ledger.book
    if book is None or view.concurrency is None or book.row(view.concurrency) is None:
        return Hold(why=words.uncalibrated(view))
    verdict = judged(state, limits)
    if verdict is not None and not verdict.shows:
        return _revert(view, state, verdict)
    if state.frozen is not None:
        return Hold(why=words.frozen(state.frozen), until_s=state.frozen.left_s)
    return _weighed(view, state, limits, now, Ledger(book, state, limits) if ledger is None else ledger)


def _weighed(view: View, state: State, limits: Limits, now: Now, ledger: Ledger) -> Decision:
    """Hold the gathered gain and the foreseen one against the price."""
    concurrency = view.concurrency or 0.0
    place = ledger.wants(concurrency)
    if place is None:
        foreseen = _foreseen(view, state, limits, now, ledger)
        return (
            Hold(why=words.waiting(ledger, concurrency), until_s=ledger.quiet_s(concurrency))
            if foreseen is None
            else foreseen
        )
    price = ledger.book.prices[place]
    if price is None:
        return Hold(why=words.waiting(ledger, concurrency))
    mode = ledger.book.modes[place]
    if not _known_there(view, mode, concurrency):
        return Hold(why=words.uncalibrated(view, mode))
    veto = _veto(view, ledger, place, price, limits, now)
    if veto is not None:
        return Hold(why=veto)
    return _allowed(view, state, limits, mode, price, words.gained(ledger, place, concurrency))


def _known_there(view: View, mode: Mode, concurrency: float) -> bool:
    return concurrency <= 0 or (view.rates is not None and view.rates.tokens_s(mode, concurrency) is not None)


def _veto(view: View, ledger: Ledger, place: int, price: Price, limits: Limits, now: Now) -> Grounds | None:
    """Let the history say that a gain will not last; when it was wrong for as much regret as patience allows, it is not asked."""
    worth = ledger.price(place)
    if view.history is None or price.seconds < LONG_S or ledger.excess > limits.most * worth:
        return None
    found = outlook(ledger.book, place, view.history, now.wall_s, limits)
    if found is None or found.gain >= worth:
        return None
    return Grounds(
        rule="history-says-no",
        reason=f"{ledger.book.modes[place]} is ahead, but as these hours were before it would bring less than the change takes",
        inputs={"foreseen_gain": found.gain, "price": worth, "dwell_s": found.dwell_s},
        otherwise="a lead that lasts, or hours unlike those before",
    )


def _foreseen(view: View, state: State, limits: Limits, now: Now, ledger: Ledger) -> Decision | None:
    """Go early where the hours ahead pay for the way there and back; asked once in `look_s`, at a moment that is no dearer."""
    if view.history is None or state.since_look_s > 0:
        return None
    best: tuple[float, int, Outlook] | None = None
    for place, price in enumerate(ledger.book.prices):
        if price is None or price.seconds < LONG_S:
            continue
        found = outlook(ledger.book, place, view.history, now.wall_s, limits)
        if found is None or not found.begun:
            continue
        ways = price.seconds * price.weight * found.pace * (2 if found.back else 1)
        cheap = ledger.price(place) <= price.seconds * price.weight * found.pace
        if cheap and found.gain >= limits.foreseen_prices * ways and (best is None or found.gain - ways > best[0]):
            best = (found.gain - ways, place, found)
    if best is None:
        return None
    mode, price = ledger.book.modes[best[1]], ledger.book.prices[best[1]]
    if price is None or not _known_there(view, mode, view.concurrency or 0.0):
        return None
    why = Grounds(
        rule="foreseen",
        reason=f"{mode} is ahead for the next {best[2].dwell_s / 3600:.1f} h, as these hours were before, and now is cheap",
        inputs={"foreseen_gain": best[2].gain, "price": ledger.price(best[1]), "dwell_s": best[2].dwell_s},
        otherwise="hours ahead that pay for less than both ways",
    )
    return _allowed(view, state, limits, mode, price, why)


def _allowed(view: View, state: State, limits: Limits, mode: Mode, price: Price, why: Grounds) -> Decision:
    bound = guards.unaffordable(view, state, limits, price)
    if bound is not None:
        return Hold(why=bound[0], until_s=bound[1])
    return _act(view, mode, price, why)


def _act(view: View, mode: Mode, price: Price, why: Grounds) -> Act:
    if view.mode is not None and view.mode.algo == mode.algo and price.means is Means.LIVE:
        return SetKnobs(mode=mode, price=price, why=why)
    return SwitchAlgo(mode=mode, price=price, why=why)


def _pinned(view: View) -> Decision:
    """Go where a pin says; dwell, the day's limits and the model have no say, refused means do."""
    pin, running = view.pin, view.mode
    assert pin is not None, "asked only where a pin holds"
    assert running is not None, "the guards have seen to it"
    reason = f"{pin.who or 'somebody'} pinned {pin.mode}: {pin.reason}" if pin.reason else f"{pin.mode} is pinned"
    inputs: Mapping[str, float | str | None] = {"pin": str(pin.mode), "left_s": pin.left_s}
    why = Grounds(rule="pinned", reason=reason, inputs=inputs, otherwise="specctl unpin, or the pin's end")
    if pin.holds(running):
        return Hold(why=why, until_s=pin.left_s)
    for mode in view.modes:
        price = view.costs.price(running, mode) if pin.holds(mode) else None
        if price is None:
            continue
        refusal = view.refused.get(price.means)
        if refusal is None:
            return _act(view, mode, price, why)
        return Hold(why=replace(why, rule="means-refused", reason=f"{reason}, but {refusal}"))
    return Hold(why=replace(why, rule="pin-unreachable", reason=f"{reason}, but there is no way from {running} to it"))


def _revert(view: View, state: State, verdict: Verdict) -> Decision:
    """Go back, once, where the gain did not show; a way that is refused leaves the mode where it is."""
    trial, running = state.trial, view.mode
    assert trial is not None, "a verdict is of a trial"
    assert running is not None, "the guards have seen to it"
    there = trial.old in view.modes and trial.old != running
    price = view.costs.price(running, trial.old) if there else None
    why = Grounds(rule="no-gain", reason=verdict.reason, inputs=verdict.inputs, otherwise="a gain that shows")
    if price is None or not verdict.measured:
        return Hold(why=why)
    refusal = view.refused.get(price.means)
    if refusal is not None:
        return Hold(why=replace(why, rule="means-refused", reason=f"{verdict.reason}; to go back, {refusal}"))
    return _act(view, trial.old, price, why)


def arrived(state: State, old: Mode, act: Act, limits: Limits, now: Now, *, away_s: float) -> State:
    """Return the state once an act is done: a new mode runs, on trial; after a return, and only then, all is frozen.

    `away_s`: what it took. Nothing is counted for that time; the sums go on from where they were.
    """
    state = aged(state, away_s, now)
    rule, frozen = act.why.rule, state.frozen
    if rule == "no-gain":
        frozen = Freeze(reason=act.why.reason, left_s=limits.freeze_s)
    trial = None if rule in {"no-gain", "pinned"} or limits.trial_s == 0 else Trial(old=old)
    spent = spending(state, away_s)
    return replace(state, mode=act.mode, dwell_s=0.0, gains={}, excess=0.0, spent=spent, trial=trial, frozen=frozen)


def failed(state: State, act: Act, reason: str, limits: Limits, now: Now) -> State:
    """Return the state after an act that did not come through: the old mode serves, and nothing more is tried for a while."""
    state = aged(state, 0.0, now)
    frozen = Freeze(reason=f"the change to {act.mode} failed: {reason}", left_s=limits.freeze_s)
    return replace(state, trial=None, spent=spending(state, act.price.seconds), frozen=frozen)


def resumed(state: State) -> State:
    """Return the state once a person lets the agent go on: no freeze, and nothing on trial."""
    return replace(state, frozen=None, trial=None)


def choose(rates: Rates, modes: tuple[Mode, ...], objective: Objective, load: Mapping[float, float]) -> Mode | None:
    """Return the mode to begin with: of most worth for a load, given as seconds at each concurrency; None where none is known.

    A mode counts 0 at a concurrency that nothing is known of. Of equals the first.
    """
    capacities = {each: policy_book.capacity(rates, objective, each) for each in modes}
    best: tuple[float, Mode] | None = None
    for each in modes:
        total = 0.0
        for concurrency, seconds in load.items():
            found = rates.tokens_s(each, concurrency) if concurrency > 0 else None
            if found is not None:
                total += seconds * objective.worth(found.low, concurrency, capacity=capacities[each])
        if total > 0 and (best is None or total > best[0]):
            best = (total, each)
    return None if best is None else best[1]
