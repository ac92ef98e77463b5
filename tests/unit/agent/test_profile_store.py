"""The profile's file: written in one step, read back, kept aside when it is none, and given up on a disk that takes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specctl.control import profile_codec
from specctl.control.mode import mode
from specctl.control.profile import ConcurrencyProfile, observe
from specctl.control.sample.engine import Activity, DecodeSums, EngineSample
from specctl_agent.profile_store import KEPT_ASIDE, ProfileStore

ROOT = Path(__file__).parents[3]
PROFILE = observe(
    ConcurrencyProfile(),
    EngineSample(
        at_s=1.0,
        span_s=2.0,
        activity=Activity.ACTIVE,
        running=4,
        waiting=1,
        mode=mode("dflash", {"block_size": 8}),
        decoded=DecodeSums(steps=50.0, requests=200.0, busy_s=0.5, request_busy_s=2.0, tokens=400.0),
    ),
    1_795_996_800.0,
)


def test_a_profile_is_read_back(tmp_path: Path) -> None:
    """What was saved is loaded, and the folder holds nothing else."""
    store = ProfileStore(tmp_path / "profile.json")
    assert store.save(PROFILE) is None
    loaded = store.load()
    assert (loaded.profile, loaded.said) == (PROFILE, None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["profile.json"]


def test_no_file_is_a_clean_beginning(tmp_path: Path) -> None:
    """The first start has nothing to say."""
    loaded = ProfileStore(tmp_path / "profile.json").load()
    assert (loaded.profile, loaded.said) == (ConcurrencyProfile(), None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\x00" * 4096,
        b"[" * 100_000,
        b'{"version": 1}',
        b" " * (profile_codec.MAX_BYTES + 1),
        json.dumps({**profile_codec.to_json(PROFILE), "version": 2}).encode(),
        json.dumps(profile_codec.to_json(PROFILE)).encode()[:-40],
    ],
    ids=["empty", "open", "zeros", "deep", "bare", "large", "newer", "half"],
)
def test_what_is_no_profile_is_kept_aside(tmp_path: Path, content: bytes) -> None:
    """A corrupt, half or newer file is renamed as it is, and said; a clean profile is begun in its place."""
    path = tmp_path / "profile.json"
    path.write_bytes(content)
    store = ProfileStore(path)
    loaded = store.load()
    assert loaded.profile == ConcurrencyProfile()
    assert "kept as profile.json.aside-1" in str(loaded.said)
    assert (tmp_path / "profile.json.aside-1").read_bytes() == content
    assert store.load().said is None


def test_a_few_are_kept_aside(tmp_path: Path) -> None:
    """Of many corrupt files the newest are kept."""
    path = tmp_path / "profile.json"
    for number in range(KEPT_ASIDE + 3):
        path.write_text(f"corrupt {number}")
        ProfileStore(path).load()
    kept = {entry.name: entry.read_text() for entry in tmp_path.iterdir()}
    assert kept == {f"profile.json.aside-{number + 1}": f"corrupt {number}" for number in range(3, KEPT_ASIDE + 3)}


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A folder in the file's place: a clean profile in memory, and the reason."""
    (tmp_path / "profile.json").mkdir()
    loaded = ProfileStore(tmp_path / "profile.json").load()
    assert loaded.profile == ConcurrencyProfile()
    assert "cannot be read" in str(loaded.said)


def test_a_disk_that_takes_nothing_is_said(tmp_path: Path) -> None:
    """No folder to write to: the reason comes back, nothing is raised, and a later save succeeds."""
    store = ProfileStore(tmp_path / "gone" / "profile.json")
    assert "cannot be written" in str(store.save(PROFILE))
    (tmp_path / "gone").mkdir()
    assert store.save(PROFILE) is None


WRITER = """
import resource, signal, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from specctl_agent.profile_store import ProfileStore
from specctl.control.profile import ConcurrencyProfile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(ProfileStore(Path(sys.argv[1])).save(ConcurrencyProfile()))
"""


def test_a_full_disk_leaves_the_file_before(tmp_path: Path) -> None:
    """A disk that is full in the middle of a write: said, the last whole profile stays, and no half file is left."""
    path = tmp_path / "profile.json"
    ProfileStore(path).save(PROFILE)
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(path), str(ROOT), str(ROOT / "agents")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "cannot be written" in done.stdout
    assert ProfileStore(path).load().profile == PROFILE
    assert [entry.name for entry in tmp_path.iterdir()] == ["profile.json"]


KILLED = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from specctl_agent.profile_store import ProfileStore
from specctl.control import profile_codec
store = ProfileStore(Path(sys.argv[1]))
profile = store.load().profile
print("ready", flush=True)
while True:
    store.save(profile)
"""


def test_a_kill_in_the_middle_leaves_a_whole_file(tmp_path: Path) -> None:
    """Killed at any moment of writing over and over, the file is the profile, before or after."""
    path = tmp_path / "profile.json"
    ProfileStore(path).save(PROFILE)
    for delay_lines in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(ROOT), str(ROOT / "agents")], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            before = path.stat().st_ino
            while path.exists() and path.stat().st_ino == before:
                os.sched_yield()
            writer.send_signal(signal.SIGKILL)
        assert ProfileStore(path).load().profile == PROFILE, delay_lines
