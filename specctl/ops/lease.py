"""The lease on a server: taken for the length of an act, and the manual lock of `specctl lock`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from specctl.errors import SpecctlError
from specctl.fleet.types import Host, Server
from specctl.ops.contact import Contact, each
from specctl.ui.text import age

# A dead owner's lease ends by itself after this long; a living session renews it every third of it.
LEASE_S = 45.0


@contextmanager
def leased(contact: Contact, server: Server, reason: str, *, steal: bool = False) -> Iterator[int]:
    """Hold the lease on a server; yields its fencing token; raises LockHeldError when somebody else has it."""
    args = {"owner": contact.who, "reason": reason, "ttl_s": LEASE_S, "steal": steal}
    token = contact.call("lease.acquire", server, args).get("token")
    assert isinstance(token, int)
    try:
        yield token
    finally:
        # A host that is gone lets the lease run out; the act's own error must not be hidden by this one.
        with suppress(SpecctlError):
            contact.call("lease.release", server, {"token": token})


def _text(lease: Mapping[str, object]) -> str:
    """Say who holds a lease, for how long it has been, and until when."""
    owner, reason, taken = lease.get("owner"), lease.get("reason"), lease.get("age_s")
    since = f" for {age(taken)}" if isinstance(taken, (int, float)) else ""
    until = (
        "until released"
        if lease.get("manual") is True
        else f"ends by itself in {age(_number(lease.get('remaining_s')))}"
    )
    return f"locked by {owner}{since}{f' ({reason})' if reason else ''}, {until}"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _rows(
    selected: Sequence[tuple[Host, Server]], work: Callable[[Contact, Server], object]
) -> list[dict[str, object]]:
    """Do the work on each server; a row each, a failure as a row with its exit code."""
    rows: list[dict[str, object]] = []
    for (host, server), found in each(selected, work).items():
        row: dict[str, object] = {"host": host, "server": server}
        if isinstance(found, SpecctlError):
            row.update(text=found.message, exit_code=found.exit_code, lease=None)
        else:
            lease = found if isinstance(found, Mapping) and found else None
            row.update(text=_text(lease) if lease else "free", lease=dict(lease) if lease else None)
        rows.append(row)
    return rows


def statuses(selected: Sequence[tuple[Host, Server]]) -> list[dict[str, object]]:
    """Return who holds each server."""
    return _rows(selected, lambda contact, server: contact.call("lease.status", server).get("lease"))


def acquire(selected: Sequence[tuple[Host, Server]], reason: str, *, steal: bool) -> list[dict[str, object]]:
    """Take the manual lock of each server."""

    def work(contact: Contact, server: Server) -> object:
        contact.call("lease.acquire", server, {"owner": contact.who, "reason": reason, "ttl_s": None, "steal": steal})
        return contact.call("lease.status", server).get("lease")

    return _rows(selected, work)


def release(selected: Sequence[tuple[Host, Server]]) -> list[dict[str, object]]:
    """Release the lock of each server, whoever holds it."""

    def work(contact: Contact, server: Server) -> object:
        contact.call("lease.release", server)
        return contact.call("lease.status", server).get("lease")

    return _rows(selected, work)
