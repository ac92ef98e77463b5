"""Reach a host again after its connection broke in the middle of a load, and go on under the same lease."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from specctl.errors import ConnectError

if TYPE_CHECKING:
    from specctl.adapters.session import HostSession
    from specctl.ops.turn import Turn

# A cut that is shorter than this does not fail a load of many minutes.
RECONNECT_S = 60.0
PAUSE_S = 2.0


def resume(turn: Turn, stale: HostSession, lost: ConnectError) -> None:
    """Open another session in place of a stale one and renew the lease.

    Raises `lost` when the host does not come back in time, LockHeldError when the lease is no longer ours.
    """
    deadline = time.monotonic() + RECONNECT_S
    while True:
        turn.reporter.step(turn.host, "lost", "the connection; connecting again")
        try:
            turn.contact.reopen(stale)
            turn.contact.call("lease.acquire", turn.server, {"resume": turn.token})
        except ConnectError:
            if turn.contact.ended or time.monotonic() > deadline or turn.interrupted.wait(PAUSE_S):
                raise lost from None
            stale = turn.contact.session
        else:
            turn.final("connection", "lost and found again")
            return
