"""The lease on a server: one holder at a time, by boot id and CLOCK_BOOTTIME, with a token that only grows.

Files in the server's folder: `lock` (the lease, absent when free), `lock.counter` (the last token given out), `lock.mutex` (an
flock held for moments, never for the life of a lease). An automatic lease ends by itself with its time or its boot; a manual
one (no time to live) stays until it is released.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from typing import Dict, Iterator, NamedTuple, Optional

from specctl.host import clock, files
from specctl.host.wire import LOCK_HELD, REMOTE_COMMAND, Args, OpError

LEASE = "lock"
COUNTER = "lock.counter"
MUTEX = "lock.mutex"
# A lease is rewritten in place within one block, so that it can be renewed on a full disk.
BLOCK_BYTES = 4096
TEXT_LIMIT = 300
MUTEX_WAIT_S = 10.0
STEP_S = 0.02


class Lease(NamedTuple):
    """Who holds a server and until when; `ttl_s` and `expires_s` None: a manual lock."""

    token: int
    owner: str
    reason: Optional[str]
    boot: str
    acquired_s: float
    acquired_wall: float
    ttl_s: Optional[float]
    expires_s: Optional[float]

    def live(self, boot: str, now_s: float) -> bool:
        """Say whether it still binds others."""
        return self.expires_s is None or (self.boot == boot and now_s < self.expires_s)

    def age_s(self) -> Optional[float]:
        """Return how long ago it was taken; after a reboot by the wall clock, None when that went backwards."""
        if self.boot == clock.boot_id():
            return max(0.0, clock.boottime_s() - self.acquired_s)
        age = clock.wall_s() - self.acquired_wall
        return age if age >= 0 else None

    def remaining_s(self) -> Optional[float]:
        """Return for how long it holds without renewal; None for a manual lock."""
        return None if self.expires_s is None else max(0.0, self.expires_s - clock.boottime_s())

    def as_wire(self) -> Dict[str, object]:
        """Return what others may know of it."""
        return {
            "token": self.token,
            "owner": self.owner,
            "reason": self.reason,
            "age_s": self.age_s(),
            "remaining_s": self.remaining_s(),
            "manual": self.ttl_s is None,
        }


def _parse(found: bytes, path: str) -> Lease:
    try:
        row = Args(json.loads(found))
        return Lease(
            token=row.whole("token", 0),
            owner=row.text("owner"),
            reason=row.text_or_none("reason"),
            boot=row.text("boot"),
            acquired_s=row.number("acquired_s", 0.0),
            acquired_wall=row.number("acquired_wall", 0.0),
            ttl_s=row.number_or_none("ttl_s"),
            expires_s=row.number_or_none("expires_s"),
        )
    except (ValueError, AttributeError, OpError) as error:
        raise OpError(
            LOCK_HELD, f"the lock {path} cannot be read", hint="take it over: specctl lock release --host H"
        ) from error


def _bytes(lease: Lease) -> bytes:
    text = json.dumps({**lease._asdict()})
    return text.encode("ascii").ljust(BLOCK_BYTES - 1) + b"\n"


def load(folder: str) -> Optional[Lease]:
    """Return the lease as it stands, live or not; None when there is none.

    Who reads without the mutex may meet a renewal half way: it looks again.
    """
    path = os.path.join(folder, LEASE)
    for last in (False, False, True):
        found = files.read(path)
        try:
            return None if found is None else _parse(found, path)
        except OpError:
            if last:
                raise
            time.sleep(STEP_S)
    return None


@contextlib.contextmanager
def mutex(folder: str) -> Iterator[None]:
    """Keep every other session from the lease for a moment; the folder must be there."""
    descriptor = os.open(os.path.join(folder, MUTEX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + MUTEX_WAIT_S
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if time.monotonic() > deadline:
                    raise OpError(REMOTE_COMMAND, f"another session keeps {folder}/{MUTEX} for itself") from error
                time.sleep(STEP_S)
        yield
    finally:
        os.close(descriptor)


def _next_token(folder: str, previous: Optional[Lease]) -> int:
    path = os.path.join(folder, COUNTER)
    counted = (files.read_text(path) or "0").strip()
    token = max(int(counted) if counted.isdigit() else 0, previous.token if previous else 0) + 1
    files.replace(path, f"{token}\n".encode("ascii"), 0o600)
    return token


def held_error(lease: Lease) -> OpError:
    """Say who holds it."""
    age = lease.age_s()
    since = f" for {age:.0f} s" if age is not None else ""
    why = f" ({lease.reason})" if lease.reason else ""
    hint = (
        "ask them, or specctl lock release --host H"
        if lease.ttl_s is None
        else "wait, or look: specctl lock status --host H"
    )
    return OpError(LOCK_HELD, f"the server is locked by {lease.owner}{since}{why}", hint=hint)


def acquire(folder: str, *, owner: str, reason: Optional[str], ttl_s: Optional[float], steal: bool) -> Lease:
    """Take the lease, or raise kind lock-held; `steal` takes it from whoever holds it. Makes the server's folder."""
    os.makedirs(folder, mode=0o755, exist_ok=True)
    with mutex(folder):
        return grant(folder, owner=owner, reason=reason, ttl_s=ttl_s, steal=steal)


def grant(folder: str, *, owner: str, reason: Optional[str], ttl_s: Optional[float], steal: bool) -> Lease:
    """Do what `acquire` does for a caller that holds the mutex."""
    try:
        previous = load(folder)
    except OpError:
        if not steal:
            raise
        previous = None
    now_s = clock.boottime_s()
    boot = clock.boot_id()
    if previous is not None and previous.live(boot, now_s) and not steal:
        raise held_error(previous)
    lease = Lease(
        token=_next_token(folder, previous),
        owner=owner[:TEXT_LIMIT],
        reason=reason[:TEXT_LIMIT] if reason else None,
        boot=boot,
        acquired_s=now_s,
        acquired_wall=clock.wall_s(),
        ttl_s=ttl_s,
        expires_s=None if ttl_s is None else now_s + ttl_s,
    )
    files.replace(os.path.join(folder, LEASE), _bytes(lease), 0o644)
    return lease


def _gone(lease: Optional[Lease]) -> OpError:
    holder = f"; {lease.owner} holds it now" if lease else ""
    return OpError(
        LOCK_HELD,
        f"our lease on the server is gone{holder}",
        hint="specctl status --host H, then run the command again",
    )


def _confirm(folder: str, token: int) -> Lease:
    """Renew the lease of that token in place, or raise kind lock-held; the mutex is held."""
    lease = load(folder)
    if lease is None or lease.token != token:
        raise _gone(lease)
    if lease.ttl_s is None:
        return lease
    if lease.boot != clock.boot_id():
        raise OpError(
            LOCK_HELD,
            "our lease on the server ended when the host restarted",
            hint="specctl status --host H, then run the command again",
        )
    # Nobody took it (they would have changed the token), so a late renewal is still ours to make.
    renewed = lease._replace(expires_s=clock.boottime_s() + lease.ttl_s)
    descriptor = os.open(os.path.join(folder, LEASE), os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.pwrite(descriptor, _bytes(renewed), 0)
    finally:
        os.close(descriptor)
    return renewed


def confirm(folder: str, token: int) -> Lease:
    """Renew the lease of that token, or raise kind lock-held when it is no longer ours."""
    if not os.path.isdir(folder):
        raise _gone(None)
    with mutex(folder):
        return _confirm(folder, token)


@contextlib.contextmanager
def fenced(folder: str, token: int) -> Iterator[None]:
    """Hold the lease for certain while a change is committed: nobody can take it in between. Keep it short."""
    with mutex(folder):
        _confirm(folder, token)
        yield


def release(folder: str, token: Optional[int]) -> bool:
    """Give the lease of that token back, whoever's it is when None; say whether there was one to give back."""
    if not os.path.isdir(folder):
        return False
    with mutex(folder):
        if token is not None:
            lease = load(folder)
            if lease is None or lease.token != token:
                return False
        gone = files.remove(os.path.join(folder, LEASE))
        files.sync_dir(folder)
        return gone


def status(folder: str) -> Optional[Lease]:
    """Return the lease that binds others now, or None."""
    lease = load(folder)
    return lease if lease is not None and lease.live(clock.boot_id(), clock.boottime_s()) else None
