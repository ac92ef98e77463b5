"""Finds the values of secrets on the operator's machine, holds them so that nothing prints them, and blots them out of text.

Values leave only through `Secret.reveal`, called where a file of mode 0600 or an HTTP header is made.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import shlex
import signal
import stat
import subprocess
from pathlib import Path
from typing import NoReturn, assert_never

from specctl.adapters.redaction import SHORTEST, Redactor
from specctl.errors import UsageError
from specctl.fleet.types import SecretRef, SecretSource

COMMAND_LIMIT_S = 20.0
MAX_BYTES = 65536
SHOWN = "[secret]"
_COMPLAINT_CHARACTERS = 300


class Secret:
    """A secret's value; it shows as [secret] wherever it is printed, and refuses to be pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself, for a file or header that only the engine reads."""
        return self._value

    def __repr__(self) -> str:
        return SHOWN

    def __str__(self) -> str:
        return SHOWN

    def __format__(self, format_spec: str) -> str:
        return format(SHOWN, format_spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is never pickled")


def resolve_secret(reference: SecretRef, *, command_limit_s: float = COMMAND_LIMIT_S) -> Secret:
    """Return the secret's value; raise UsageError, with a remedy, where it is not there or not fit to be one."""
    if "\0" in reference.locator:
        raise UsageError("a secret's reference holds a NUL byte", hint="remove the NUL byte")
    match reference.source:
        case SecretSource.ENV:
            text = _from_environment(reference)
        case SecretSource.FILE:
            text = _from_file(reference)
        case SecretSource.CMD:
            text = _from_command(reference, limit_s=command_limit_s)
        case _:
            assert_never(reference.source)
    return Secret(_checked(text, reference))


def _checked(text: str, reference: SecretRef) -> str:
    """Take one final newline off; refuse what could not be a header's value, or could not be told from plain text."""
    value = text.removesuffix("\n").removesuffix("\r")
    if not value:
        raise UsageError(f"the secret {reference} is empty", hint="put the value there, or take the reference out")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise UsageError(
            f"the secret {reference} holds a line break or another control character",
            hint="store the bare value, on one line",
        )
    if len(value) < SHORTEST:
        raise UsageError(
            f"the secret {reference} has fewer than {SHORTEST} characters, too few to be kept out of logs",
            hint="make a longer one: openssl rand -hex 24",
        )
    return value


def _from_environment(reference: SecretRef) -> str:
    value = os.environ.get(reference.locator)
    if value is None:
        raise UsageError(
            f"the secret {reference} is not set",
            hint=f"set it in this shell: read -rs {reference.locator}; export {reference.locator}",
        )
    return value


def _from_file(reference: SecretRef) -> str:
    path = Path(reference.locator).expanduser()
    try:
        with path.open("rb") as file:
            _require_private(os.fstat(file.fileno()), reference)
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"the secret {reference} cannot be read: {error.strerror}",
            hint=f"look at it: ls -l {shlex.quote(str(path))}",
        ) from error
    return _decoded(content, reference)


def _require_private(status: os.stat_result, reference: SecretRef) -> None:
    """Refuse a file that any user of this machine could read or that somebody else could have written; pipes pass."""
    if not stat.S_ISREG(status.st_mode):
        return
    if status.st_mode & stat.S_IRWXO:
        raise UsageError(
            f"the secret {reference} is open to every user of this machine (mode {stat.S_IMODE(status.st_mode):04o})",
            hint=f"chmod 600 {shlex.quote(reference.locator)}, and replace the key if others had access",
        )
    if status.st_uid not in {0, os.geteuid()}:
        raise UsageError(
            f"the secret {reference} belongs to another user (uid {status.st_uid})",
            hint=f"chown {os.geteuid()} {shlex.quote(reference.locator)}",
        )


def _from_command(reference: SecretRef, *, limit_s: float) -> str:
    try:
        argv = shlex.split(reference.locator)
    except ValueError as error:
        raise UsageError(f"the secret {reference} is no command line: {error}", hint="close the quotes") from error
    if not argv:
        raise UsageError("a secret's command is empty", hint="name a program after cmd:")
    output, complaint, status = _run(argv, reference, limit_s=limit_s)
    if status != 0:
        said = _shown(complaint, output)
        raise UsageError(
            f"the secret {reference} is not to be had: exit status {status}{said}",
            hint=f"try it by hand: {shlex.join(argv)}",
        )
    return _decoded(output, reference)


def _run(argv: list[str], reference: SecretRef, *, limit_s: float) -> tuple[bytes, bytes, int]:
    """Run the command in a session of its own, so that all of it ends with the time limit; it has no terminal to ask on."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise UsageError(
            f"the secret {reference} cannot be asked for: {error.strerror}",
            hint=f"install {argv[0]}, or correct the command",
        ) from error
    with process:
        try:
            output, complaint = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise UsageError(
                f"the secret {reference} did not come within {limit_s:g} s",
                hint=f"it may wait for a passphrase; unlock its store first, then try: {shlex.join(argv)}",
            ) from error
        return output, complaint, process.returncode


def _shown(complaint: bytes, output: bytes) -> str:
    """Return the end of what a command complained of, without what it printed as the value."""
    values = [line for line in output.decode("utf-8", "replace").split() if len(line) >= SHORTEST]
    text = Redactor(values).redact(complaint.decode("utf-8", "replace")).strip()
    return f": {text[-_COMPLAINT_CHARACTERS:]}" if text else ""


def _decoded(content: bytes, reference: SecretRef) -> str:
    if len(content) > MAX_BYTES:
        raise UsageError(f"the secret {reference} has over {MAX_BYTES} bytes", hint="is that the right place?")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"the secret {reference} is not text", hint="store the value as UTF-8 text") from error
