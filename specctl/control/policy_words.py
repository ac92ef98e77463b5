"""The grounds of a decision in words: what held, the figures, and what would have had to differ."""

from __future__ import annotations

from typing import assert_never

from specctl.control.mode import Mode
from specctl.control.objective import Metric
from specctl.control.policy_ledger import Ledger
from specctl.control.policy_state import Freeze, State
from specctl.control.policy_types import Grounds, View

CALIBRATE = "specctl calibrate, or a calibration file that covers this concurrency"


def not_advanced(view: View, state: State) -> Grounds:
    """Say that the sums are of another mode."""
    return Grounds(
        rule="input-missing",
        reason=f"the sums are of {state.mode}, and {view.mode} runs since a moment ago",
        otherwise="the next look",
    )


def uncalibrated(view: View, mode: Mode | None = None) -> Grounds:
    """Say that nothing is known of a mode at the load at hand."""
    at = "" if view.concurrency is None else f" at {view.concurrency:g} requests"
    return Grounds(
        rule="calibrate-first",
        reason=f"calibrate first: nothing is known of {mode or view.mode}{at}",
        inputs={"mode": str(mode or view.mode), "concurrency": view.concurrency},
        otherwise=CALIBRATE,
    )


def frozen(freeze: Freeze) -> Grounds:
    """Say why all is frozen, and for how long yet."""
    return Grounds(
        rule="frozen",
        reason=f"frozen for {freeze.left_s / 3600:.1f} h more: {freeze.reason}",
        inputs={"left_s": freeze.left_s},
        otherwise="specctl agent resume, or the end of the freeze",
    )


def gained(ledger: Ledger, place: int, concurrency: float) -> Grounds:
    """Say what a change was earned with."""
    ahead, price = ledger.advantage(place), ledger.price(place)
    return Grounds(
        rule="gain",
        reason=f"{_gain(ledger, place, ahead)} of late, and the change costs {figure(price)}",
        inputs=_figures(ledger, place, concurrency),
        otherwise=f"a gathered gain of less than {figure(ledger.needed(place))} tokens",
    )


def waiting(ledger: Ledger, concurrency: float) -> Grounds:
    """Say how far the best other mode is from earning a change."""
    place = ledger.nearest()
    if place is None:
        return Grounds(
            rule="no-other-mode",
            reason="there is no other mode that this server could go to",
            inputs={"concurrency": concurrency},
            otherwise="releases, live knobs or known load times of another mode",
        )
    other, needed, ahead = ledger.book.modes[place], ledger.needed(place), ledger.advantage(place)
    running = ledger.book.modes[ledger.running]
    if ahead <= 0:
        reason = f"{running} is the best of late"
    else:
        reason = f"{_gain(ledger, place, ahead)} of late, {figure(needed)} are wanted"
    return Grounds(
        rule="gain-too-small",
        reason=reason,
        inputs=_figures(ledger, place, concurrency),
        otherwise=f"{other} {figure(needed - ahead)} tokens further ahead"
        if needed > ahead
        else f"{other} ahead at all",
    )


def _gain(ledger: Ledger, place: int, tokens: float) -> str:
    """Say what a mode would have given beyond the running one; worths are tokens, of a request or of the server."""
    mode = ledger.book.modes[place]
    match ledger.book.objective.metric:
        case Metric.LATENCY:
            return f"{mode} would have given each request {figure(tokens)} tokens more"
        case Metric.THROUGHPUT:
            return f"{mode} would have served {figure(tokens)} tokens more"
    assert_never(ledger.book.objective.metric)


def figure(value: float) -> str:
    """Return a number as people read it: three figures, whole from a hundred on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _figures(ledger: Ledger, place: int, concurrency: float) -> dict[str, float | str | None]:
    row = ledger.book.row(concurrency)
    return {
        "concurrency": concurrency,
        "other": str(ledger.book.modes[place]),
        "gathered": ledger.advantage(place),
        "of_large_gains": ledger.gains[place],
        "price": ledger.price(place),
        "worth_now": None if row is None else row.own,
        "worth_now_other": None if row is None else row.worths[place],
    }
