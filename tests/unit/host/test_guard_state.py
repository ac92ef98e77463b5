"""What the guard remembers comes back as it was written, and nothing else is taken for it; its units name what they must."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.adapters import session_payload
from specctl.host import guard_files, guard_state
from specctl.host.guard_state import GuardState
from specctl.host.wire import OpError
from tests.unit.host.conftest import interpreter
from tests.unit.host.test_guard_rules import STATE, STATES


@given(STATES)
def test_a_state_comes_back(state: GuardState) -> None:
    """Every state that can be reached is read as it was written, times, reasons and all."""
    assert guard_state.parse(guard_state._bytes(state)) == state


def test_it_is_written_and_found(tmp_path: Path) -> None:
    """Without a file there is no guard; a state that was saved is found, for its owner's eyes alone."""
    (tmp_path / "guard").mkdir()
    assert guard_state.load(str(tmp_path)) is None
    content = guard_state.save(str(tmp_path), STATE)
    assert guard_state.raw(str(tmp_path)) == content
    assert guard_state.load(str(tmp_path)) == STATE
    assert (tmp_path / "guard" / "state.json").stat().st_mode & 0o777 == 0o600


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda x: repr(x).encode())
)
def test_what_is_no_state_is_refused(content: bytes) -> None:
    """A file that is no state is an error in words, never a state that acts."""
    with pytest.raises(OpError, match="the guard's state cannot be read"):
        guard_state.parse(content)


@pytest.mark.parametrize("missing", ["aim", "phase", "boot", "who", "act", "server"])
def test_a_part_of_a_state_is_refused(missing: str) -> None:
    """A state that lacks what it needs is refused as a whole."""
    fields = json.loads(guard_state._bytes(STATE))
    del fields[missing]
    with pytest.raises(OpError):
        guard_state.parse(json.dumps(fields).encode())


def test_its_units_survive_odd_paths() -> None:
    """Paths reach the program as they are: systemd's own signs in them are written so that it reads them literally."""
    folder = '/var/lib/a b/100%/$HOME/"q"\\'
    units = guard_files.texts(folder, "k26", "/etc/systemd/system", "/usr/bin/python3")
    assert set(units) == {"specctl-guard@k26.service", "specctl-guard@k26.timer"}
    quoted = '"/var/lib/a b/100%%/$$HOME/\\"q\\"\\\\/guard/guard.py"'
    assert f'ExecStart="/usr/bin/python3" -I -S {quoted} ' in units["specctl-guard@k26.service"]


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.12", "3.13"])
def test_the_program_runs_on(version: str, tmp_path: Path) -> None:
    """The guard's one file runs on every Python from 3.8 on: with nothing to guard it gives its lease back and ends well."""
    program = tmp_path / "guard.py"
    program.write_text(session_payload.guard())
    folder = tmp_path / "k26"
    argv = [interpreter(version), "-I", "-S", str(program), str(folder), "k26", str(tmp_path / "units")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name for path in folder.iterdir()} == {"lock.counter", "lock.mutex"}


def test_a_changed_program_is_refused(tmp_path: Path) -> None:
    """One changed byte of what it carries, and the guard says so in place of running it."""
    text = session_payload.guard()
    place = text.index('b85decode("') + 5000
    program = tmp_path / "guard.py"
    program.write_text(text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :])
    argv = [sys.executable, "-I", "-S", str(program), str(tmp_path), "k26", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "this file was changed" in done.stderr) == (1, True)
