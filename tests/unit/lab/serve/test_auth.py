"""Who may call which route (the recorded tables are in the contract tests)."""

from __future__ import annotations

import pytest

from specctl.lab.serve.auth import Keys

BOTH = Keys(api="k1", admin="k2")


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/ready", "/metrics"])
def test_probes_are_open(path: str) -> None:
    """Probes and metrics never need a key."""
    assert BOTH.allow(path, "GET", None)


def test_each_key_opens_its_own_routes_only() -> None:
    """With both keys the admin key is refused on ordinary routes and the API key on control routes."""
    assert [BOTH.allow("/generate", "POST", f"Bearer {key}") for key in ("k1", "k2", "x")] == [True, False, False]
    assert [BOTH.allow("/flush_cache", "POST", f"Bearer {key}") for key in ("k1", "k2", "x")] == [False, True, False]


def test_control_falls_back_to_the_api_key() -> None:
    """Without an admin key the API key guards the control routes; without either they are open."""
    assert [Keys(api="k1", admin=None).allow("/flush_cache", "POST", given) for given in (None, "Bearer k1")] == [
        False,
        True,
    ]
    assert Keys(api=None, admin=None).allow("/flush_cache", "POST", None)


def test_other_schemes_do_not_pass() -> None:
    """Only a bearer token counts, whole and in its own case."""
    assert not any(
        BOTH.allow("/generate", "POST", given) for given in ("k1", "Basic k1", "bearer k1", "Bearer k1 ", "Bearer ", "")
    )
