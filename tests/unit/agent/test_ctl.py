"""`specctl-agent ctl`: what people type becomes the request that they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.control import wire
from specctl.control.mode import mode
from specctl.errors import ConnectError, SpecctlError
from specctl.fleet.types import AgentMode
from specctl_agent import ctl


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("status", wire.Status()),
        ("snapshot", wire.Snapshot()),
        ("why", wire.Why()),
        ("why 5", wire.Why(limit=5)),
        ("history 600", wire.History(points=600)),
        (
            "pin ddtree:tree_budget=16 3600 a demo",
            wire.Pin(who="me", mode=mode("ddtree", {"tree_budget": 16}), for_s=3600.0, reason="a demo"),
        ),
        ("unpin", wire.Unpin(who="me")),
        ("hold new firmware", wire.Hold(who="me", reason="new firmware")),
        ("resume", wire.Resume(who="me")),
        ("mode act", wire.SetConduct(who="me", conduct=AgentMode.ACT)),
        ("mode inventory", wire.SetConduct(who="me", conduct=None)),
    ],
)
def test_words_become_requests(words: str, request_: wire.Request) -> None:
    """Each request can be typed."""
    assert ctl.wire_request(words.split(), None, "me") == request_


@pytest.mark.parametrize(
    "words",
    [
        "",
        "fly",
        "status now",
        "why x",
        "why 0",
        "pin",
        "pin warp 60 x",
        "pin none soon x",
        "pin none 60",
        "hold",
        "mode fast",
    ],
)
def test_what_cannot_be_meant(words: str) -> None:
    """What is no request is refused before anything is asked."""
    with pytest.raises(SpecctlError):
        ctl.wire_request(words.split(), None, "me")


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an agent it says so, and how to look."""
    with pytest.raises(ConnectError, match="no agent answers"):
        ctl.put(wire.Status(), str(tmp_path / "agent.sock"))
    assert ctl.run(["--socket", str(tmp_path / "agent.sock"), "status"], "me") == 3
    assert "systemctl status specctl-agent" in capsys.readouterr().err
