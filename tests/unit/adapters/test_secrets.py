"""Where secrets come from, and that nothing prints them."""

from __future__ import annotations

import copy
import os
import pickle
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.adapters.secrets import SHOWN, Secret, resolve_secret
from specctl.errors import EXIT_USAGE, UsageError
from specctl.fleet.types import SecretRef, SecretSource


def env(name: str) -> SecretRef:
    """Refer to a variable."""
    return SecretRef(source=SecretSource.ENV, locator=name)


def file(path: Path | str) -> SecretRef:
    """Refer to a file."""
    return SecretRef(source=SecretSource.FILE, locator=str(path))


def cmd(line: str) -> SecretRef:
    """Refer to a command."""
    return SecretRef(source=SecretSource.CMD, locator=line)


def refusal(reference: SecretRef, *, command_limit_s: float = 10.0) -> UsageError:
    """Return the error that resolving ends with."""
    with pytest.raises(UsageError) as caught:
        resolve_secret(reference, command_limit_s=command_limit_s)
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.hint
    return caught.value


def private(path: Path, content: bytes) -> Path:
    """Write a file that only we may read."""
    path.write_bytes(content)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "show", [repr, str, "{}".format, "{:>20}".format, "%s".__mod__, lambda s: f"{s!r}", lambda s: f"{[s]} { ({1: s}) }"]
)
def test_secret_never_shows(show: object) -> None:
    """No way of printing a secret prints it."""
    assert callable(show)
    text = show(Secret("hush-hush"))
    assert "hush" not in text
    assert SHOWN in text


def test_secret_is_never_pickled_and_copies_are_itself() -> None:
    """Pickling is refused; copies hold nothing new."""
    secret = Secret("hush-hush")
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(secret)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_secrets_compare_by_value() -> None:
    """Equal values are equal secrets; a secret equals no string."""
    assert Secret("hush-hush") == Secret("hush-hush")
    assert Secret("hush-hush") != Secret("hush-hash")
    assert Secret("hush-hush") != "hush-hush"
    assert len({Secret("hush-hush"), Secret("hush-hush")}) == 1


def test_environment_gives_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """env: takes the variable as it is."""
    monkeypatch.setenv("SPECCTL_TEST_KEY", "from env é")
    assert resolve_secret(env("SPECCTL_TEST_KEY")).reveal() == "from env é"


def test_unset_variable_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is not set is named."""
    monkeypatch.delenv("SPECCTL_TEST_KEY", raising=False)
    assert refusal(env("SPECCTL_TEST_KEY")).message == "the secret env:SPECCTL_TEST_KEY is not set"


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"hush-hush", "hush-hush"),
        (b"hush-hush\n", "hush-hush"),
        (b"hush-hush\r\n", "hush-hush"),
        (b" hush \n", " hush "),
    ],
)
def test_file_gives_a_secret_without_its_final_newline(tmp_path: Path, content: bytes, value: str) -> None:
    """One final line end goes, spaces stay."""
    assert resolve_secret(file(private(tmp_path / "key", content))).reveal() == value


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"abc", "fewer than 4 characters"),
        (b"hush-hush\n\n", "line break"),
        (b"two\nlines", "line break"),
        (b"nul\0nul", "control character"),
        (b"\xff\xfe\xfd\xfc", "is not text"),
        (b"x" * 70_000, "over 65536 bytes"),
    ],
)
def test_unfit_content_is_refused_without_showing_it(tmp_path: Path, content: bytes, reason: str) -> None:
    """What cannot be a key is refused, and the message does not quote it."""
    error = refusal(file(private(tmp_path / "key", content)))
    assert reason in error.message
    assert "hush" not in f"{error.message}{error.hint}"


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o666])
def test_file_open_to_all_is_refused(tmp_path: Path, mode: int) -> None:
    """A key file that every user can read or write is refused with its mode and the chmod."""
    path = private(tmp_path / "key", b"hush-hush")
    path.chmod(mode)
    error = refusal(file(path))
    assert f"mode {mode:04o}" in error.message
    assert f"chmod 600 {path}" in (error.hint or "")


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640])
def test_file_of_owner_and_group_is_taken(tmp_path: Path, mode: int) -> None:
    """Owner's and group's files are fine."""
    path = private(tmp_path / "key", b"hush-hush")
    path.chmod(mode)
    assert resolve_secret(file(path)).reveal() == "hush-hush"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """A file that another user owns, who could change it at will, is refused."""
    path = private(tmp_path / "key", b"hush-hush")
    os.chown(path, 12345, 12345)
    assert "belongs to another user (uid 12345)" in refusal(file(path)).message


def test_pipe_gives_a_secret() -> None:
    """A shell's <(…) works: a pipe has no mode to check."""
    read, write = os.pipe()
    os.write(write, b"hush-hush\n")
    os.close(write)
    try:
        assert resolve_secret(file(f"/dev/fd/{read}")).reveal() == "hush-hush"
    finally:
        os.close(read)


def test_missing_file_is_told(tmp_path: Path) -> None:
    """A file that is not there, or is a folder, is named with the system's reason."""
    assert "No such file" in refusal(file(tmp_path / "nothing")).message
    assert "Is a directory" in refusal(file(tmp_path)).message


def test_command_gives_a_secret_without_a_shell() -> None:
    """cmd: is split as a shell would, but none runs it."""
    assert resolve_secret(cmd("printf '%s' 'a b $HOME;'")).reveal() == "a b $HOME;"


def test_failing_command_is_told_without_what_it_printed() -> None:
    """The end of standard error is shown, without words that standard output held."""
    error = refusal(cmd("sh -c 'echo hush-hush; echo leaked hush-hush, no store >&2; exit 3'"))
    assert "exit status 3: leaked [redacted], no store" in error.message


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("/nonexistent/vault get", "No such file"),
        ("'open", "No closing quotation"),
        ("", "is empty"),
        ("true", "is empty"),
    ],
)
def test_command_that_cannot_give_one_is_told(line: str, reason: str) -> None:
    """Commands that are missing, malformed or silent are told apart."""
    assert reason in refusal(cmd(line)).message


def test_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """A command that does not end is killed with all that it started, at the limit."""
    started = time.monotonic()
    error = refusal(cmd(f"sh -c 'sleep 30 & echo $! > {tmp_path}/child; sleep 30'"), command_limit_s=0.3)
    assert "did not come within 0.3 s" in error.message
    assert time.monotonic() - started < 5
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 5
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _alive(child)


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@given(st.text())
def test_no_command_line_is_a_traceback(line: str) -> None:
    """Any text after cmd: that names no program here ends in a UsageError."""
    with pytest.raises(UsageError):
        resolve_secret(cmd(f"/nonexistent/{line}"))
