"""Keep the leases of one session alive, from a thread of its own, for as long as the session lives; and the ops on leases."""

from __future__ import annotations

import threading
import time
from typing import Dict, Mapping, Tuple

from specctl.host import lease
from specctl.host.wire import Args, Call, OpError

RENEWALS_IN_TTL = 3.0
SHORTEST_TTL_S = 0.3
LONGEST_WAIT_S = 60.0

_changed = threading.Condition()
_held: Dict[str, Tuple[int, float]] = {}
_started = False


def _renew(folder: str, token: int) -> None:
    """Renew one lease; a lost one is dropped (ops find out by themselves), a disk that fails for a moment costs nothing yet."""
    try:
        lease.confirm(folder, token)
    except OpError:
        with _changed:
            if _held.get(folder, (None, 0.0))[0] == token:
                del _held[folder]
    except OSError:
        return


def _renew_all() -> float:
    """Renew what is held and return how long to wait before the next time."""
    with _changed:
        held = dict(_held)
    for folder, (token, _) in held.items():
        _renew(folder, token)
    with _changed:
        return min([ttl_s / RENEWALS_IN_TTL for _, ttl_s in _held.values()], default=LONGEST_WAIT_S)


def _keep() -> None:
    due_s = time.monotonic()
    while True:
        with _changed:
            _changed.wait(max(0.0, due_s - time.monotonic()))
        due_s = time.monotonic() + _renew_all()


def _hold(folder: str, token: int, ttl_s: float) -> None:
    global _started  # noqa: PLW0603  # one thread a session, started with its first lease
    with _changed:
        _held[folder] = (token, ttl_s)
        if not _started:
            threading.Thread(target=_keep, name="lease", daemon=True).start()
            _started = True
        _changed.notify_all()


def acquire(call: Call) -> Mapping[str, object]:
    """Take a lease (`resume`: go on with the one of that token); an automatic one is renewed while the session lives."""
    args = call.args
    folder = args.path("dir")
    ttl_s = args.number_or_none("ttl_s")
    if ttl_s is not None:
        ttl_s = max(SHORTEST_TTL_S, ttl_s)
    resume = args.whole_or_none("resume")
    if resume is not None:
        taken = lease.confirm(folder, resume)
    else:
        taken = lease.acquire(
            folder, owner=args.text("owner"), reason=args.text_or_none("reason"), ttl_s=ttl_s, steal=args.flag("steal")
        )
    if taken.ttl_s is not None:
        _hold(folder, taken.token, taken.ttl_s)
    return taken.as_wire()


def release(call: Call) -> Mapping[str, object]:
    """Give a lease back; without a token, take it away from whoever holds it."""
    folder = call.args.path("dir")
    token = call.args.whole_or_none("token")
    with _changed:
        if token is None or _held.get(folder, (None, 0.0))[0] == token:
            _held.pop(folder, None)
    return {"released": lease.release(folder, token)}


def status(call: Call) -> Mapping[str, object]:
    """Say who holds the lease."""
    found = lease.status(call.args.path("dir"))
    return {"lease": None if found is None else found.as_wire()}


def require(args: Args) -> None:
    """Refuse (kind lock-held) unless the op's token is the lease's."""
    lease.confirm(args.path("dir"), args.whole("token", 0))
