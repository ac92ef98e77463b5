"""Who may call which route: SGLang's rules, as recorded with no key, an API key, an admin key and both.

With both keys the admin key is refused on ordinary routes and the API key on control routes. Probes and metrics are always open.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

OPEN_PREFIXES = ("/health", "/ready", "/metrics")
ADMIN_PATHS = frozenset(
    {
        "/flush_cache",
        "/set_internal_state",
        "/abort_request",
        "/pause_generation",
        "/continue_generation",
        "/configure_logging",
        "/freeze_gc",
        "/list_external_corpora",
        "/slow_down",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys that guard the server; None means that there is none."""

    api: str | None
    admin: str | None

    def allow(self, path: str, method: str, authorization: str | None) -> bool:
        """Tell whether a request may pass."""
        if method == "OPTIONS" or path.startswith(OPEN_PREFIXES):
            return True
        wanted = (self.admin or self.api) if path in ADMIN_PATHS else self.api
        return wanted is None or _same(authorization, f"Bearer {wanted}")


def _same(given: str | None, wanted: str) -> bool:
    """Compare in a time that does not tell how much was right."""
    return given is not None and secrets.compare_digest(given.encode(), wanted.encode())
