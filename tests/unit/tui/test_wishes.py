"""An act in its own thread: it asks once, hears one answer, and whatever goes wrong in it is told, never raised."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest
from rich.text import Text

from specctl.errors import ConnectError, UsageError
from specctl.ops.deploy import Request, Rollout
from specctl.ops.prepare import Prepared
from specctl.rollout.outcome import Outcome
from specctl.rollout.record import Act
from specctl.tui.performing import OpsPerformer, Pair
from specctl.tui.wishes import Deed, Errand, Phase, Talk, Wish
from tests.fakes import HOST, SERVER

WISH = Wish(deed=Deed.SWITCH, host="gpu1", server="chat", algo="ddtree")
SOON_S = 10.0


@dataclass(slots=True)
class Asks:
    """A performer that asks, and does what `then` does."""

    then: Callable[[Talk], str] = lambda _talk: "done"
    heard: list[bool] = field(default_factory=list)

    def algos(self, host: str, server: str) -> Sequence[str]:
        return ()

    def perform(self, wish: Wish, talk: Talk) -> str:
        self.heard.append(talk.confirm([Text(str(wish))]))
        return self.then(talk) if self.heard[-1] else "nothing was changed"


def asked(performer: Asks, **settings: float) -> Errand:
    """Return an errand that has asked its question."""
    errand = Errand(WISH, performer, **settings)
    errand.start()
    waiting = threading.Event()
    for _ in range(1000):
        if errand.phase is not Phase.PLANNING:
            break
        waiting.wait(0.01)
    return errand


def test_a_yes_lets_it_act() -> None:
    """After a yes it runs and ends; a later no changes nothing."""
    performer = Asks()
    errand = asked(performer)
    errand.answer(yes=True)
    errand.answer(yes=False)
    assert errand.join(SOON_S)
    assert (performer.heard, errand.phase, errand.end) == ([True], Phase.DONE, "done")


def test_a_no_leaves_all_as_it_is() -> None:
    """After a no nothing is done, and a later yes changes nothing."""
    performer = Asks()
    errand = asked(performer)
    errand.answer(yes=False)
    errand.answer(yes=True)
    assert errand.join(SOON_S)
    assert (performer.heard, errand.phase) == ([False], Phase.DECLINED)


def test_an_answer_before_the_question_is_none() -> None:
    """A yes that comes before the plan is there is not a yes to it."""
    performer = Asks()
    errand = Errand(WISH, performer, answer_s=0.05)
    errand.answer(yes=True)
    errand.start()
    assert errand.join(SOON_S)
    assert (performer.heard, errand.phase) == ([False], Phase.DECLINED)


def test_nobody_who_answers_is_a_no() -> None:
    """A question that nobody answers in time is answered with no."""
    performer = Asks()
    errand = Errand(WISH, performer, answer_s=0.02)
    errand.start()
    assert errand.join(SOON_S)
    assert (performer.heard, errand.phase) == ([False], Phase.DECLINED)


def test_what_goes_wrong_is_told() -> None:
    """An error keeps its hint, and a bug becomes an error that says so: the screen stays."""

    def fails(_talk: Talk) -> str:
        raise ConnectError("it is gone", hint="ssh gpu1 true", host="gpu1")

    def breaks(_talk: Talk) -> str:
        raise ZeroDivisionError

    for then, said in ((fails, "gpu1: it is gone"), (breaks, "a bug in specctl: ZeroDivisionError: ")):
        errand = asked(Asks(then=then))
        errand.answer(yes=True)
        assert errand.join(SOON_S)
        assert (errand.phase, str(errand.error)) == (Phase.FAILED, said)


def test_progress_is_one_line_each() -> None:
    """What is said of steps steers no terminal and takes no second line; the last thing said is the brief."""

    def tells(talk: Talk) -> str:
        talk.final("gpu1", "drain", "2 → 0\n")
        talk.step("gpu1", "stop", "\x1b[31mport")
        return "done"

    errand = asked(Asks(then=tells))
    errand.answer(yes=True)
    assert errand.join(SOON_S)
    assert (errand.said, errand.now) == ((("drain", "2 → 0 "),), ("stop", "\\x1b[31mport"))


def test_interrupting_needs_a_running_act() -> None:
    """There is nothing to interrupt while it asks, or when it is over."""
    undone: list[bool] = []
    errand = asked(Asks(then=lambda _talk: "done"))
    errand.undo_by(lambda: undone.append(True))
    assert errand.interrupt() is False
    errand.answer(yes=True)
    assert errand.join(SOON_S)
    assert (errand.interrupt(), undone) == (False, [])


@dataclass(slots=True)
class Rolls:
    """Plans nothing but the outcomes that it is given, and notes what was asked for."""

    failed: tuple[Outcome, ...] = ()
    asked: list[tuple[tuple[Pair, ...], Request]] = field(default_factory=list)

    def __call__(
        self, selected: Sequence[Pair], request: Request, *, make_ready: Callable[..., Prepared]
    ) -> AbstractContextManager[Rollout]:
        self.asked.append((tuple(selected), request))
        assert callable(make_ready)
        return self._rollout(selected, request)

    @contextmanager
    def _rollout(self, selected: Sequence[Pair], request: Request) -> Iterator[Rollout]:
        stop = threading.Event()
        yield Rollout(request=request, selected=selected, prepared=(), failed=self.failed, interrupted=stop)


@dataclass(slots=True)
class Never:
    """A talk to which nothing may be put: whatever is asked here would be acted on."""

    def confirm(self, plan: Sequence[Text]) -> bool:
        raise AssertionError(plan)

    def undo_by(self, undo: Callable[[], None]) -> None:
        raise AssertionError(undo)

    def step(self, host: str, name: str, text: str) -> None:
        raise AssertionError(text)

    def gate(self, host: str, state: object) -> None:
        raise AssertionError(state)

    def final(self, host: str, name: str, text: str) -> None:
        raise AssertionError(text)


@pytest.mark.parametrize(("deed", "act"), [(Deed.SWITCH, Act.SWITCH), (Deed.ROLLBACK, Act.ROLLBACK)])
def test_one_server_is_planned_and_no_other(deed: Deed, act: Act) -> None:
    """A switch or rollback is planned for the one server that was named; where nothing is to be done, nobody is asked."""
    rolls = Rolls()
    performer = OpsPerformer([(HOST, SERVER)], rolls)
    algo = "ddtree" if deed is Deed.SWITCH else None
    said = performer.perform(Wish(deed=deed, host="gpu1", server="chat", algo=algo), Never())
    assert said.startswith("nothing to do")
    assert rolls.asked == [(((HOST, SERVER),), Request(act=act, algo=algo))]


def test_a_plan_that_fails_is_the_error() -> None:
    """Where no plan can be made its error is what comes of it, and nobody is asked."""
    refused = UsageError("server chat is not deployed", hint="specctl deploy --host gpu1", host="gpu1")
    rolls = Rolls(failed=(Outcome(host="gpu1", server="chat", error=refused),))
    with pytest.raises(UsageError, match="is not deployed"):
        OpsPerformer([(HOST, SERVER)], rolls).perform(WISH, Never())


@pytest.mark.parametrize(
    "wish",
    [
        Wish(deed=Deed.SWITCH, host="other", server="chat", algo="ddtree"),
        Wish(deed=Deed.SWITCH, host="gpu1", server="chat", algo="[red]"),
        Wish(deed=Deed.PIN, host="gpu1", server="chat", mode="dflash", duration="soon", reason="x"),
        Wish(deed=Deed.PIN, host="gpu1", server="chat", mode="ddtree:tree_budget=x", duration="6h", reason="x"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_host(wish: Wish) -> None:
    """A server outside the selection, an algo, a mode or a time that there is not, reach no host and ask nobody."""
    rolls = Rolls()
    with pytest.raises(UsageError):
        OpsPerformer([(HOST, SERVER)], rolls).perform(wish, Never())
    assert rolls.asked == []


def test_algos_are_those_of_the_server() -> None:
    """What is offered is what the server's profile has and its models allow; of a stranger nothing."""
    performer = OpsPerformer([(HOST, SERVER)], Rolls())
    assert (performer.algos("gpu1", "chat"), performer.algos("gpu1", "x")) == (("none", "dflash", "ddtree"), ())
