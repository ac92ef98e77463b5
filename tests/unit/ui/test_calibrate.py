"""What a person reads of a calibration, at 80 columns, wide and narrow; nothing measured is nothing made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.control.crossovers import Answer, Crossover, Stretch, Verdict
from specctl.control.objective import Metric
from specctl.ui import calibrate as views
from specctl.ui.theme import console
from tests.unit.measure.calibrate_studies import EMPTY, measured
from tests.unit.measure.sweep_worlds import CHAIN, NONE, TREES


def text(view: object, width: int) -> str:
    """Return what a terminal of that width shows."""
    out = console(width=width)
    with out.capture() as captured:
        out.print(view)
    return captured.get()


def test_a_result_is_read_in_one_screen() -> None:
    """Modes by number, a row a concurrency, then who is best where, crossovers and verdicts; nothing wider than 80."""
    shown = text(views.result_view(measured(), width=80), 80)
    lines = shown.splitlines()
    assert lines[0] == "gpu1 · lab · lab 0.5.23 · 8× NVIDIA H200 · 98 segments, 16 min"
    assert max(map(len, lines)) <= 80
    assert "  best        from 1 to 5   ddtree" in shown
    assert "ddtree → dflash: between" in shown
    assert "  trees       pays at 1, 4, 5" in shown


def test_a_narrow_terminal_loses_errors_and_no_figure() -> None:
    """At 40 columns the means stand without what they may be off by."""
    wide, narrow = (text(views.result_view(measured(), width=width), width) for width in (100, 40))
    assert "±" in wide.split("AT ONCE")[1].split("highest")[0]
    assert "±" not in narrow.split("AT ONCE")[1].split("highest")[0]


def test_both_objectives_show_their_figure() -> None:
    """Latency shows what one request gets, throughput what all get."""
    study = measured()
    all_of_them = replace(study, ask=replace(study.ask, metric=Metric.THROUGHPUT))
    assert "tok/s of one request" in text(views.result_view(study, width=100), 100)
    assert "tok/s of all requests" in text(views.result_view(all_of_them, width=100), 100)


def test_nothing_measured_is_said() -> None:
    """No row, no crossover, no verdict."""
    shown = text(views.result_view(EMPTY, width=80), 80)
    assert "nothing was measured" in shown
    assert "pays" not in shown


def words_of(each: Stretch | Crossover) -> str:
    """Return a conclusion's words with the names of the study."""
    if isinstance(each, Stretch):
        return views.stretch_text(each, EMPTY.names)
    return views.crossover_text(each, EMPTY.names)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (words_of(Stretch(low=1, high=4, modes=(CHAIN,), decided=True)), "from 1 to 4   dflash"),
        (
            words_of(Stretch(low=8, high=8, modes=(CHAIN, NONE), decided=True)),
            "at 8   no difference that matters: dflash, none",
        ),
        (
            words_of(Stretch(low=8, high=8, modes=(CHAIN, NONE), decided=False)),
            "at 8   not decided: measure longer (dflash, none)",
        ),
        (
            words_of(Stretch(low=8, high=8, modes=(CHAIN,), decided=False)),
            "at 8   not decided: measure longer",
        ),
        (
            words_of(Crossover(before=(TREES[1],), after=(CHAIN, NONE), low=4, high=8, at=5.62)),
            "ddtree → dflash or none: between 4 and 8, about 5.6",
        ),
        (
            words_of(Crossover(before=(CHAIN,), after=(NONE,), low=4, high=8)),
            "dflash → none: between 4 and 8",
        ),
        (views.verdict_text(Verdict(answer=Answer.NEVER)), "never pays here, at no concurrency that was measured"),
        (views.verdict_text(Verdict(answer=Answer.PAYS, at=(1, 2), open=(4,))), "pays at 1, 2; not decided at 4"),
        (views.verdict_text(Verdict(answer=Answer.OPEN, open=(4, 8))), "not decided at 4, 8: measure longer"),
    ],
)
def test_each_conclusion_has_its_words(said: str, words: str) -> None:
    """In plain words, with the concurrencies that they are about."""
    assert said == words


def test_a_plan_says_what_it_does_and_costs() -> None:
    """Modes, concurrencies, what is sent, how the mode is changed, how long, and what is to be known before."""
    shown = text(views.plan_view(EMPTY, 1800.0, None, ("2 requests of others run",), "c.json", width=80), 80)
    assert "2  dflash:block_size=8   (runs now)" in shown
    assert "1, 4, 16, 64 requests at once" in shown
    assert "the running engine is told each mode" in shown
    assert "30 min at most" in shown
    assert "2 requests of others run" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert all(line.startswith(("gpu1", "  ")) for line in shown.splitlines() if line)
    restarts = replace(EMPTY, question=replace(EMPTY.question, by_mode=True))
    assert "about 7 restarts (8 min each)" in text(
        views.plan_view(restarts, 1800.0, 480.0, (), "c.json", width=100), 100
    )
    assert "no load of this host is on record" in text(
        views.plan_view(restarts, 1800.0, None, (), "c.json", width=100), 100
    )
