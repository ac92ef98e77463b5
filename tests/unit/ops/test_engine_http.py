"""What specctl asks an engine over HTTP, against the lab's server on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from specctl.fleet.types import Server
from specctl.ops.contact import Contact, contact
from specctl.ops.engine_http import EngineClient
from tests import fakes, labmodels
from tests.labserver import LabServer

KEY, ADMIN_KEY = "sk-user-0123456789", "sk-admin-0123456789"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Contact]:
    """Yield a contact to this machine with a state folder of its own."""
    reached = contact(replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path)))
    yield reached
    reached.close()


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Yield a server that runs with both keys, which the operator's environment holds."""
    monkeypatch.setenv("API_KEY", KEY)
    monkeypatch.setenv("ADMIN_API_KEY", ADMIN_KEY)
    keys = ("--api-key", KEY, "--admin-api-key", ADMIN_KEY)
    with LabServer(labmodels.write(tmp_path / "models"), tmp_path, *keys) as running:
        running.ready()
        yield replace(fakes.with_secrets("api_key", "admin_api_key"), port=running.port)


def test_server_with_both_keys_answers_what_is_asked(here: Contact, guarded: Server) -> None:
    """The engine refuses the admin key where the API key belongs: with both set, what the gate and the drain ask is answered."""
    client = EngineClient.of(here, guarded)
    asked = ("/server_info", "/v1/loads", "/ready")
    assert {path: client.get(path).status for path in asked} == dict.fromkeys(asked, 200)
    assert client.post("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 1}}, timeout_s=20).status == 200
    assert client.running_requests() == 0


def test_server_whose_key_cannot_be_read_refuses(
    here: Contact, guarded: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the key in the operator's environment the engine's refusal is the answer, and nobody can tell what runs."""
    monkeypatch.delenv("API_KEY")
    client = EngineClient.of(here, guarded)
    assert client.get("/server_info").status == 401
    assert client.running_requests() is None
