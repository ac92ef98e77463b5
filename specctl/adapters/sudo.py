"""How a program becomes root on a host: `sudo -n`, never with a password; used by ssh.py and local.py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from specctl.adapters.exchange import Exchange
from specctl.errors import ConnectError

SUDO_LIMIT_S = 30.0
# -k: a password typed minutes ago must not pass for a right that will be gone in the middle of a deploy.
PROBE = ("sudo", "-k", "-n", "--", "true")
NOT_FOUND = 127


def as_root(argv: Sequence[str]) -> list[str]:
    """Return argv run as root."""
    return ["sudo", "-n", "--", *argv]


def sudo_refusal(outcome: Exchange, *, host: str, user: str) -> ConnectError | None:
    """Return why sudo does not work there, or None; told by the probe's exit status, sudo's own words only quoted."""
    if outcome.status == 0:
        return None
    if outcome.status == NOT_FOUND:
        return ConnectError(
            "sudo is not installed there", hint="install it, or log in as root: user: root and sudo: false", host=host
        )
    said = outcome.error_text.splitlines()
    reason = f" ({said[-1]})" if said else ""
    return ConnectError(
        f"{user} may not become root there without a password{reason}",
        hint=f"as root there: echo '{user} ALL=(ALL) NOPASSWD: ALL' | EDITOR='tee -a' visudo -f /etc/sudoers.d/specctl",
        host=host,
    )


class SudoGate:
    """Asks once a connection whether sudo works, before the first program; thread-safe."""

    def __init__(self, probe: Callable[[], ConnectError | None]) -> None:
        self._probe = probe
        self._lock = threading.Lock()
        self._passed = False

    def require(self) -> None:
        """Raise ConnectError where sudo does not work."""
        with self._lock:
            if self._passed:
                return
            refusal = self._probe()
            if refusal is not None:
                raise refusal
            self._passed = True
