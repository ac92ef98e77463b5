"""The lease on a server: one holder, tokens that only grow, freed by time, reboot or release, whatever the wall clock says."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from specctl.adapters.session import HostSession
from specctl.errors import LockHeldError
from specctl.host import lease
from specctl.host.wire import OpError
from tests.unit.host.conftest import Opener, release_args, until


def _acquire(session: HostSession, folder: Path, owner: str, **more: object) -> int:
    args = {"dir": str(folder), "owner": owner, "reason": "deploy", "ttl_s": 0.6, **more}
    token = session.call("lease.acquire", args, timeout_s=10)["token"]
    assert isinstance(token, int)
    return token


def _holder(session: HostSession, folder: Path) -> object:
    found = session.call("lease.status", {"dir": str(folder)})["lease"]
    return found["owner"] if isinstance(found, dict) else None


def _rewrite(folder: Path, **fields: object) -> None:
    path = folder / "lock"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_second_session_is_refused_with_the_holders_name(open_session: Opener, folder: Path) -> None:
    """Of two sessions the second is refused, and told who holds the lease and why."""
    first, second = open_session(), open_session()
    _acquire(first, folder, "ann@desk")
    with pytest.raises(LockHeldError, match=r"locked by ann@desk for \d+ s \(deploy\)") as caught:
        _acquire(second, folder, "bob@desk")
    assert caught.value.host == "here"


def test_a_living_session_keeps_its_lease(open_session: Opener, folder: Path) -> None:
    """A lease outlives its time to live many times over while its session lives, and stays the same lease."""
    first, second = open_session(), open_session()
    token = _acquire(first, folder, "ann@desk", ttl_s=0.3)
    expiries: set[object] = set()

    def renewed_often() -> bool:
        expiries.add(json.loads((folder / "lock").read_text())["expires_s"])
        return len(expiries) >= 5

    until(renewed_often, "five renewals")
    assert _holder(second, folder) == "ann@desk"
    assert json.loads((folder / "lock").read_text())["token"] == token


def test_a_killed_session_frees_the_lease_after_its_time(open_session: Opener, folder: Path) -> None:
    """After kill -9 the lease still binds for a moment, then it is free and the next token is higher."""
    first, second = open_session(), open_session()
    token = _acquire(first, folder, "ann@desk")
    pid = first.hello["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    assert _holder(second, folder) == "ann@desk"
    until(lambda: _holder(second, folder) is None, "the lease runs out", limit_s=5)
    assert _acquire(second, folder, "bob@desk") > token


def test_a_closed_session_renews_no_more(open_session: Opener, folder: Path) -> None:
    """When the operator's end goes away the lease runs out by itself."""
    first, second = open_session(), open_session()
    _acquire(first, folder, "ann@desk")
    first.close()
    until(lambda: _holder(second, folder) is None, "the lease runs out", limit_s=5)


def test_a_stolen_lease_fences_the_old_holder(open_session: Opener, folder: Path) -> None:
    """Once a lease was stolen, every changing op under the old token is refused and changes nothing."""
    first, second = open_session(), open_session()
    old = _acquire(first, folder, "ann@desk")
    new = _acquire(second, folder, "bob@desk", steal=True)
    with pytest.raises(LockHeldError, match="bob@desk holds it now"):
        first.call("release.write", release_args(folder, "1", {"none.service": "x"}, old))
    assert new > old
    assert not (folder / "releases").exists()


def test_changing_ops_need_a_token(session: HostSession, folder: Path) -> None:
    """Without a lease no changing op does anything."""
    changing = (
        "release.write",
        "release.activate",
        "release.prune",
        "unit.start",
        "unit.stop",
        "unit.disable",
        "unit.disable_remove",
    )
    for op in changing:
        with pytest.raises(LockHeldError):
            session.call(op, {"dir": str(folder), "token": 1, "id": "1", "algo": "none"})


def test_another_boot_frees_an_automatic_lease(session: HostSession, folder: Path) -> None:
    """A lease of an earlier boot does not bind, though its time by the clock is not over."""
    lease.acquire(str(folder), owner="ann@desk", reason=None, ttl_s=3600.0, steal=False)
    _rewrite(folder, boot="an earlier one")
    assert _holder(session, folder) is None
    assert _acquire(session, folder, "bob@desk") == 2


def test_a_manual_lock_stays_until_released(open_session: Opener, folder: Path) -> None:
    """A lock without a time to live outlives its session and a reboot, and is released by its token."""
    first, second = open_session(), open_session()
    token = _acquire(first, folder, "ann@desk", ttl_s=None)
    first.close()
    _rewrite(folder, boot="an earlier one")
    with pytest.raises(LockHeldError) as caught:
        _acquire(second, folder, "bob@desk")
    assert second.call("lease.release", {"dir": str(folder), "token": token + 1}) == {"released": False}
    assert second.call("lease.release", {"dir": str(folder), "token": token}) == {"released": True}
    assert _acquire(second, folder, "bob@desk") > token
    assert caught.value.hint == "ask them, or specctl lock release --host here"


def test_a_lease_can_be_resumed_by_its_token(open_session: Opener, folder: Path) -> None:
    """After a lost connection a new session goes on with the same lease; nobody else's token does that."""
    first, second = open_session(), open_session()
    token = _acquire(first, folder, "ann@desk", ttl_s=30)
    first.close()
    with pytest.raises(LockHeldError):
        second.call("lease.acquire", {"dir": str(folder), "resume": token + 1})
    assert second.call("lease.acquire", {"dir": str(folder), "resume": token})["token"] == token


def test_a_late_renewal_is_ours_unless_somebody_took_it(folder: Path) -> None:
    """A holder that was held up beyond its time goes on when nobody came, and is refused when somebody did."""
    ours = lease.acquire(str(folder), owner="ann", reason=None, ttl_s=60.0, steal=False)
    _rewrite(folder, expires_s=0.0)
    assert lease.confirm(str(folder), ours.token).remaining_s() == pytest.approx(60.0, abs=1.0)
    _rewrite(folder, expires_s=0.0)
    theirs = lease.acquire(str(folder), owner="bob", reason=None, ttl_s=60.0, steal=False)
    with pytest.raises(OpError, match="bob holds it now"):
        lease.confirm(str(folder), ours.token)
    assert theirs.token == ours.token + 1


def test_tokens_grow_though_the_lease_file_was_removed(folder: Path) -> None:
    """A token is never given out twice: the counter outlives the lease."""
    tokens = []
    for _ in range(3):
        tokens.append(lease.acquire(str(folder), owner="ann", reason=None, ttl_s=60.0, steal=False).token)
        (folder / "lock").unlink()
    assert tokens == [1, 2, 3]


def test_an_unreadable_lock_binds_until_it_is_stolen(folder: Path) -> None:
    """A damaged lock file is no free lock: only `steal` goes past it, with a higher token."""
    first = lease.acquire(str(folder), owner="ann", reason=None, ttl_s=60.0, steal=False)
    (folder / "lock").write_text("{")
    with pytest.raises(OpError, match="cannot be read"):
        lease.acquire(str(folder), owner="bob", reason=None, ttl_s=60.0, steal=False)
    assert lease.acquire(str(folder), owner="bob", reason=None, ttl_s=60.0, steal=True).token > first.token


def test_renewal_needs_no_space(folder: Path) -> None:
    """A renewal overwrites the lease's own block: same file, same size, so a full disk does not cost the lease."""
    ours = lease.acquire(str(folder), owner="ann", reason="é" * 1000, ttl_s=60.0, steal=False)
    before = (folder / "lock").stat()
    lease.confirm(str(folder), ours.token)
    after = (folder / "lock").stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, lease.BLOCK_BYTES)
