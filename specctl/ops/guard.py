"""The guard of an act, from the operator's side: armed before a change, confirmed with the record, awaited when it acted.

What it does on the host is in specctl/host/guard*.py; docs/guard.md tells the whole.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from specctl.adapters import session_payload
from specctl.fleet.types import Host, ServiceManager
from specctl.rollout.guarded import WHO, Guard, hard_limit_s

if TYPE_CHECKING:
    from specctl.ops.turn import Aim, Turn

ARM_S = 90.0
POLL_S = 1.0
# Beyond all that the guard itself may take, so that it is the host's word and not our clock that ends the wait.
AWAIT_MARGIN_S = 90.0


def guards(host: Host) -> bool:
    """Claim that a guard can be armed on a host."""
    return host.manager is ServiceManager.SYSTEMD


def arm(turn: Turn, aim: Aim) -> None:
    """Arm the guard for an aim, or give it new time for the act's next part; raises before anything was changed."""
    if not guards(turn.contact.host):
        return
    limits = turn.server.limits
    script = session_payload.guard()
    back = turn.back
    args = {
        "host": turn.host,
        "act": turn.act.value,
        "who": turn.contact.who,
        "aim": {"id": aim.release, "algo": aim.algo},
        "back": {"id": back.release, "algo": back.algo} if back else None,
        "script": script,
        "sha256": hashlib.sha256(script.encode()).hexdigest(),
        "hard_s": hard_limit_s(limits, [load.total_s for load in turn.facts.past_loads(aim.algo)]),
        "confirm_s": limits.confirm_s,
        "load_s": limits.load_s,
        "stop_s": limits.drain_s + limits.stop_s,
        "version": version("specctl-fleet"),
    }
    with turn.timed("guard"):
        turn.call("guard.arm", args, timeout_s=ARM_S)
    turn.armed = True


def confirm(turn: Turn, record: Mapping[str, object]) -> None:
    """End the act on the host: its record is written and, in the same step, nothing is taken back any more."""
    if turn.armed:
        turn.call("guard.disarm", {"record": dict(record)}, timeout_s=ARM_S)
        turn.armed = False
    else:
        turn.call("record.append", {"record": dict(record)})


def disarm(turn: Turn) -> None:
    """Take over from a guard that an act left behind whose operator is gone; the act that does so answers for the server now."""
    if guards(turn.contact.host) and turn.facts.guard is not None:
        turn.call("guard.disarm", timeout_s=ARM_S)


def verdict(turn: Turn) -> Mapping[str, object] | None:
    """Return the record of the guard that took our act back, once it has ended; None when somebody else has the server.

    Raises ConnectError when the host is lost meanwhile.
    """
    limits = turn.server.limits
    deadline = time.monotonic() + 2 * (limits.drain_s + limits.stop_s) + limits.load_s + AWAIT_MARGIN_S
    while time.monotonic() < deadline:
        answer = turn.contact.call("guard.status", turn.server)
        found = Guard.from_wire(answer.get("guard"))
        if found is None:
            return _its_record(turn)
        if found.token != turn.token or _persons(answer.get("lease")):
            return None
        turn.reporter.step(turn.host, "guard", found.words())
        time.sleep(POLL_S)
    return None


def _persons(lease: object) -> bool:
    """Claim that somebody other than the guard holds the server now: the guard waits for them, and so would we."""
    owner = lease.get("owner") if isinstance(lease, Mapping) else None
    return owner is not None and owner != WHO


def _its_record(turn: Turn) -> Mapping[str, object] | None:
    """Return the newest record that the guard wrote since our facts were taken."""
    rows = turn.contact.call("record.read", turn.server, {"limit": 20}).get("records")
    for row in reversed(rows if isinstance(rows, list) else []):
        if isinstance(row, Mapping) and row not in turn.facts.records and row.get("who") == WHO:
            return row
    return None
