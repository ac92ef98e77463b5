"""The state of a server as its service manager tells it, in systemd's words, and as it crosses the wire."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional


class State(NamedTuple):
    """None: the manager did not say. `exit_status` counts a signal as 128 + its number; `group` is the control group."""

    active: Optional[str] = None
    sub: Optional[str] = None
    invocation: Optional[str] = None
    main_pid: Optional[int] = None
    restarts: Optional[int] = None
    result: Optional[str] = None
    exit_status: Optional[int] = None
    loaded: Optional[str] = None
    needs_reload: Optional[bool] = None
    enabled: Optional[str] = None
    group: Optional[str] = None

    @property
    def at_rest(self) -> bool:
        """Whether the manager neither runs it nor is about to."""
        return self.active in ("inactive", "failed")

    def as_wire(self) -> Dict[str, object]:
        """Return the fields that rollout/observation.py reads."""
        return {
            "active": self.active,
            "sub": self.sub,
            "invocation": self.invocation,
            "main_pid": self.main_pid,
            "restarts": self.restarts,
            "result": self.result,
            "exit_status": self.exit_status,
        }
