"""Every error that specctl raises on purpose, with the exit code that ends the command; printed in one place, cli/main.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

EXIT_OK = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_CONNECT = 3
EXIT_REMOTE_COMMAND = 4
EXIT_LOCK_HELD = 5
EXIT_ROLLED_BACK = 6
EXIT_PARTIAL = 7
EXIT_NO_HEALTHY_RELEASE = 8
EXIT_INTERRUPTED = 130
# Whoever read our output left before its end; nothing failed, but nobody saw that nothing failed.
EXIT_UNREAD = 141


def for_host(words: str, host: str) -> str:
    """Return words with the host's name in their commands: where H stands for it, whoever wrote them did not know it."""
    return re.sub(r"--host H\b", lambda _: f"--host {host}", words)


class SpecctlError(Exception):
    """What happened, in one lower-case sentence, with a hint that is a command or an edit, and the host where there is one."""

    exit_code = EXIT_BUG
    kind = "error"

    def __init__(self, message: str, *, hint: str | None = None, host: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.host = host

    def __str__(self) -> str:
        return f"{self.host}: {self.message}" if self.host else self.message

    def as_json(self) -> Mapping[str, object]:
        """Return the error as `--json` prints it (docs/json.md)."""
        return {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
            "host": self.host,
            "exit_code": self.exit_code,
        }


class BugError(SpecctlError):
    """Specctl itself is at fault."""

    kind = "bug"


class UsageError(SpecctlError):
    """The command line asks for something that cannot be meant."""

    exit_code = EXIT_USAGE
    kind = "usage"


class UnsupportedError(SpecctlError):
    """What is asked for is understood but this engine, host or service manager cannot do it."""

    exit_code = EXIT_USAGE
    kind = "unsupported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with an inventory: where (1-based line and column, dotted key path), what, and what was perhaps meant."""

    file: str
    line: int | None
    column: int | None
    path: str
    message: str
    suggestion: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        key = f" {self.path}:" if self.path else ""
        near = f" (did you mean {self.suggestion}?)" if self.suggestion else ""
        return f"{place}:{key} {self.message}{near}"


class InventoryError(SpecctlError):
    """The inventory cannot be used; carries every problem of every file."""

    exit_code = EXIT_USAGE
    kind = "inventory"

    def __init__(self, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        count = len(problems)
        super().__init__(f"the inventory has {count} problem{'s' if count != 1 else ''}", hint=hint)
        self.problems = tuple(problems)

    def as_json(self) -> Mapping[str, object]:
        """Return the error with its problems, each with its place."""
        rows = [
            {
                "file": p.file,
                "line": p.line,
                "column": p.column,
                "path": p.path,
                "message": p.message,
                "suggestion": p.suggestion,
            }
            for p in self.problems
        ]
        return {**super().as_json(), "problems": rows}


class ConnectError(SpecctlError):
    """A host cannot be reached, refuses us, or is not the host that it should be."""

    exit_code = EXIT_CONNECT
    kind = "connect"


class RemoteCommandError(SpecctlError):
    """A command on a host failed; keeps its argv, exit status and output (redacted by whoever raises it)."""

    exit_code = EXIT_REMOTE_COMMAND
    kind = "remote-command"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        host: str | None = None,
        argv: Sequence[str] = (),
        status: int | None = None,
        output: str = "",
    ) -> None:
        super().__init__(message, hint=hint, host=host)
        self.argv = tuple(argv)
        self.status = status
        self.output = output


class LockHeldError(SpecctlError):
    """Somebody else holds the lease on a server."""

    exit_code = EXIT_LOCK_HELD
    kind = "lock-held"


class UnhealthyError(SpecctlError):
    """A server runs but does not serve, or not with the algo that was asked for."""

    exit_code = EXIT_ROLLED_BACK
    kind = "unhealthy"


class RolledBackError(SpecctlError):
    """The new release did not prove itself; the previous one serves again."""

    exit_code = EXIT_ROLLED_BACK
    kind = "rolled-back"


class PartialError(SpecctlError):
    """Some hosts succeeded and some did not."""

    exit_code = EXIT_PARTIAL
    kind = "partial"


class NoHealthyReleaseError(SpecctlError):
    """A server is left without a healthy release: stopped, and recorded as such."""

    exit_code = EXIT_NO_HEALTHY_RELEASE
    kind = "no-healthy-release"
