"""Intents are on the disk before anything is done, bounded, and read back whatever a crash or a full disk left of them."""

from __future__ import annotations

import json
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specctl_agent.actuators import Cost, IntentError
from specctl_agent.intent import KEPT_ENDED, MOST_BYTES, Intents
from tests.agentworld import DDTREE, DFLASH


def opened(folder: Path) -> Intents:
    """Open the journal as a newly started agent does."""
    return Intents(folder / "intents.jsonl", boot="b1", wall=lambda: 5.0)


def test_what_was_begun_is_known_after_a_restart(tmp_path: Path) -> None:
    """Server, cost, modes, reason, boot and every step with its facts come back; what has ended is not open."""
    journal = opened(tmp_path)
    errand = journal.begin("lab", Cost.RESTART, DDTREE, DFLASH, "the chain pays")
    errand.mark("taken off", {"by": "hooks", "facts": {"n": 1}})
    other = journal.begin("lab", Cost.LIVE, DFLASH, DDTREE, "and back")
    journal.end(other.id, "done")
    (found,) = opened(tmp_path).open_ones("lab")
    assert (found.id, found.server, found.cost, found.old, found.new) == (
        errand.id,
        "lab",
        Cost.RESTART,
        DDTREE,
        DFLASH,
    )
    assert (found.reason, found.boot, found.outcome) == ("the chain pays", "b1", None)
    assert found.steps == (("taken off", {"by": "hooks", "facts": {"n": 1}}),)
    assert found.facts_of("taken off") == {"by": "hooks", "facts": {"n": 1}}
    assert found.facts_of("back") is None
    assert opened(tmp_path).open_ones("other") == ()


def test_a_torn_line_is_no_step_and_takes_no_other_with_it(tmp_path: Path) -> None:
    """A crash in the middle of a line: what stood before is known, and what comes after is read."""
    journal = opened(tmp_path)
    errand = journal.begin("lab", Cost.LIVE, DDTREE, DFLASH, "why")
    path = tmp_path / "intents.jsonl"
    with path.open("ab") as file:
        file.write(b'{"id": "' + errand.id.encode() + b'", "step": "tell')
    again = opened(tmp_path)
    again.mark(errand.id, "telling")
    (found,) = opened(tmp_path).open_ones("lab")
    assert found.steps == (("telling", {}),)


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff", b"[]\n7\nnull\n", b'{"step": "begun"}\n', b'{"id": "x", "step": "ended"}\n']
)
def test_a_damaged_journal_has_no_intents(tmp_path: Path, content: bytes) -> None:
    """Whatever lies there, the agent starts, and can write on."""
    (tmp_path / "intents.jsonl").write_bytes(content)
    journal = opened(tmp_path)
    assert journal.all == ()
    journal.begin("lab", Cost.LIVE, DDTREE, DFLASH, "why")
    assert len(opened(tmp_path).open_ones("lab")) == 1


def test_nothing_is_begun_that_cannot_be_written(tmp_path: Path) -> None:
    """A journal that cannot be written refuses, and has no intent either."""
    journal = Intents(tmp_path / "no" / "intents.jsonl", boot="b1", wall=lambda: 5.0)
    with pytest.raises(IntentError, match="cannot be written: No such file or directory"):
        journal.begin("lab", Cost.LIVE, DDTREE, DFLASH, "why")
    assert journal.all == ()


def test_the_journal_stays_bounded_and_keeps_what_is_open(tmp_path: Path) -> None:
    """Thousands of switches later it is short, the oldest open intent is there still, and the newest ends are."""
    journal = opened(tmp_path)
    kept = journal.begin("lab", Cost.RESTART, DDTREE, DFLASH, "open for ever")
    path = tmp_path / "intents.jsonl"
    filler = {"facts": "x" * 20_000}
    for _ in range(60):
        errand = journal.begin("lab", Cost.LIVE, DDTREE, DFLASH, "why")
        errand.mark("telling", filler)
        journal.end(errand.id, "done")
    assert path.stat().st_size < 2 * MOST_BYTES + 50 * 20_000
    again = opened(tmp_path)
    assert [intent.id for intent in again.open_ones("lab")] == [kept.id]
    assert len(again.all) <= 1 + KEPT_ENDED + 1


def test_no_step_of_another_server_is_lost_while_the_journal_is_shortened(tmp_path: Path) -> None:
    """Servers act at the same time: what one of them has begun stays on the disk while another one's end shortens the journal."""
    journal = opened(tmp_path)
    filler = {"facts": "x" * (MOST_BYTES // 16)}

    def act(server: str) -> list[str]:
        left_open = []
        for turn in range(30):
            errand = journal.begin(server, Cost.LIVE, DDTREE, DFLASH, "why")
            if turn % 3:
                left_open.append(errand.id)
            else:
                errand.mark("telling", filler)
                journal.end(errand.id, "done")
        return left_open

    names = [f"lab{number}" for number in range(4)]
    with ThreadPoolExecutor(len(names)) as pool:
        begun = dict(zip(names, pool.map(act, names), strict=True))
    again = opened(tmp_path)
    assert {name: [intent.id for intent in again.open_ones(name)] for name in names} == begun


def test_a_step_that_is_not_whole_on_the_disk_was_not_written(tmp_path: Path) -> None:
    """A disk that fills in the middle of a line takes a part of it and calls that well: the step counts as refused all the same."""
    journal = opened(tmp_path)
    errand = journal.begin("lab", Cost.LIVE, DDTREE, DFLASH, "why")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "intents.jsonl").stat().st_size + 20, limits[1]))
    try:
        with pytest.raises(IntentError, match="cannot be written"):
            errand.mark("telling", {"changes": {}})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert journal.open_ones("lab")[0].steps == ()


def test_a_journal_that_cannot_be_read_stops_no_agent(tmp_path: Path) -> None:
    """A folder in its place, another user's file: the agent starts, says so, and begins nothing that it cannot write down."""
    (tmp_path / "intents.jsonl").mkdir()
    journal = opened(tmp_path)
    assert journal.unread == "cannot be read: Is a directory; what was begun before is not known"
    with pytest.raises(IntentError, match="Is a directory"):
        journal.begin("lab", Cost.LIVE, DDTREE, DFLASH, "why")


def test_each_step_is_one_synced_line(tmp_path: Path) -> None:
    """A step is whole in the file when `mark` returns."""
    journal = opened(tmp_path)
    errand = journal.begin("lab", Cost.LIVE, DDTREE, DFLASH, "why")
    errand.mark("telling", {"changes": {"a": 1}})
    rows = [json.loads(line) for line in (tmp_path / "intents.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == ["begun", "telling"]
    assert rows[1]["facts"] == {"changes": {"a": 1}}
    assert (tmp_path / "intents.jsonl").stat().st_mode & 0o777 & ~0o640 == 0
