"""What the agent is told of a server: written whole under the lease, keys for its group alone, and nothing rewritten in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.adapters.session import HostSession
from specctl.errors import LockHeldError, SpecctlError
from specctl.host import agent_note

KEYS = {"api_key": "sk-0123456789", "admin_api_key": "sk-9876543210"}


def told(folder: Path, **more: object) -> dict[str, object]:
    """Return the arguments of both ops."""
    return {"dir": str(folder), "text": "{}\n", "calibration": None, "keys": dict(KEYS), **more}


def lying(folder: Path) -> dict[str, str]:
    """Return what lies in the agent's folder, by path."""
    home = folder / "agent"
    return {str(path.relative_to(home)): path.read_text() for path in sorted(home.rglob("*")) if path.is_file()}


def test_a_note_is_written_with_its_keys(session: HostSession, folder: Path, token: int) -> None:
    """All of it, then nothing to change; no file of a key is open to others."""
    assert session.call("agent.compare", told(folder)) == {"changed": ["server.json", "keys"]}
    written = session.call("agent.note", told(folder, token=token))
    assert written == {"changed": ["server.json", "keys"]}
    assert lying(folder) == {
        "server.json": "{}\n",
        "keys/api_key": KEYS["api_key"],
        "keys/admin_api_key": KEYS["admin_api_key"],
    }
    modes = [
        path.stat().st_mode & 0o007 for path in (folder / "agent" / "keys", *(folder / "agent" / "keys").iterdir())
    ]
    assert modes == [0, 0, 0]
    assert (folder / "agent" / "server.json").stat().st_mode & 0o777 == 0o644
    assert session.call("agent.compare", told(folder)) == {"changed": []}


def test_what_is_new_is_named_and_what_is_gone_goes(session: HostSession, folder: Path, token: int) -> None:
    """A calibration comes and goes, a key changes, another is taken away."""
    session.call("agent.note", told(folder, token=token))
    changed = session.call("agent.note", told(folder, token=token, calibration="{}", keys={"api_key": "sk-new-000000"}))
    assert changed == {"changed": ["calibration.json", "keys"]}
    assert lying(folder) == {"server.json": "{}\n", "calibration.json": "{}", "keys/api_key": "sk-new-000000"}
    assert session.call("agent.note", told(folder, token=token, keys={"api_key": "sk-new-000000"})) == {
        "changed": ["calibration.json"]
    }
    assert "calibration.json" not in lying(folder)


def test_a_key_that_could_not_be_read_stays_as_it_is(session: HostSession, folder: Path, token: int) -> None:
    """An operator without the secret leaves the host's in place."""
    session.call("agent.note", told(folder, token=token))
    unread = {"api_key": None, "admin_api_key": None}
    assert session.call("agent.compare", told(folder, keys=unread)) == {"changed": []}
    session.call("agent.note", told(folder, token=token, keys=unread))
    assert lying(folder)["keys/api_key"] == KEYS["api_key"]


def test_without_the_lease_nothing_is_told(session: HostSession, folder: Path, token: int) -> None:
    """Another's token is refused, and no file is there."""
    with pytest.raises(LockHeldError):
        session.call("agent.note", told(folder, token=token + 1))
    assert not (folder / "agent").exists()


def test_a_key_cannot_leave_its_folder(session: HostSession, folder: Path, token: int) -> None:
    """A name with a way out is refused."""
    with pytest.raises(SpecctlError, match="is no name"):
        session.call("agent.note", told(folder, token=token, keys={"../server.json": "x"}))


def test_a_server_that_is_taken_off_is_forgotten(session: HostSession, folder: Path, token: int) -> None:
    """Note and keys go; a server that was never told of has nothing to forget."""
    session.call("agent.note", told(folder, token=token))
    assert agent_note.forget(str(folder)) == ["agent"]
    assert agent_note.forget(str(folder)) == []
    assert not (folder / "agent").exists()


def test_sharing_without_servers_does_nothing(tmp_path: Path) -> None:
    """A host without a state folder, or with files in it that are no server."""
    agent_note.share_all(str(tmp_path / "none"))
    (tmp_path / "file").write_text("")
    agent_note.share_all(str(tmp_path))
