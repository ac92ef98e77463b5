"""Releases on a host: whole or not there, checked against their manifests, never pruned while they matter."""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from specctl.adapters.session import HostSession
from specctl.errors import RemoteCommandError, SpecctlError
from specctl.host import lease, releases
from tests.unit.host.conftest import release_args

ALL = 10_000
MEMORY = Path("/dev/shm")
KILL_AT = Path(__file__).with_name("kill_at.py")
TEXT = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"


def _manager(unit_dir: Path) -> dict[str, object]:
    return {"kind": "systemd", "unit": "specctl-k26.service", "unit_dir": str(unit_dir)}


@dataclass(slots=True)
class Attempts:
    """Writes and activates releases in processes that die at a given change to the file system."""

    worker: subprocess.Popen[str]
    folder: Path
    unit_dir: Path
    token: int

    def make(self, release: str, changes: int) -> int:
        """Try it; returns the process's exit status, -9 when it was killed."""
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        args = {"dir": str(self.folder), "id": release, "algo": "none", "token": self.token}
        given = {
            "changes": changes,
            "write": release_args(self.folder, release, {"none.service": TEXT + release}, self.token),
            "activate": {**args, "manager": _manager(self.unit_dir)},
        }
        self.worker.stdin.write(json.dumps(given) + "\n")
        self.worker.stdin.flush()
        return int(self.worker.stdout.readline())


@pytest.fixture
def attempts() -> Iterator[Attempts]:
    """A lease on a server in memory (hundreds of fsyncs), and a process to make attempts."""
    argv = [sys.executable, "-S", str(KILL_AT)]
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place,
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker,
    ):
        folder, unit_dir = Path(place) / "k26", Path(place) / "units"
        unit_dir.mkdir()
        token = lease.acquire(str(folder), owner="ann", reason=None, ttl_s=None, steal=False).token
        yield Attempts(worker, folder, unit_dir, token)
        assert worker.stdin is not None
        worker.stdin.close()


def test_current_is_whole_after_a_kill_at_any_change(attempts: Attempts) -> None:
    """Killed at each single change to the file system, `current` names a whole release, and the next attempt succeeds."""
    folder, unit = attempts.folder, attempts.unit_dir / "specctl-k26.service"
    assert attempts.make("1", ALL) == 0
    seen: set[str] = set()
    for changes in range(1, 100):
        release = str(changes + 1)
        status = attempts.make(release, changes)
        named = releases.pointed(str(folder))
        assert named is not None
        assert releases.damage(str(folder), named.id) == []
        assert (folder / "current").read_text() == TEXT + named.id
        assert unit.read_text() in (TEXT + named.id, TEXT + release)
        seen.add("before" if named.id != release else "after")
        if status == 0:
            break
        assert status == -signal.SIGKILL
        assert attempts.make(release, ALL) == 0
        assert not [path for path in folder.rglob(".tmp-*") if path.is_dir()]
    assert status == 0
    assert changes > 10
    assert seen == {"before", "after"}
    assert (attempts.unit_dir / "multi-user.target.wants" / unit.name).readlink() == unit


def test_a_release_is_written_with_modes_and_manifest(session: HostSession, folder: Path, token: int) -> None:
    """Files have the modes asked for, secrets 0600, and the whole verifies; the same again changes nothing."""
    args = release_args(folder, "1", {"none.service": "plain"}, token)
    seal = hmac.new(b"salt", b"KEY=s3cret", hashlib.sha256).hexdigest()
    args["files"] = [*args["files"], {"name": "env", "mode": 0o600, "content": "KEY=s3cret"}]  # type: ignore[misc]  # a list
    args["manifest"] = {**args["manifest"], "secrets": {"env": seal}}  # type: ignore[dict-item]  # a mapping
    first = session.call("release.write", args)
    again = session.call("release.write", args)
    place = folder / "releases" / "1"
    modes = {path.name: path.stat().st_mode & 0o777 for path in place.iterdir()}
    assert (first["written"], again["written"]) == (True, False)
    assert modes == {"none.service": 0o644, "env": 0o600, "manifest.json": 0o600}
    assert session.call("release.verify", {"dir": str(folder), "id": "1"}) == {"whole": True, "problems": []}
    read = session.call("release.read", {"dir": str(folder), "id": "1"})
    assert (read["files"], read["secrets"]) == ({"none.service": "plain"}, ["env"])


def test_another_release_of_the_same_id_is_refused(session: HostSession, folder: Path, token: int) -> None:
    """An id is never given another content."""
    session.call("release.write", release_args(folder, "1", {"none.service": "one"}, token))
    with pytest.raises(RemoteCommandError, match="is there already and is another one"):
        session.call("release.write", release_args(folder, "1", {"none.service": "two"}, token))
    assert (folder / "releases" / "1" / "none.service").read_text() == "one"


@pytest.mark.parametrize("change", ["edit", "remove", "manifest"])
def test_a_damaged_release_is_found_and_not_activated(
    session: HostSession, folder: Path, token: int, tmp_path: Path, change: str
) -> None:
    """An edited or missing file, or a missing manifest, is named; such a release cannot be activated."""
    session.call("release.write", release_args(folder, "1", {"none.service": "one"}, token))
    target = folder / "releases" / "1" / ("manifest.json" if change == "manifest" else "none.service")
    if change == "edit":
        target.write_text("other")
    else:
        target.unlink()
    verified = session.call("release.verify", {"dir": str(folder), "id": "1"})
    assert verified["whole"] is False
    with pytest.raises(RemoteCommandError):
        session.call(
            "release.activate",
            {"dir": str(folder), "id": "1", "algo": "none", "manager": _manager(tmp_path), "token": token},
        )
    assert not (folder / "current").is_symlink()


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/passwd",
        ".hidden",
        "a/../b",
        "a//b",
        "a/.b",
        "a/",
        "b/" * 8 + "c",
        "",
        "manifest.json",
        "x" * 200,
    ],
)
def test_names_cannot_leave_their_folder(session: HostSession, folder: Path, token: int, name: str) -> None:
    """A file or release named out of its folder is refused, and nothing is written."""
    args = release_args(folder, "1", {"none.service": "one"}, token)
    args["files"] = [{"name": name, "content": "x"}]
    with pytest.raises(SpecctlError):
        session.call("release.write", args)
    if name != "manifest.json":
        with pytest.raises(SpecctlError):
            session.call("release.write", {**release_args(folder, "1", {"a": "b"}, token), "id": name})
    assert list((folder / "releases").iterdir()) == [] if (folder / "releases").exists() else True


def test_a_failed_write_leaves_nothing(session: HostSession, folder: Path, token: int) -> None:
    """When a file cannot be written the error is plain and the half-written folder is gone."""
    args = release_args(folder, "1", {"none.service": "one"}, token)
    args["files"] = [*args["files"], {"name": "x", "content": "y", "owner": "no-such-user"}]  # type: ignore[misc]  # a list
    with pytest.raises(SpecctlError, match="there is no user no-such-user"):
        session.call("release.write", args)
    assert list((folder / "releases").iterdir()) == []


def test_prune_spares_current_previous_and_pinned(session: HostSession, folder: Path, token: int) -> None:
    """Only old releases go: not the current one, nor the one before it, nor a pinned one, nor the newest."""
    for number in range(1, 12):
        session.call("release.write", release_args(folder, str(number), {"none.service": str(number)}, token))
    (folder / "current").symlink_to("releases/2/none.service")
    (folder / "previous").symlink_to("releases/3/none.service")
    args = {"dir": str(folder), "keep": 2, "pinned": ["5"], "token": token}
    assert session.call("release.prune", args) == {
        "removed": ["1", "4", "6", "7", "8", "9"],
        "kept": ["2", "3", "5", "10", "11"],
    }
    listed = session.call("release.list", {"dir": str(folder)})
    assert (listed["current"], listed["previous"]) == ({"id": "2", "algo": "none"}, {"id": "3", "algo": "none"})


def test_a_plugins_files_lie_in_folders_that_anybody_may_read(session: HostSession, folder: Path, token: int) -> None:
    """An engine of another user finds them; they are held to the manifest like the rest, and not sent back as text."""
    files = {
        "none.service": "one",
        "plugins/pack/__init__.py": "two",
        "plugins/pack/a.py": "",
        "plugins/pack-1.dist-info/METADATA": "x",
    }
    session.call("release.write", release_args(folder, "1", files, token))
    home = folder / "releases" / "1" / "plugins" / "pack"
    assert (home / "__init__.py").read_text() == "two"
    assert [path.stat().st_mode & 0o777 for path in (home.parent, home)] == [0o755, 0o755]
    assert list(session.call("release.read", {"dir": str(folder), "id": "1"})["files"]) == ["none.service"]  # type: ignore[call-overload]  # a mapping in JSON
    (home / "a.py").write_text("changed")
    verified = session.call("release.verify", {"dir": str(folder), "id": "1"})
    assert verified["problems"] == ["plugins/pack/a.py differs from the manifest"]
