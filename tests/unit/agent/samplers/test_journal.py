"""The log's sampler: news by cursor from a journalctl, or from a file through rotation; bounded, and lost lines are counted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from specctl.control.sample import engine_lines
from specctl.engines._sglang_log import GRAMMAR
from specctl_agent.samplers.journal import EngineLog
from specctl_agent.samplers.journal_source import CHUNK_BYTES, MAX_BYTES, FileSource, JournalSource, News, NoLogError

DECODE = "Decode batch, #running-req: 3, accept len: 2.50, cuda graph: True, #queue-req: 0"
# A journalctl in little: entries are the lines of a file, a cursor is the number of the last one.
PROGRAM = r"""
import sys
path, words = sys.argv[1], sys.argv[2:]
given = dict(word.split("=", 1) for word in words if "=" in word)
lines = open(path).read().splitlines()
first = 0
if "--after-cursor" in given:
    if not given["--after-cursor"].isdigit():
        sys.exit("Failed to seek to cursor: Invalid argument")
    first = int(given["--after-cursor"])
elif "--lines" in given:
    first = max(len(lines) - int(given["--lines"]), 0)
assert given["_SYSTEMD_UNIT"] == "specctl-chat.service" and "--show-cursor" in words
for line in lines[first:]:
    print(line)
if first < len(lines):
    print(f"-- cursor: {len(lines)}")
"""


def source(journal: Path, program: str = PROGRAM) -> JournalSource:
    """Return a source that asks the little journalctl."""
    return JournalSource("specctl-chat.service", program=(sys.executable, "-S", "-c", program, str(journal)))


def add(path: Path, *lines: str) -> None:
    """Append lines."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_the_journal_is_read_from_cursor_to_cursor(tmp_path: Path) -> None:
    """Each look has what came since the one before, and an empty one nothing."""
    journal = tmp_path / "journal"
    add(journal, "one", "two")
    found = source(journal)
    seen = [found.news()]
    add(journal, "three")
    seen += [found.news(), found.news()]
    add(journal, "four")
    seen.append(found.news())
    assert seen == [News(lines=("one", "two")), News(lines=("three",)), News(), News(lines=("four",))]


def test_a_line_that_claims_to_be_a_cursor_is_a_line(tmp_path: Path) -> None:
    """A prompt that gets a cursor into the log moves nothing: only the last line of the answer is one."""
    journal = tmp_path / "journal"
    add(journal, "-- cursor: 0", "one")
    found = source(journal)
    assert found.news() == News(lines=("-- cursor: 0", "one"))
    assert found.news() == News()


def test_a_flood_is_cut_and_told(tmp_path: Path) -> None:
    """More than a look takes is skipped and counted, and the next look begins behind it."""
    journal = tmp_path / "journal"
    add(journal, "first")
    found = source(journal)
    found.news()
    add(journal, *("x" * 100 for _ in range(2 * MAX_BYTES // 100)))
    news = found.news()
    add(journal, "after")
    assert news.lost == 1
    assert set(news.lines) == {"x" * 100}
    assert 0 < sum(map(len, news.lines)) < MAX_BYTES + CHUNK_BYTES
    assert found.news() == News(lines=("after",))


def test_a_journal_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """What journalctl says when it fails is the reason, with the group as the hint."""
    found = source(
        tmp_path / "journal", "import sys; sys.exit('No journal files were opened due to insufficient permissions.')"
    )
    with pytest.raises(NoLogError, match="insufficient permissions") as caught:
        found.news()
    assert "systemd-journal" in str(caught.value.hint)


def test_a_cursor_that_is_refused_is_forgotten(tmp_path: Path) -> None:
    """After a failure the next look begins with the last lines again."""
    journal = tmp_path / "journal"
    add(journal, "one")
    found = source(journal, PROGRAM.replace('{len(lines)}"', 'broken"'))
    assert found.news() == News(lines=("one",))
    with pytest.raises(NoLogError, match="Invalid argument"):
        found.news()
    assert found.news() == News(lines=("one",))


def test_no_journalctl_is_said(tmp_path: Path) -> None:
    """A host without journalctl is an error of the look and not of the agent."""
    with pytest.raises(OSError, match="no-such-program"):
        JournalSource("x.service", program=(str(tmp_path / "no-such-program"),)).news()


def test_bars_and_bytes_become_lines(tmp_path: Path) -> None:
    """A carriage return ends a line, and bytes that are no text do not end the look."""
    path = tmp_path / "log"
    path.write_bytes(b"10%\r20%\rdone\n\xff\xfe\n\n")
    assert FileSource(path).news().lines == ("10%", "20%", "done", "��")


def test_a_file_is_followed_line_by_line(tmp_path: Path) -> None:
    """A line without its end waits for it."""
    path = tmp_path / "log"
    path.write_text("one\ntw")
    found = FileSource(path)
    seen = [found.news().lines]
    with path.open("a") as file:
        file.write("o\n")
    seen.append(found.news().lines)
    assert seen == [("one",), ("two",)]


def test_a_rotated_file_is_read_to_its_end(tmp_path: Path) -> None:
    """What stood in the old file behind the last look, and then the new one; nothing twice."""
    path = tmp_path / "log"
    add(path, "one")
    found = FileSource(path)
    seen = [found.news()]
    add(path, "two")
    path.rename(tmp_path / "log.1")
    add(path, "three")
    seen += [found.news(), found.news()]
    assert seen == [News(lines=("one",)), News(lines=("two", "three")), News()]


def test_a_file_that_was_rotated_away_is_lost_and_told(tmp_path: Path) -> None:
    """With the old file gone, what stood in it is counted as lost."""
    path = tmp_path / "log"
    add(path, "one")
    found = FileSource(path)
    found.news()
    new = tmp_path / "new"
    add(new, "two")
    new.replace(path)
    assert found.news() == News(lines=("two",), lost=1)


def test_a_file_that_was_emptied_begins_anew(tmp_path: Path) -> None:
    """A file cut to nothing under its name is read from its beginning."""
    path = tmp_path / "log"
    add(path, "one", "two")
    found = FileSource(path)
    found.news()
    os.truncate(path, 0)
    add(path, "new")
    assert found.news() == News(lines=("new",))


def test_a_large_file_costs_a_bounded_look(tmp_path: Path) -> None:
    """Of megabytes at once the newest are read, and the rest counted as lost."""
    path = tmp_path / "log"
    path.write_text("")
    found = FileSource(path)
    found.news()
    path.write_text("y" * 99 + "\n")
    with path.open("a") as file:
        file.write(("x" * 99 + "\n") * (3 * MAX_BYTES // 100))
    news = found.news()
    assert news.lost == 1
    assert sum(map(len, news.lines)) <= MAX_BYTES
    assert set(news.lines[1:]) == {"x" * 99}


def test_a_missing_file_is_an_error_of_the_look(tmp_path: Path) -> None:
    """No file yet: the look fails, and a later one succeeds."""
    found = FileSource(tmp_path / "log")
    with pytest.raises(FileNotFoundError):
        found.news()
    add(tmp_path / "log", "one")
    assert found.news() == News(lines=("one",))


def test_the_sampler_counts_over_its_looks(tmp_path: Path) -> None:
    """Decode lines of two looks add up, and the newest is kept as figures."""
    path = tmp_path / "log"
    add(path, DECODE, DECODE)
    sampler = EngineLog(FileSource(path), engine_lines.reader(GRAMMAR, None))
    sampler.sample()
    add(path, DECODE.replace("2.50", "3.25"))
    found = sampler.sample()
    sampler.close()
    assert found.decode_lines == 3
    assert found.last_decode is not None
    assert found.last_decode.accept_length == 3.25
