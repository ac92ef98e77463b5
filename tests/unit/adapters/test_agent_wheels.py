"""The agent's wheels on the operator's side: specctl's own from a checkout or an installation, its libraries by their lock."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from specctl.adapters import agent_wheels
from specctl.errors import UnsupportedError, UsageError
from specctl.rollout.wheel_tags import Interpreter, distribution

DEBIAN = Interpreter(path="/usr/bin/python3", version=(3, 11), machine="x86_64", glibc=(2, 36))
OWN = "import sys; from pathlib import Path; from specctl.adapters import agent_wheels; print(agent_wheels.own(Path(sys.argv[1])))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout, as an install does."""
    folder = tmp_path_factory.mktemp("built")
    return folder / agent_wheels.own(folder)


def contents(wheel: Path) -> dict[str, bytes]:
    """Return every file of a wheel but its RECORD."""
    with zipfile.ZipFile(wheel) as opened:
        return {
            name: opened.read(name)
            for name in opened.namelist()
            if not name.endswith("/RECORD") and not name.endswith("/")
        }


@pytest.mark.slow
def test_a_checkout_builds_its_wheel_with_the_agent_in_it(built: Path) -> None:
    """The wheel is of this very version, holds specctl and the agent, and comes out the same twice."""
    assert distribution(built.name) == (agent_wheels.NAME, agent_wheels.version())
    names = set(contents(built))
    assert {"specctl_agent/main.py", "specctl_agent/samplers/nvml.py", "specctl/control/policy.py"} <= names
    again = built.parent / "again"
    again.mkdir()
    agent_wheels.own(again)
    assert agent_wheels.sums(again) == agent_wheels.sums(built.parent)


@pytest.mark.slow
def test_an_installation_packs_its_wheel_again(built: Path, tmp_path: Path) -> None:
    """Where specctl was installed from a wheel, the same files make a wheel again, each vouched for by its RECORD."""
    site, folder = tmp_path / "site", tmp_path / "out"
    folder.mkdir()
    with zipfile.ZipFile(built) as opened:
        opened.extractall(site)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = f"import sys; sys.path.insert(0, {str(site)!r}); {OWN}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    packed = folder / done.stdout.strip()
    assert packed.name == built.name
    assert contents(packed) == contents(built)
    with zipfile.ZipFile(packed) as opened:
        (name,) = (each for each in opened.namelist() if each.endswith("/RECORD"))
        rows = {row[0]: row[1] for row in csv.reader(io.StringIO(opened.read(name).decode()))}
        for each, body in contents(packed).items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
            assert rows[each] == f"sha256={digest}", each


def test_a_wheelhouse_is_a_folder(tmp_path: Path) -> None:
    """Wheels are listed with their sums, other files are none; what is no folder is refused."""
    (tmp_path / "a-1-py3-none-any.whl").write_bytes(b"x")
    (tmp_path / "notes.txt").write_bytes(b"y")
    assert agent_wheels.sums(tmp_path) == {"a-1-py3-none-any.whl": hashlib.sha256(b"x").hexdigest()}
    assert base64.b64decode(agent_wheels.content(tmp_path, "a-1-py3-none-any.whl")) == b"x"
    with pytest.raises(UsageError, match="no folder of wheels"):
        agent_wheels.sums(tmp_path / "none")


def test_an_index_that_does_not_answer_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without internet the refusal says what to give instead."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(UnsupportedError, match="the agent's libraries could not be fetched") as refused:
        agent_wheels.download(tmp_path, DEBIAN)
    assert "--wheelhouse" in str(refused.value.hint)
