"""State survives what disks and power do to it, and what cannot be read is kept, told, and begun anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from specctl_agent.log import ERROR, INFO, WARNING
from specctl_agent.storing import AlreadyRunningError, Complaints, StateFile, only_one
from tests.unit.agent.recorded import Said


@pytest.fixture
def said() -> Said:
    """Give a log."""
    return Said()


@pytest.fixture
def file(tmp_path: Path, said: Said) -> StateFile:
    """Give a state file of format 2."""
    return StateFile(tmp_path / "state.json", 2, Complaints(said), said)


def test_what_was_saved_is_loaded(file: StateFile) -> None:
    """A round trip gives the same, and nothing saved is nothing."""
    assert file.load() == {}
    assert file.save({"a": [1, None, "ü"]})
    assert file.load() == {"a": [1, None, "ü"], "format": 2}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"format": 2, "a"', "it is damaged"),
        (b"\x00" * 100, "it is damaged"),
        (b"[]", "it is damaged"),
        (b'{"a": 1}', "it names no format"),
        (b'{"format": 3, "a": 1}', "a newer agent wrote it (format 3, this one reads 2)"),
        (b'{"format": 2, "a": ' + b"[" * 100_000, "it is damaged"),
    ],
)
def test_what_cannot_be_read_is_kept_aside_and_told(
    tmp_path: Path, file: StateFile, said: Said, content: bytes, reason: str
) -> None:
    """A damaged or newer file is moved, not overwritten; the agent starts clean and a person is told where it lies."""
    (tmp_path / "state.json").write_bytes(content)
    assert file.load() == {}
    assert (tmp_path / "state.json.kept").read_bytes() == content
    assert not (tmp_path / "state.json").exists()
    ((level, event, fields),) = said.events
    assert (level, event, fields["reason"]) == (ERROR, "state-kept-aside", reason)
    assert file.save({"a": 1})
    assert file.load()["a"] == 1


def test_an_older_format_is_read(tmp_path: Path, file: StateFile) -> None:
    """What an older agent wrote is taken up: fields are only ever added."""
    (tmp_path / "state.json").write_text('{"format": 1, "a": 1}')
    assert file.load() == {"format": 1, "a": 1}


def test_a_disk_that_refuses_is_told_once_and_told_well_again(tmp_path: Path, said: Said) -> None:
    """A write that fails leaves what was there, is said once however often it fails, and its end is said once too."""
    folder = tmp_path / "gone"
    file = StateFile(folder / "state.json", 1, Complaints(said), said)
    assert [file.save({}) for _ in range(3)] == [False, False, False]
    folder.mkdir()
    assert file.save({})
    assert [(level, event) for level, event, _ in said.events] == [(WARNING, "trouble"), (INFO, "recovered")]
    assert said.of("trouble") == [{"subject": "state.json", "reason": "cannot be written: No such file or directory"}]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system without a free byte, or skip where none can be made."""
    folder = tmp_path / "full"
    folder.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], check=False).returncode
    ):
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_state_whole(full_disk: Path, said: Said) -> None:
    """On a disk without space a save fails, says why, and what was saved before is still there whole."""
    file = StateFile(full_disk / "state.json", 1, Complaints(said), said)
    assert file.save({"a": "before"})
    assert not file.save({"a": "x" * 200_000})
    assert file.load()["a"] == "before"
    assert said.of("trouble") == [{"subject": "state.json", "reason": "cannot be written: No space left on device"}]
    assert sorted(path.name for path in full_disk.iterdir()) == ["state.json"]


def test_a_kill_at_any_write_leaves_old_or_new(tmp_path: Path) -> None:
    """A process that is killed while it saves over and over leaves a whole state, the old one or the new one."""
    code = (
        "import sys; from pathlib import Path; from specctl_agent.storing import Complaints, StateFile\n"
        "say = lambda *a, **k: None; file = StateFile(Path(sys.argv[1]), 1, Complaints(say), say)\n"
        "print('on', flush=True)\n"
        "n = 0\n"
        "while True: n += 1; file.save({'n': n, 'filler': 'x' * 5000})\n"
    )
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "state.json")],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            for _ in range(20):  # some saves went by before the kill
                os.sched_yield()
            writer.kill()
    path = tmp_path / "state.json"
    if path.exists():
        assert len(json.loads(path.read_text())["filler"]) == 5000


def test_the_second_agent_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    """One folder has one agent, by a lock that ends with its process however that ends; the second is told whose it is."""
    held = only_one(tmp_path)
    with pytest.raises(AlreadyRunningError, match=f"another agent runs on this host \\(process {os.getpid()}\\)"):
        only_one(tmp_path)
    os.close(held)
    os.close(only_one(tmp_path))
