"""What a host's session answers or fails with, as specctl's own errors; called by session.py alone."""

from __future__ import annotations

from collections.abc import Mapping

from specctl.errors import (
    EXIT_INTERRUPTED,
    ConnectError,
    LockHeldError,
    RemoteCommandError,
    SpecctlError,
    UnsupportedError,
    for_host,
)

NOT_FOUND = 127


class OpCancelledError(SpecctlError):
    """An op was cancelled by the operator before it was done."""

    exit_code = EXIT_INTERRUPTED
    kind = "cancelled"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def of_wire(op: str, error: object, *, host: str) -> SpecctlError:
    """Return the error of one op's reply."""
    found: Mapping[str, object] = error if isinstance(error, Mapping) else {}
    message = _text(found.get("message")) or f"{op} failed without a word"
    hint = for_host(_text(found.get("hint")) or "", host) or None
    output = _text(found.get("output")) or ""
    status = found.get("status")
    match found.get("kind"):
        case "lock-held":
            return LockHeldError(message, hint=hint, host=host)
        case "unsupported":
            return UnsupportedError(message, hint=hint, host=host)
        case "going-down":
            return ConnectError(f"the host is shutting down ({message})", hint=hint, host=host)
        case "cancelled":
            return OpCancelledError(f"{op} was cancelled", host=host)
        case "remote-command":
            code = status if isinstance(status, int) else None
            return RemoteCommandError(message, hint=hint, host=host, status=code, output=output)
        case _:
            detail = f": {output.strip().splitlines()[-1]}" if output.strip() else ""
            return SpecctlError(f"{message}{detail}", hint=hint, host=host)


def of_start(status: int, said: str, *, refusal: Mapping[str, object] | None, python: str, host: str) -> SpecctlError:
    """Return why the host's program did not start."""
    hint = f"set python: for host {host} in the inventory to an interpreter of version 3.8 or later there"
    if refusal is not None:
        message = _text(refusal.get("message")) or f"{python} cannot run specctl's program"
        return UnsupportedError(f"{message} to run specctl's program there (3.8 or later)", hint=hint, host=host)
    if status == NOT_FOUND:
        return UnsupportedError(f"there is no {python}", hint=hint, host=host)
    last = said.splitlines()[-1] if said else f"exit status {status}"
    return RemoteCommandError(f"{python} did not start: {last}", hint=hint, host=host, status=status, output=said)
