"""What ran before an experiment comes back, whatever ends it; what is not ours any more is left alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from specctl.adapters.templates import Templates
from specctl.errors import ConnectError, LockHeldError, NoHealthyReleaseError, RemoteCommandError, SpecctlError
from specctl.ops.ab_switch import Bench, Stop, carried
from specctl.ops.contact import Contact
from specctl.ops.reporter import Reporter
from tests.fakes import SERVER

LOST = ConnectError("the connection is lost")
FAILED = RemoteCommandError("an arm did not come up")


@dataclass(slots=True)
class Site:
    """A contact that notes what it is asked, and a way back that may fail."""

    session: str = "one"
    done: list[str] = field(default_factory=list)
    trouble: SpecctlError | None = None

    def reopen(self, session: object) -> None:
        """Note a new connection."""
        self.done.append(f"reopen {session}")

    def call(self, op: str, _server: object, args: object) -> dict[str, object]:
        """Note an op."""
        self.done.append(f"{op} {args}")
        return {}

    def back(self) -> None:
        """Bring back, or fail."""
        if self.trouble is not None:
            raise self.trouble
        self.done.append("back")

    def run(self, work: Callable[[], None], *, told: bool = False) -> tuple[bool, SpecctlError | None]:
        """Do the work of an experiment here."""
        bench = Bench(
            contact=cast(Contact, self), server=SERVER, token=7, reporter=cast(Reporter, None), stop=Stop(), why="x",
            templates=cast(Templates, None),
        )  # fmt: skip
        return carried(bench, work, self.back, told=told)


def failing(error: BaseException) -> Callable[[], None]:
    """Return work that ends so."""

    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "runs", "done"),
    [
        (FAILED, True, ["back"]),
        (LOST, True, ["reopen one", "lease.acquire {'resume': 7}", "back"]),
        (LockHeldError("another has it"), False, []),
        (NoHealthyReleaseError("nothing is left"), False, []),
    ],
)
def test_an_error_is_told_and_what_ran_before_runs(error: SpecctlError, *, runs: bool, done: list[str]) -> None:
    """Where one was lost over a new connection with the old lease; not where the server is another's, or nothing is left."""
    site = Site()
    assert site.run(failing(error)) == (runs, error)
    assert site.done == done


def test_work_that_ends_well_brings_back_too() -> None:
    """The end of an experiment is the same as a failure's, without an error."""
    site = Site()
    assert site.run(lambda: None) == (True, None)
    assert site.done == ["back"]


def test_what_cannot_be_brought_back_is_told_in_place_of_why() -> None:
    """A server that does not run again is graver than what ended the experiment."""
    trouble = RemoteCommandError("the host is full")
    assert Site(trouble=trouble).run(failing(FAILED)) == (False, trouble)


@pytest.mark.parametrize(
    ("error", "told", "done"),
    [
        (KeyError("a fault of ours"), False, ["back"]),
        (KeyError("a fault of ours"), True, ["back"]),
        (KeyboardInterrupt(), True, ["back"]),
        (KeyboardInterrupt(), False, []),
    ],
)
def test_what_nobody_foresaw_brings_back_and_goes_on(error: BaseException, *, told: bool, done: list[str]) -> None:
    """A second Ctrl-C starts nothing any more, and tells a running engine what it ran before."""
    site = Site()
    with pytest.raises(type(error)):
        site.run(failing(error), told=told)
    assert site.done == done
