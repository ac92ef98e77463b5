"""Facts in one round trip: what is there is told, what is not is null, and nothing fails for it; drift in all its kinds."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from collections.abc import Mapping
from pathlib import Path

from specctl.adapters.session import HostSession
from specctl.errors import UnsupportedError
from tests.unit.host.conftest import Server, release_args, until


def _facts(server: Server, **more: object) -> Mapping[str, object]:
    row = {**server.args, "name": "k26", "python": sys.executable, "packages": ["supervisor", "sglang"], **more}
    found = server.session.call("facts", {"servers": [row]}, timeout_s=20)["servers"]
    assert isinstance(found, list)
    row = found[0]
    assert isinstance(row, dict)
    return row


def test_a_host_without_anything_has_facts_all_the_same(session: HostSession, folder: Path) -> None:
    """A server that was never deployed: nothing is known of it but what is known, and nothing fails."""
    row = {"name": "k26", "dir": str(folder), "manager": {"kind": "wrong"}, "port": 1, "target": "org/on-the-hub"}
    found = session.call("facts", {"servers": [row, {}]}, timeout_s=20)
    servers = found["servers"]
    assert isinstance(servers, list)
    first = servers[0]
    assert (first["current"], first["releases"], first["unit"], first["drift"]) == (None, [], None, None)
    assert (first["target_bytes"], first["draft_bytes"], first["lease"], first["records"]) == (None, None, None, [])
    assert first["warnings"] == ["no service manager named wrong"]
    assert isinstance(found["memory_bytes"], int)
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    assert set(warnings) == {"argument name is missing", "argument dir is missing"}


def test_a_running_server_has_all_facts(server: Server, tmp_path: Path) -> None:
    """Release, unit, port, lease, records, packages, weights: each as it is."""
    (tmp_path / "model.safetensors").write_bytes(b"x" * 77)
    server.deploy("1", "dflash")
    server.call("record.append", record={"act": "deploy", "load_s": 3.5})
    until(lambda: server.call("unit.state")["port"] == "own", "the engine owns its port")
    found = _facts(server, target=str(tmp_path), draft=str(tmp_path / "absent"))
    current = found["current"]
    assert isinstance(current, dict)
    assert (current["id"], current["algo"], current["text"]) == ("1", "dflash", server.conf())
    assert (found["releases"], found["drift"], found["port"]) == (["1"], False, "own")
    assert (found["target_bytes"], found["draft_bytes"]) == (77, None)
    assert found["records"] == [{"act": "deploy", "load_s": 3.5}]
    assert found["packages"] == {"supervisor": importlib.metadata.version("supervisor")}
    lease = found["lease"]
    assert isinstance(lease, dict)
    assert lease["owner"] == "tester"
    assert found["warnings"] == []


def test_a_release_activated_but_not_started_is_drift(server: Server) -> None:
    """When a deploy stopped between activation and start, the old process still runs: that must never read as nothing to do."""
    server.write("1", none=server.conf(), dflash=server.conf("--text", "x"))
    server.call("release.activate", id="1", algo="none")
    server.started()
    assert _facts(server)["drift"] is False
    server.call("release.activate", id="1", algo="dflash")
    drifted = _facts(server)
    server.call("unit.stop", timeout_s=10)
    server.started()
    assert drifted["drift"] is True
    assert drifted["warnings"] == ["the running process began before the current release was activated"]
    assert _facts(server)["drift"] is False


def test_activating_the_same_again_changes_nothing(server: Server) -> None:
    """A second activation of what runs is no drift and keeps `previous`."""
    server.write("1", none=server.conf(), dflash=server.conf())
    server.call("release.activate", id="1", algo="none")
    server.call("release.activate", id="1", algo="dflash")
    server.started()
    again = server.call("release.activate", id="1", algo="dflash")
    found = _facts(server)
    assert again == {"changed": False, "previous": {"id": "1", "algo": "dflash"}}
    assert (found["previous"], found["drift"]) == ({"id": "1", "algo": "none"}, False)


def test_an_edited_release_is_drift(server: Server) -> None:
    """A file of the current release that was edited by hand is named."""
    server.write("1", none=server.conf())
    server.call("release.activate", id="1", algo="none")
    (server.folder / "releases" / "1" / "none.conf").write_text("edited")
    found = _facts(server)
    assert (found["drift"], found["warnings"]) == (True, ["none.conf differs from the manifest"])


def test_the_unit_file_is_compared_with_the_release(
    session: HostSession, folder: Path, token: int, tmp_path: Path
) -> None:
    """Under systemd the unit file is a copy of the release's: activation writes it, a missing or edited one is written again."""
    manager = {"kind": "systemd", "unit": "specctl-k26.service", "unit_dir": str(tmp_path / "units")}
    (tmp_path / "units").mkdir()
    session.call("release.write", release_args(folder, "1", {"none.service": "[Service]\n"}, token))
    unit = tmp_path / "units" / "specctl-k26.service"
    for content in (None, "edited"):
        if content is not None:
            unit.write_text(content)
        with contextlib.suppress(UnsupportedError):  # systemd need not run where the unit tests do
            session.call(
                "release.activate", {"dir": str(folder), "id": "1", "algo": "none", "manager": manager, "token": token}
            )
        assert unit.read_text() == "[Service]\n"
        assert not unit.is_symlink()
