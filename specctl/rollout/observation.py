"""What the watcher on a host saw at one moment, and its wire form; written by host/watch.py, judged by rollout/gate.py."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from specctl.rollout import reading


class Port(enum.Enum):
    """Who answers on the server's port: nobody, the server's own processes, or somebody else's."""

    REFUSED = "refused"
    OWN = "own"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitState:
    """The service manager's word on the server; None: it did not say.

    `active` and `sub` are systemd's words (supervisor's are translated); `invocation` changes with every start;
    `exit_status` is the status of the last main process, a signal as 128 + its number, as a shell counts.
    """

    active: str | None = None
    sub: str | None = None
    invocation: str | None = None
    main_pid: int | None = None
    restarts: int | None = None
    result: str | None = None
    exit_status: int | None = None

    @classmethod
    def from_wire(cls, value: object) -> UnitState:
        """Build it from a host's answer; a missing or ill-typed field is None."""
        fields: Mapping[str, object] = value if isinstance(value, Mapping) else {}
        return cls(
            active=reading.text(fields.get("active")),
            sub=reading.text(fields.get("sub")),
            invocation=reading.text(fields.get("invocation")),
            main_pid=reading.whole(fields.get("main_pid")),
            restarts=reading.whole(fields.get("restarts")),
            result=reading.text(fields.get("result")),
            exit_status=reading.whole(fields.get("exit_status")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at a server that is starting or running.

    `at_s`: seconds on the host's monotonic clock. `ready`: HTTP status of /ready (None: no answer). `lines`: log lines of this
    invocation that came since the last look, carriage-return updates already split. Figures of the server's processes in sum:
    `rss_bytes`, `read_bytes` (from disk, /proc/PID/io), `cpu_s`; `gpu_bytes` on all GPUs. None: not known.
    """

    at_s: float
    unit: UnitState
    port: Port | None = None
    ready: int | None = None
    lines: tuple[str, ...] = ()
    processes: int | None = None
    rss_bytes: int | None = None
    read_bytes: int | None = None
    cpu_s: float | None = None
    gpu_bytes: int | None = None
    journal_lost: bool = False

    @classmethod
    def from_wire(cls, event: Mapping[str, object]) -> Observation:
        """Build it from one JSON event of the watcher; a missing or ill-typed field is None (never a guess)."""
        lines = event.get("lines")
        port = event.get("port")
        return cls(
            at_s=reading.number(event.get("at_s")) or 0.0,
            unit=UnitState.from_wire(event.get("unit")),
            port=next((p for p in Port if p.value == port), None),
            ready=reading.whole(event.get("ready")),
            lines=tuple(str(line) for line in lines) if isinstance(lines, list) else (),
            processes=reading.whole(event.get("processes")),
            rss_bytes=reading.whole(event.get("rss_bytes")),
            read_bytes=reading.whole(event.get("read_bytes")),
            cpu_s=reading.number(event.get("cpu_s")),
            gpu_bytes=reading.whole(event.get("gpu_bytes")),
            journal_lost=event.get("journal_lost") is True,
        )
