"""A whole bench on a small engine on this machine: kept level by level, and ended where the engine changes under it."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import pytest

from specctl.adapters import runs
from specctl.errors import ConnectError, UsageError
from specctl.measure.bench import Bench, Measured, Subject
from specctl.ops import bench as benches
from specctl.ops.bench import Step, measure
from specctl.ops.bench_reach import Ready
from specctl.ops.bench_wish import Options, wish
from specctl.ops.contact import Contact, contact
from tests import fakes
from tests.unit.ops.engines import SmallEngine

ASKED = Options(concurrency="1,2", tokens=6, runs=2, rounds=2, seed=1, prompts="code", note="a remark")


@dataclass(slots=True)
class Seen:
    """What a bench told while it ran."""

    steps: list[Step] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    cancel: threading.Event = field(default_factory=threading.Event)

    def tell(self, bench: Bench, level: Measured) -> None:
        """Note a level that is whole."""
        self.levels.append(level.name)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Contact]:
    """Yield a contact to this machine, where measurements are kept in a folder of the test's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    reached = contact(replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path)))
    yield reached
    reached.close()


def ready(here: Contact, engine: SmallEngine) -> Ready:
    """Return an engine that can be measured, as it is now."""
    known = Subject(host="local", server="chat", profile="test-engine", mode="none", engine_seed=engine.seed)
    return Ready(contact=here, client=engine.client, subject=known, wish=wish(ASKED))


def measured(one: Ready, seen: Seen) -> Bench:
    """Measure."""
    return measure(one, show=seen.steps.append, tell=seen.tell, warn=seen.warnings.append, cancel=seen.cancel)


def test_every_level_is_measured_told_and_kept(here: Contact) -> None:
    """Two levels of two runs: each is told when it is whole, all is kept, and what is kept is what was returned."""
    seen = Seen()
    with SmallEngine() as engine:
        found = measured(ready(here, engine), seen)
    assert (found.stopped, found.note, seen.levels, seen.warnings) == (None, "a remark", ["1", "2"], [])
    assert [(level.concurrency, len(level.runs)) for level in found.levels] == [(1, 2), (2, 2)]
    assert benches.read("last") == found
    shares = [step.share for step in seen.steps]
    assert shares[-1] == 1.0
    assert {(step.number, step.run) for step in seen.steps} == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_no_two_requests_of_a_bench_begin_alike(here: Contact) -> None:
    """Over all its runs and levels every prompt has a salt of its own."""
    with SmallEngine() as engine:
        measured(ready(here, engine), Seen())
        salts = [each["text"].split("\n", 1)[0] for each in engine.asked]
    assert len(set(salts)) == len(salts)


def test_an_engine_that_was_started_anew_ends_the_bench(here: Contact) -> None:
    """Figures of two starts are not mixed: the level under way is dropped, the one before is kept."""
    seen = Seen()
    with SmallEngine() as engine:
        one = ready(here, engine)

        def restarted(bench: Bench, level: Measured) -> None:
            engine.seed += 1

        found = measure(one, show=seen.steps.append, tell=restarted, warn=seen.warnings.append, cancel=seen.cancel)
    assert found.stopped == "the engine was started anew meanwhile"
    assert [level.name for level in found.levels] == ["1"]
    assert benches.read("last") == found


def test_another_mode_ends_the_bench_and_nothing_is_kept_of_nothing(here: Contact) -> None:
    """A mode that is not the one of the beginning ends a bench; one without a whole level leaves no file."""
    with SmallEngine() as engine:
        one = ready(here, engine)
        found = measured(replace(one, subject=replace(one.subject, mode="dflash")), Seen())
    assert found.stopped == "the engine went from dflash to none meanwhile"
    assert (found.levels, benches.listing()) == ((), ((), ()))


def test_an_engine_that_serves_no_more_ends_the_bench(here: Contact) -> None:
    """When request after request fails, the run counts for nothing and no other one is begun."""
    seen = Seen()
    with SmallEngine(lambda asked: 503) as engine:
        found = measured(ready(here, engine), seen)
    assert found.stopped is not None
    assert found.stopped.startswith("request after request failed: status 503")
    assert found.levels == ()
    assert {(step.number, step.run) for step in seen.steps} == {(1, 1)}


def test_a_host_that_is_lost_keeps_what_is_whole(here: Contact) -> None:
    """An error that ends a bench leaves the levels that are whole, with why, and says where; of nothing it leaves nothing."""
    seen = Seen()

    def lost(*_: object) -> None:
        raise ConnectError("the connection was lost", host="local")

    with SmallEngine() as engine:
        one = ready(here, engine)
        with pytest.raises(ConnectError):
            measure(one, show=seen.steps.append, tell=lost, warn=seen.warnings.append, cancel=seen.cancel)
        kept = benches.read("last")
        assert (kept.stopped, [level.name for level in kept.levels]) == ("the connection was lost", ["1"])
        assert seen.warnings == [f"kept as {kept.id}, as far as it is whole"]
        runs.forget(kept.id)
        with pytest.raises(ConnectError):
            measure(one, show=lost, tell=seen.tell, warn=seen.warnings.append, cancel=seen.cancel)
    assert (benches.listing(), len(seen.warnings)) == (((), ()), 1)


def test_interrupt_keeps_what_is_whole(here: Contact) -> None:
    """Ctrl-C after the first level: it is kept, the second one is not begun to the end."""
    seen = Seen()
    with SmallEngine() as engine:
        found = measure(
            ready(here, engine),
            show=seen.steps.append,
            tell=lambda bench, level: seen.cancel.set(),
            warn=seen.warnings.append,
            cancel=seen.cancel,
        )
    assert (found.stopped, [level.name for level in found.levels]) == ("interrupted", ["1"])
    assert benches.read("last").stopped == "interrupted"


def test_a_disk_that_fails_in_between_ends_nothing(here: Contact) -> None:
    """What cannot be kept any more is warned of, and all that was measured is returned to be shown."""
    seen = Seen()

    def spoil(bench: Bench, level: Measured) -> None:
        shutil.rmtree(runs.folder(), ignore_errors=True)
        runs.folder().write_text("in the way")

    with SmallEngine() as engine:
        one = ready(here, engine)
        found = measure(one, show=seen.steps.append, tell=spoil, warn=seen.warnings.append, cancel=seen.cancel)
    assert [level.name for level in found.levels] == ["1", "2"]
    assert len(seen.warnings) == 2
    assert all("could not be kept" in words for words in seen.warnings)


def test_nowhere_to_keep_is_told_before_anything_is_sent(here: Contact) -> None:
    """Where nothing can be kept from the beginning, no load is sent."""
    runs.folder().parent.mkdir(parents=True)
    runs.folder().write_text("in the way")
    with SmallEngine() as engine:
        with pytest.raises(UsageError, match="could not be kept"):
            measured(ready(here, engine), Seen())
        assert engine.asked == []
