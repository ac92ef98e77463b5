"""Starts of a real SGLang that come to nothing on a host where nothing served before: diagnosed, ended, cleared away."""

from __future__ import annotations

import signal

import pytest

from tests.fleet.site import Site, wait_for_line
from tests.fleet.waiting import until
from tests.sglang import environment
from tests.sglang.site import HOST, PORT, UNIT, inventory

pytestmark = pytest.mark.sglang

ACT_S = 420.0


def assert_nothing_left(site: Site) -> None:
    """Require that no process of the engine and no listener is left on the host."""
    host = site.host(HOST)
    assert host.console(["pgrep", "--full", "sglang"]).stdout == ""
    assert str(PORT) not in host.output(["ss", "-ltn"])


def test_damaged_weights_stop_a_first_deploy(bare_site: Site) -> None:
    """With nothing to go back to, a start that fails in the scheduler ends named, stopped and without leftovers: exit 8."""
    where = "/srv/damaged"
    for file in (environment.models() / "target").iterdir():
        content = file.read_bytes()
        bare_site.host(HOST).put(f"{where}/{file.name}", content[:-1000] if file.suffix == ".safetensors" else content)
    bare_site.write(inventory(target=where))

    done = bare_site.run("deploy", "--host", HOST, "--algo", "none", "--yes", timeout_s=ACT_S)

    bare_site.write(inventory())
    assert done.returncode == 8, done.stderr
    assert "F015" in done.stderr
    assert bare_site.records(HOST)[-1]["result"] == "stopped: no healthy release"
    assert bare_site.row(HOST)["state"] == "not deployed"
    assert bare_site.unit(HOST, "ActiveState", "LoadState") == {"ActiveState": "inactive", "LoadState": "not-found"}
    assert_nothing_left(bare_site)


def test_interrupt_during_the_load_ends_the_engine(bare_site: Site) -> None:
    """Ctrl-C while the engine has no handler for SIGTERM yet ends it at once, children included."""
    process = bare_site.start("deploy", "--host", HOST, "--algo", "none", "--yes")
    try:
        wait_for_line(process, "start")
        until(
            lambda: "sglang" in bare_site.host(HOST).console(["pgrep", "-fa", "sglang::"]).stdout,
            what="the engine's children run",
            within_s=120.0,
        )
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 8, errors
    assert "interrupted by the operator" in errors
    assert bare_site.unit(HOST, "ActiveState")["ActiveState"] == "inactive"
    assert bare_site.host(HOST).console(["systemctl", "is-enabled", UNIT]).returncode != 0
    assert_nothing_left(bare_site)
