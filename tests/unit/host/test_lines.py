"""Log lines from journal and files into a bounded queue."""

from __future__ import annotations

import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from specctl.host import journal, logfile
from specctl.host.lines import QUEUE_LINES, LineQueue, split
from tests.unit.host.conftest import until


def _queue() -> LineQueue:
    return LineQueue(lambda: None)


def test_progress_updates_are_lines_of_their_own() -> None:
    """Carriage returns separate; empty pieces and trailing blanks go; a line over 1 MB is cut."""
    assert split("a\rb  \r\n\r\nc") == ["a", "b", "c"]
    assert [len(line) for line in split("x" * (3 << 20))] == [1 << 20]


def test_a_full_queue_drops_the_oldest_and_says_so() -> None:
    """Never more than so many lines; the newest stay; the loss is told once."""
    queue = _queue()
    queue.push([str(number) for number in range(QUEUE_LINES + 3)])
    first, lost = queue.take(2, 1000)
    _, again = queue.take(1, 1000)
    assert (first, lost, again) == (["3", "4"], True, False)


def test_journal_messages_of_bytes_are_text() -> None:
    """A message with control characters comes as a list of bytes: it is decoded and split."""
    entry = json.dumps({"MESSAGE": list("0%\r50%\rü".encode()), "__CURSOR": "c"}).encode()
    assert journal.parse(entry) == (["0%", "50%", "ü"], "c")


@given(st.binary(max_size=200) | st.from_type(type(None)).map(lambda _: b'{"MESSAGE": null}'))
def test_no_journal_entry_is_a_traceback(entry: bytes) -> None:
    """Whatever the journal prints, lines come out or none."""
    lines, mark = journal.parse(entry)
    assert all(isinstance(line, str) for line in lines)
    assert mark is None or isinstance(mark, str)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=4), max_leaves=8
    )
)
def test_no_message_is_a_traceback(message: object) -> None:
    """Whatever a message holds (numbers over 255, nested lists), lines come out or none."""
    lines, _ = journal.parse(json.dumps({"MESSAGE": message}).encode())
    assert all(isinstance(line, str) for line in lines)


def test_an_endless_entry_is_skipped_and_told() -> None:
    """An entry over the limit is given up, the next one is whole; memory stays bounded."""
    pipe = io.BufferedReader(io.BytesIO(b"x" * 300_000 + b"\nshort\n"))
    assert list(journal.entries(pipe, limit=100_000)) == [None, b"short"]


@given(st.lists(st.binary(max_size=20), max_size=12))
def test_pieces_give_each_line_once(parts: list[bytes]) -> None:
    """However the bytes are cut into reads, the whole lines are those of the joined bytes."""
    pieces = logfile.Pieces()
    found = [line for part in [*parts, b"\n"] for line in pieces.add(part)]
    assert found == split((b"".join(parts) + b"\n").decode("utf-8", "replace"))


def test_a_log_is_followed_through_rotation(tmp_path: Path) -> None:
    """Lines before and after a rename or a truncation all come, in order, from the mark on."""
    path = tmp_path / "log"
    path.write_text("before the mark\n")
    queue, seen = _queue(), list[str]()
    source = logfile.FileSource(str(path), logfile.mark(str(path)))
    source.start(queue)

    def came(line: str) -> bool:
        seen.extend(queue.take(100, 10_000)[0])
        return line in seen

    with path.open("a") as log:
        log.write("one\n")
    until(lambda: came("one"), "the first line")
    path.rename(tmp_path / "log.1")
    path.write_text("two\n")
    until(lambda: came("two"), "the line after rotation")
    path.write_text("3\n")
    until(lambda: came("3"), "the line after truncation")
    source.stop()
    assert seen == ["one", "two", "3"]


def test_a_mark_in_a_rotated_file_is_found(tmp_path: Path) -> None:
    """A watch that begins after the rotation still gives the lines from the mark on."""
    path = tmp_path / "log"
    path.write_text("old\n")
    place = logfile.mark(str(path))
    with path.open("a") as log:
        log.write("of this start\n")
    path.rename(tmp_path / "log.1")
    path.write_text("newest\n")
    queue, seen = _queue(), list[str]()
    source = logfile.FileSource(str(path), place)
    source.start(queue)

    def came() -> bool:
        seen.extend(queue.take(100, 10_000)[0])
        return "newest" in seen

    until(came, "the newest line")
    source.stop()
    assert seen == ["of this start", "newest"]


def test_tail_gives_the_last_lines(tmp_path: Path) -> None:
    """The last lines in order; none of a log that is not there; none when none are asked for."""
    path = tmp_path / "log"
    path.write_text("a\nb\rc\nd\n")
    assert logfile.tail(str(path), 2) == ["c", "d"]
    assert logfile.tail(str(path), 0) == []
    assert logfile.tail(str(tmp_path / "absent"), 5) == []
