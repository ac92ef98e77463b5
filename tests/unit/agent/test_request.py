"""Requests cross from an ordinary user to root: written whole or not at all, read without trust, never through a link."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl_agent import inbox
from specctl_agent import request as requests
from specctl_agent.request import Request, RequestError, Result

ID = "0123456789abcdef0123456789abcdef"
OURS = os.getuid()
ASKED = Request(
    id=ID, server="lab", kind=requests.SWITCH, reason="the chain pays", boot="b", at_s=12.5, release="3", algo="dflash"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of requests, which the agent makes itself."""
    found = tmp_path / "requests"
    requests.file_request(found, ASKED)
    return found


def taken(folder: Path, name: str = f"{ID}.json") -> Request:
    """Read one request as the performer does."""
    with inbox.opened(folder, OURS) as box:
        return box.peek(name)


def test_a_request_comes_through_as_it_was(folder: Path) -> None:
    """What was filed is what is read, and only whole files have the name of a request."""
    with inbox.opened(folder, OURS) as box:
        assert box.names() == (f"{ID}.json",)
    assert taken(folder) == ASKED
    assert [path.name for path in folder.iterdir()] == [f"{ID}.json"]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_request_is_withdrawn_once(folder: Path) -> None:
    """What nobody took can be taken back, and then it is gone."""
    assert requests.is_filed(folder, ID)
    assert requests.withdraw(folder, ID)
    assert not requests.withdraw(folder, ID)
    assert not requests.is_filed(folder, ID)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "its format is 2"),
        ({"id": "../../etc/passwd"}, "its id is none"),
        ({"server": "../lab"}, "its server is no name"),
        ({"server": "-lab"}, "its server is no name"),
        ({"release": "../1"}, "its release is no name"),
        ({"kind": "rm"}, "nothing is known of 'rm'"),
        ({"reason": "two\nlines"}, "its reason is no line of text"),
        ({"reason": "x" * 501}, "its reason is no line of text"),
        ({"at_s": "now"}, "at_s is no float"),
        ({"evidence": "words"}, "evidence is no list"),
        ({"boot": None}, "boot is no str"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder: Path, change: dict[str, object], reason: str) -> None:
    """Each field is checked where it comes in."""
    fields = {**json.loads(ASKED.text()), **change}
    (folder / f"{ID}.json").write_text(json.dumps(fields))
    with pytest.raises(RequestError, match=reason):
        taken(folder)


@given(
    st.binary(max_size=300)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_no_content_is_anything_but_a_request_or_a_refusal(content: bytes) -> None:
    """Whatever bytes lie there: read, or refused in words."""
    with pytest.raises(RequestError):
        requests.read_request(content)


def _link(folder: Path) -> None:
    target = folder.parent / "elsewhere"
    target.write_text(ASKED.text())
    (folder / f"{ID}.json").unlink()
    (folder / f"{ID}.json").symlink_to(target)


def _second_name(folder: Path) -> None:
    os.link(folder / f"{ID}.json", folder.parent / "second")


def _pipe(folder: Path) -> None:
    (folder / f"{ID}.json").unlink()
    os.mkfifo(folder / f"{ID}.json")


def _folder(folder: Path) -> None:
    (folder / f"{ID}.json").unlink()
    (folder / f"{ID}.json").mkdir()


def _huge(folder: Path) -> None:
    (folder / f"{ID}.json").write_text(replace(ASKED, reason="x").text() + " " * requests.REQUEST_BYTES)


def _other_name(folder: Path) -> None:
    (folder / f"{ID}.json").write_text(replace(ASKED, id="f" * 32).text())


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_link, "cannot be opened"),
        (_second_name, "is no plain file of its own"),
        (_pipe, "is no plain file of its own"),
        (_folder, "is no plain file of its own"),
        (_huge, "over 8192 bytes"),
        (_other_name, "names another request"),
    ],
)
def test_only_small_plain_files_are_read(folder: Path, spoil: Callable[[Path], None], reason: str) -> None:
    """A link, a second name, a pipe, a folder, a huge file, a file under another's name: refused at once, and removed."""
    spoil(folder)
    with pytest.raises(RequestError, match=reason):
        taken(folder)
    with inbox.opened(folder, OURS) as box:
        box.drop(f"{ID}.json")
        assert box.names() == ()


def test_another_users_file_or_folder_is_refused(folder: Path) -> None:
    """Only what belongs to the agent's user counts, folder and file."""
    with pytest.raises(RequestError, match="belongs to user"):
        inbox.Inbox(folder, OURS + 1)
    if OURS == 0:
        os.chown(folder / f"{ID}.json", 12345, 12345)
        with pytest.raises(RequestError, match="belongs to user 12345"):
            taken(folder)


def test_a_folder_behind_a_link_is_not_opened(folder: Path) -> None:
    """The agent cannot point the performer at another folder."""
    (folder.parent / "linked").symlink_to(folder)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        inbox.Inbox(folder.parent / "linked", OURS)


def test_a_name_that_is_none_is_refused_and_can_be_dropped(folder: Path) -> None:
    """A file of another name does not keep the performer busy for ever."""
    (folder / "x.json").write_text("")
    with inbox.opened(folder, OURS) as box, pytest.raises(RequestError, match=r"'x\.json' is no name of a request"):
        box.peek("x.json")
    with inbox.opened(folder, OURS) as box:
        box.drop("x.json")
        box.drop("x.json")
        assert box.names() == (f"{ID}.json",)


def test_a_result_is_read_back_and_a_broken_one_is_none(tmp_path: Path) -> None:
    """The answer comes through as it was written; what cannot be read is no answer yet."""
    results = tmp_path / "results"
    results.mkdir()
    result = Result(
        id=ID,
        outcome=requests.DONE,
        serving=("3", "dflash"),
        proof="proven",
        evidence=("a line",),
        durations_s={"total": 9.5},
    )
    assert requests.read_result(tmp_path, ID) is None
    (results / f"{ID}.json").write_text(result.text())
    assert requests.read_result(tmp_path, ID) == result
    assert (result.done, result.untouched) == (True, False)
    (results / f"{ID}.json").write_text(result.text()[:20])
    assert requests.read_result(tmp_path, ID) is None


def test_the_performers_lock_is_seen(tmp_path: Path) -> None:
    """At work as long as somebody holds the lock; a lock file that nobody holds says nothing."""
    (tmp_path / "results").mkdir()
    assert not requests.at_work(tmp_path)
    with (tmp_path / "results" / requests.LOCK).open("w") as held:
        assert not requests.at_work(tmp_path)
        fcntl.flock(held, fcntl.LOCK_EX)
        assert requests.at_work(tmp_path)
    assert not requests.at_work(tmp_path)
