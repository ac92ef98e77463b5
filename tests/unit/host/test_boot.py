"""What is sent to a host: plain modules for any Python from 3.8 on, which refuse an older one in words."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from specctl.adapters import session_payload
from specctl.errors import RemoteCommandError, UnsupportedError
from tests.unit.host.conftest import Opener, interpreter

HOST = Path(session_payload.HOST)
MODULES = sorted(path.name for path in HOST.glob("*.py"))
NEWER = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
OLDER = ("3.7", "3.6")


@pytest.mark.parametrize("name", MODULES)
def test_module_is_python_3_8_of_the_standard_library(name: str) -> None:
    """Each module parses as Python 3.8, imports the standard library and its siblings alone, and stays short."""
    source = (HOST / name).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    foreign = {
        name
        for name in imported
        if name.split(".")[0] not in sys.stdlib_module_names and name.split(".")[:2] != ["specctl", "host"]
    }
    assert foreign == set()
    assert len(source.splitlines()) <= 400


@pytest.mark.parametrize("version", NEWER)
def test_every_module_imports_on(open_session: Opener, version: str, tmp_path: Path) -> None:
    """A session on each Python that this machine has imports every module and answers facts, leases and releases."""
    session = open_session(interpreter(version))
    for manager in (
        {"kind": "systemd", "unit": "specctl-k26.service"},
        {"kind": "supervisor", "home": str(tmp_path), "program": "specctl-k26"},
    ):
        row = {"name": "k26", "dir": str(tmp_path / "k26"), "manager": manager, "port": 1, "target": str(tmp_path)}
        found = session.call("facts", {"servers": [row]}, timeout_s=20)
        assert found["cpu_count"] is not None
    args = {"dir": str(tmp_path / "k26"), "manager": manager, "owner": "me", "ttl_s": 5}
    token = session.call("lease.acquire", args)["token"]
    session.call("unit.stop", {**args, "token": token, "timeout_s": 1}, timeout_s=20)
    session.call("record.append", {**args, "record": {"act": "deploy"}})
    assert session.call("record.read", args) == {"records": [{"act": "deploy"}]}
    assert str(session.hello["python"]).startswith(version + ".")


@pytest.mark.parametrize("version", OLDER)
def test_an_older_python_is_refused(open_session: Opener, version: str) -> None:
    """A Python before 3.8 says that it is too old, and which key of the inventory to set."""
    with pytest.raises(UnsupportedError, match=f"python {version} is too old") as caught:
        open_session(interpreter(version))
    assert "set python:" in (caught.value.hint or "")


def test_a_missing_python_is_refused(open_session: Opener) -> None:
    """A host without that interpreter is told from one that cannot be reached."""
    with pytest.raises(UnsupportedError, match="there is no /no/python"):
        open_session("/no/python")


def test_what_is_no_python_is_refused_in_its_own_words(open_session: Opener) -> None:
    """A program that fails at once is an error that quotes its last words."""
    with pytest.raises(RemoteCommandError, match="did not start"):
        open_session("false")


def test_nothing_secret_can_enter_argv() -> None:
    """Only the boot program is on the command line; modules and arguments go by standard input."""
    assert session_payload.boot().startswith((HOST / "boot.py").read_text())
    assert len(session_payload.boot().splitlines()) == len((HOST / "boot.py").read_text().splitlines()) + 3
    assert {f"specctl.host.{name[:-3]}" for name in MODULES} - set(session_payload.sources()) == {
        "specctl.host.boot",
        "specctl.host.__init__",
    }
