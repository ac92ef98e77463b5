"""Wheels become a version of the agent: checked file by file, tried, whole or not at all; over a real session on this machine."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specctl.adapters.session import HostSession
from specctl.errors import SpecctlError
from specctl.host import agent_wheels
from tests.unit.host.conftest import sessions

MAIN = """import sys
def main():
    print('fake agent', sys.argv[1:], [path for path in sys.path if 'site-packages' in path])
    return {status}
"""


def wheel(files: Mapping[str, str], *, record: Mapping[str, str] | None = None) -> bytes:
    """Return a wheel with these files; `record` replaces sums of its RECORD."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        rows = []
        for name, text in files.items():
            made.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{name},{(record or {}).get(name, f'sha256={digest}')},{len(text)}")
        made.writestr("x-1.dist-info/RECORD", "\n".join([*rows, "x-1.dist-info/RECORD,,"]))
    return out.getvalue()


def agent(status: int = 0, more: Mapping[str, str] | None = None) -> bytes:
    """Return a wheel with an agent whose `check` ends with a status."""
    return wheel({"specctl_agent/__init__.py": "", "specctl_agent/main.py": MAIN.format(status=status), **(more or {})})


class Kit:
    """The ops on a prefix of a test's own."""

    def __init__(self, session: HostSession, prefix: Path) -> None:
        self.session = session
        self.prefix = prefix

    def put(
        self, content: bytes, name: str = "x-1-py3-none-any.whl", digest: str | None = None
    ) -> Mapping[str, object]:
        """Bring one wheel."""
        args = {"name": name, "sha256": digest or hashlib.sha256(content).hexdigest()}
        return self.session.call(
            "agent.put", {"prefix": str(self.prefix), **args, "content": base64.b64encode(content).decode()}
        )

    def build(self, content: bytes, version: str = "1", name: str = "x-1-py3-none-any.whl") -> Mapping[str, object]:
        """Make a version of one wheel."""
        self.put(content, name)
        wheels = [{"name": name, "sha256": hashlib.sha256(content).hexdigest()}]
        args = {
            "prefix": str(self.prefix),
            "version": version,
            "release": "0.1",
            "python": sys.executable,
            "wheels": wheels,
        }
        return self.session.call("agent.build", args)

    def versions(self) -> list[str]:
        """Return what lies in the prefix, temporary things included."""
        return sorted(path.name for path in self.prefix.iterdir() if not path.name.startswith((".incoming-", ".lock")))


@pytest.fixture
def kit(session: HostSession, tmp_path: Path) -> Kit:
    """Give the ops on a prefix that is not there yet."""
    return Kit(session, tmp_path / "opt")


def test_a_version_is_built_once_and_runs_from_its_own_folder(kit: Kit) -> None:
    """The agent starts without the host's packages on its path; the same again is nothing to do."""
    content = agent()
    assert kit.build(content) == {"built": True}
    assert kit.build(content) == {"built": False}
    done = subprocess.run(
        [kit.prefix / "1" / "bin" / "specctl-agent", "status"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "fake agent ['status'] []\n"
    note = json.loads((kit.prefix / "1" / "version.json").read_text())
    assert (note["version"], note["release"], note["python"]) == ("1", "0.1", sys.executable)
    assert list((kit.prefix / "1" / "site").rglob("*.pyc"))
    assert kit.versions() == ["1"]


def test_one_that_does_not_start_is_no_version(kit: Kit) -> None:
    """A wheel whose agent fails its own check leaves nothing behind."""
    with pytest.raises(SpecctlError, match="the agent does not start under"):
        kit.build(agent(status=3))
    assert kit.versions() == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (agent(more={"../evil.py": "x"}), "would leave its folder"),
        (agent(more={"/etc/evil": "x"}), "would leave its folder"),
        (agent(more={"a/./b.py": "x"}), "would leave its folder"),
        (
            wheel({"specctl_agent/main.py": "x"}, record={"specctl_agent/main.py": "sha256=AAAA"}),
            "not what its wheel's RECORD says",
        ),
        (
            wheel({"specctl_agent/main.py": "x"}, record={"specctl_agent/main.py": ""}),
            "not what its wheel's RECORD says",
        ),
        (b"PK nonsense", "no wheel that can be read"),
    ],
    ids=["up", "absolute", "dot", "another sum", "no sum", "no zip"],
)
def test_a_wheel_that_is_not_what_it_says_is_refused(kit: Kit, tmp_path: Path, content: bytes, reason: str) -> None:
    """No file leaves the version's folder, and none is taken that RECORD does not vouch for."""
    with pytest.raises(SpecctlError, match=reason):
        kit.build(content)
    assert kit.versions() == []
    assert not list(tmp_path.rglob("evil*"))


def test_a_wheel_that_was_changed_on_its_way_is_refused(kit: Kit) -> None:
    """The sum that the operator sent is checked when the wheel comes, and again when it is unpacked."""
    with pytest.raises(SpecctlError, match="another SHA-256"):
        kit.put(agent(), digest="0" * 64)
    content = agent()
    kit.put(content)
    (came,) = kit.prefix.glob(".incoming-*/x-1-py3-none-any.whl")
    came.write_bytes(b"changed")
    wheels = [{"name": "x-1-py3-none-any.whl", "sha256": hashlib.sha256(content).hexdigest()}]
    args = {"prefix": str(kit.prefix), "version": "1", "release": "1", "python": sys.executable, "wheels": wheels}
    with pytest.raises(SpecctlError, match="another than was sent"):
        kit.session.call("agent.build", args)


@pytest.mark.parametrize("name", ["../x-1-py3-none-any.whl", "x.whl", "x-1-py3-none-any.whl/", ""])
def test_names_that_are_no_wheels_are_refused(kit: Kit, name: str) -> None:
    """A wheel's name cannot lead out of the folder of wheels."""
    with pytest.raises(SpecctlError, match=r"no name of a wheel|is missing"):
        kit.put(agent(), name)


def test_data_and_scripts_of_wheels_stay_out(kit: Kit) -> None:
    """What a wheel would put into a host's bin or share folders is left out; its libraries are taken."""
    more = {"x-1.data/scripts/evil": "x", "x-1.data/data/share/evil": "x", "x-1.data/purelib/kept.py": "x = 1\n"}
    kit.build(agent(more=more))
    site = kit.prefix / "1" / "site"
    assert (site / "kept.py").exists()
    assert not list(site.rglob("evil"))


def test_two_operators_at_once_take_no_wheel_from_each_other(kit: Kit) -> None:
    """Both bring the same wheel; the first has built its version before the second begins, and the second's is built too."""
    content = agent()
    with sessions() as open_one:
        second = Kit(open_one(), kit.prefix)
        kit.put(content)
        second.put(content)
        assert kit.build(content, "1") == second.build(content, "2") == {"built": True}
    assert kit.versions() == ["1", "2"]
    assert not list(kit.prefix.glob(".incoming-*"))


def test_two_operators_at_once_build_one_version_once(kit: Kit) -> None:
    """The same version by both: it is built by one of them, and not taken away under what the other has put beside it since."""
    content = agent()
    with sessions() as open_one, ThreadPoolExecutor(4) as pool:
        kits = [Kit(open_one(), kit.prefix) for _ in range(4)]
        built = [done["built"] for done in pool.map(lambda one: one.build(content), kits)]
    assert (sorted(map(bool, built)), kit.versions()) == ([False, False, False, True], ["1"])
    assert not list(kit.prefix.glob(".incoming-*"))


def test_what_another_operator_has_under_way_is_not_pruned(tmp_path: Path) -> None:
    """Versions that ran once go at once; one that was just built, or is being built, stays until it must have been given up."""
    for name in ("kept", "ran", "built", ".tmp-3.77", ".incoming-78"):
        (tmp_path / name).mkdir()
        if not name.startswith("."):
            (tmp_path / name / "version.json").write_text("{}")
    for name in ("kept", "ran"):
        (tmp_path / name / "units").mkdir()
    (tmp_path / "current").symlink_to("ran")
    assert agent_wheels.prune(str(tmp_path), ["kept"]) == ("ran",)
    for name in ("built", ".tmp-3.77", ".incoming-78"):
        os.utime(tmp_path / name, (1.0, 1.0))
    assert sorted(agent_wheels.prune(str(tmp_path), ["kept"])) == [".incoming-78", ".tmp-3.77", "built"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "kept"]
