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


def test_a_release_that_cannot_be_read_is_not_taken_for_none(server: Server) -> None:
    """Why it is not known what is deployed stands beside the null; where it is known, there is no reason."""
    server.deploy("1", "dflash")
    assert _facts(server)["unreadable"] is None
    manifest = server.folder / "releases" / "1" / "manifest.json"
    manifest.unlink()
    manifest.mkdir()
    found = _facts(server)
    assert (found["current"], found["unreadable"]) == (None, f"is a directory: {manifest}")


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


def test_a_host_without_gpus_has_its_other_facts(session: HostSession, folder: Path) -> None:
    """Where there is no driver its facts are null and nothing warns; the machine's own are there."""
    row = {"name": "k26", "dir": str(folder), "manager": {"kind": "wrong"}, "target": str(folder / "absent")}
    found = session.call("facts", {"servers": [row]}, timeout_s=20)
    for name in ("cpu_count", "cpu_model", "kernel", "limits", "iommu", "hugepages", "wall_s"):
        assert found[name] is not None, name
    disks = found["disks"]
    assert isinstance(disks, list)
    assert [disk["path"] for disk in disks] == [str(folder), str(folder / "absent")]
    servers = found["servers"]
    assert isinstance(servers, list)
    assert servers[0]["target"] == {"path": str(folder / "absent"), "there": False}


def test_brief_facts_leave_the_host_out(session: HostSession, folder: Path) -> None:
    """A command that checks nothing asks no GPU driver."""
    row = {"name": "k26", "dir": str(folder), "manager": {"kind": "wrong"}}
    found = session.call("facts", {"servers": [row], "brief": True}, timeout_s=20)
    assert set(found) == {"at_s", "wall_s", "warnings", "servers"}
    servers = found["servers"]
    assert isinstance(servers, list)
    assert servers[0]["releases"] == []


def test_an_interpreter_is_looked_at_not_started(server: Server, tmp_path: Path) -> None:
    """What is there but may not be run is told from what may."""
    (tmp_path / "python").write_text("")
    assert _facts(server)["python"] == {"path": sys.executable, "there": True, "runs": True}
    assert _facts(server, python=str(tmp_path / "python"))["python"] == {
        "path": str(tmp_path / "python"),
        "there": True,
        "runs": False,
    }
    assert _facts(server, python="/gone/python")["python"] == {"path": "/gone/python", "there": False, "runs": False}


def test_the_servers_own_processes_are_named(server: Server) -> None:
    """What the service manager counts as the server's is what preflight does not call foreign."""
    server.deploy("1", "dflash")
    until(lambda: server.call("unit.state")["port"] == "own", "the engine owns its port")
    found = _facts(server)
    unit, own = found["unit"], found["own_pids"]
    assert isinstance(unit, dict)
    assert isinstance(own, list)
    assert unit["main_pid"] in own
