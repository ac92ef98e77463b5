"""Look at servers once, or watch them for as long as somebody does: every host by a thread of its own, so that none delays another.

`specctl status`, the dashboard and its benchmark call this. A host is a `HostSource`: ops/sights_host.py makes one over the one
connection to a host, a benchmark makes its own without any.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from specctl.control.sight import Sight, State
from specctl.control.sight_events import Event, between, decided
from specctl.control.sight_past import POINTS, Past, Rings
from specctl.errors import ConnectError, SpecctlError, UsageError
from specctl.fleet.types import Host, Server

if TYPE_CHECKING:
    from specctl.ops.contact import Contact

PERIOD_S = 1.0
LONGEST_BACKOFF_S = 30.0
EVENTS = 1000
DECISIONS_AT_FIRST = 20
CLOSE_S = 2.0
# A connection may take 10 s to stand and a look 12 s; what takes longer is told as such.
LOOK_S = 25.0

Pair = tuple[Host, Server]

Rows = tuple[Mapping[str, object], ...]


class HostSource(Protocol):
    """One host as it is looked at: `look` and `past` from one thread, `ask` from any, `close` from any.

    Contract: every call ends within a bound of its own, and raises a SpecctlError where the host does not answer; after a
    ConnectError the next `look` dials anew.
    """

    @property
    def blank(self) -> tuple[Sight, ...]:
        """Return a sight for each server, with nothing in it but what the inventory says: shown before the first look."""

    def look(self) -> tuple[Sight, ...]:
        """Return a sight for every server of the host; ages count from now."""

    def past(self, server: str) -> Past | None:
        """Return the figures of before this watch, where the host's agent kept them; None without an agent."""

    def ask(self, server: str, what: str, limit: int) -> Rows:
        """Return a server's newest `decisions`, `records` or log `lines` (each {"line": text}), oldest first."""

    def close(self) -> None:
        """Hang up, also on a look under way; idempotent, never raises."""


@dataclass(slots=True)
class _Eye:
    """One host: its source, the newest sights of it, and when (monotonic) they were seen. Its thread alone changes it."""

    source: HostSource
    sights: tuple[Sight, ...]
    seen_s: float
    rings: dict[str, Rings] = field(default_factory=dict)
    pushed_s: float | None = None
    backoff_s: float | None = None
    known: bool = False
    looked: bool = False


class Watch:
    """The newest sights of many servers, their past and what happened; `start`, then ask from any thread, then `close`."""

    def __init__(self, sources: Sequence[HostSource], *, period_s: float = PERIOD_S, points: int = POINTS) -> None:
        now_s = time.monotonic()
        self._period_s = period_s
        self._points = points
        self._eyes = [_Eye(source=source, sights=source.blank, seen_s=now_s) for source in sources]
        self._by_host = {sight.host: eye for eye in self._eyes for sight in eye.sights}
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._run, args=(eye,), name=f"specctl-eye-{number}", daemon=True)
            for number, eye in enumerate(self._eyes)
        ]

    def start(self) -> None:
        """Begin to look."""
        for thread in self._threads:
            thread.start()

    def sights(self) -> tuple[Sight, ...]:
        """Return the newest sight of every server, in the order of the sources; ages are of now."""
        now_s = time.monotonic()
        found: list[Sight] = []
        for eye in self._eyes:
            sights, seen_s = eye.sights, eye.seen_s
            found.extend(sight.later(now_s - seen_s) for sight in sights)
        return tuple(found)

    def first(self, timeout_s: float) -> bool:
        """Wait until every host was looked at once, or for so long; returns whether they were."""
        with self._changed:
            return self._changed.wait_for(lambda: all(eye.looked for eye in self._eyes), timeout_s)

    def past(self, host: str, server: str) -> Past:
        """Return the figures of a server's newest past, a point each period; without points where nothing was seen yet."""
        rings = self._eye(host).rings.get(server)
        return Past(period_s=self._period_s) if rings is None else rings.past()

    def events(self) -> tuple[Event, ...]:
        """Return what happened since the watch began, and the agents' decisions before that, in the order of their moments."""
        return tuple(sorted(self._events, key=lambda event: event.at))

    def ask(self, host: str, server: str, what: str, limit: int) -> Rows:
        """Ask a host for `decisions`, `records` or log `lines` now; waits for the answer, raises the SpecctlError of it."""
        return self._eye(host).source.ask(server, what, limit)

    def close(self) -> None:
        """End all looks and hang up; idempotent. A host that hangs is left behind after a bound."""
        if self._closing.is_set():
            return
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        closers = [threading.Thread(target=eye.source.close, daemon=True) for eye in self._eyes]
        for closer in closers:
            closer.start()
        deadline = time.monotonic() + CLOSE_S
        for thread in (*closers, *(thread for thread in self._threads if thread.ident is not None)):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _eye(self, host: str) -> _Eye:
        if host not in self._by_host:
            raise UsageError(f"host {host} is not watched")
        return self._by_host[host]

    def _run(self, eye: _Eye) -> None:
        """Look once a period; after a failure wait longer each time."""
        while not self._closing.is_set():
            began_s = time.monotonic()
            wait_s = self._turn(eye)
            self._closing.wait(max(0.0, began_s + wait_s - time.monotonic()))

    def _turn(self, eye: _Eye) -> float:
        """Look once and publish what came of it; returns after how long to look again."""
        try:
            sights = eye.source.look()
        except SpecctlError as error:
            if self._closing.is_set():
                return 0.0
            self._publish(eye, tuple(unseen(sight, error) for sight in self._aged(eye)), fresh=False)
            wait_s = eye.backoff_s or self._period_s
            eye.backoff_s = min(2 * wait_s, LONGEST_BACKOFF_S)
            return wait_s
        eye.backoff_s = None
        if not eye.known:
            eye.known = True
            self._take_up(eye, sights)
        self._publish(eye, sights, fresh=True)
        return self._period_s

    def _aged(self, eye: _Eye) -> tuple[Sight, ...]:
        since_s = time.monotonic() - eye.seen_s
        return tuple(sight.later(since_s) for sight in eye.sights)

    def _take_up(self, eye: _Eye, sights: tuple[Sight, ...]) -> None:
        """Take up what the host's agent kept of before."""
        for sight in sights:
            rings = eye.rings.setdefault(sight.server, Rings(period_s=self._period_s, points=self._points))
            if sight.agent is None:
                continue
            try:
                past = eye.source.past(sight.server)
                entries = eye.source.ask(sight.server, "decisions", DECISIONS_AT_FIRST)
            except SpecctlError:
                continue  # What happened before is a nicety: the watch goes on without.
            if past is not None:
                rings.begin(past)
            self._events.extend(
                event for entry in entries if (event := decided(entry, sight.host, sight.server)) is not None
            )

    def _publish(self, eye: _Eye, sights: tuple[Sight, ...], *, fresh: bool) -> None:
        before = {sight.server: sight for sight in eye.sights}
        now_s = time.monotonic()
        for sight in sights:
            old = before.get(sight.server)
            # The first look at all changes nothing: it finds out.
            if old is not None and eye.looked:
                self._events.extend(between(old, sight, time.time()))
        self._push(eye, sights if fresh else (), now_s)
        eye.sights, eye.seen_s, eye.looked = sights, now_s, True
        with self._changed:
            self._changed.notify_all()

    def _push(self, eye: _Eye, sights: tuple[Sight, ...], now_s: float) -> None:
        """Add a point to each line; periods that went by without a look are gaps."""
        missed = 0 if eye.pushed_s is None else round((now_s - eye.pushed_s) / self._period_s) - 1
        if missed < 0:
            return
        eye.pushed_s = now_s
        seen = {sight.server: sight for sight in sights}
        for server, rings in eye.rings.items():
            for _ in range(min(missed, self._points)):
                rings.push(None)
            rings.push(seen.get(server))


def sources(
    pairs: Sequence[Pair], *, once: bool = False, dial: Callable[[Host], Contact] | None = None
) -> tuple[HostSource, ...]:
    """Return a source for every host of the pairs, in their order; nothing is dialled before the first look, but by `dial`."""
    from specctl.ops.contact import contact
    from specctl.ops.sights_host import SessionSource

    by_host: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_host.setdefault(pair[0].name, []).append(pair)
    return tuple(
        SessionSource(rows[0][0], [server for _, server in rows], once=once, dial=dial or contact)
        for rows in by_host.values()
    )


def look(
    pairs: Sequence[Pair], *, limit_s: float = LOOK_S, dial: Callable[[Host], Contact] | None = None
) -> tuple[Sight, ...]:
    """Return a sight of every server, all hosts at once; a host that gives none within the limit is sights with the reason.

    `dial`: what connects, where that was begun already. The order is that of the pairs; nothing stays open but what hangs.
    """
    found = look_at(sources(pairs, once=True, dial=dial), limit_s=limit_s)
    by_name = {(sight.host, sight.server): sight for sight in found}
    return tuple(by_name[host.name, server.name] for host, server in pairs)


def look_at(hosts: Sequence[HostSource], *, limit_s: float = LOOK_S) -> tuple[Sight, ...]:
    """Return the sights of these hosts, all asked at once, and hang up; as `look`."""
    found: dict[int, tuple[Sight, ...]] = {}

    def one(place: int, source: HostSource) -> None:
        try:
            found[place] = source.look()
        except SpecctlError as error:
            found[place] = tuple(unseen(sight, error) for sight in source.blank)
        finally:
            source.close()

    threads = [threading.Thread(target=one, args=pair, daemon=True, name="specctl-look") for pair in enumerate(hosts)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    seen = dict(found)  # What comes from now on comes too late.
    missing = [tuple(unseen(sight, _late(sight.host, limit_s)) for sight in source.blank) for source in hosts]
    return tuple(sight for place, sights in enumerate(missing) for sight in seen.get(place, sights))


def _late(host: str, limit_s: float) -> ConnectError:
    return ConnectError(f"no answer within {limit_s:.0f} s", hint=f"specctl exec --host {host} -- uptime", host=host)


def unseen(sight: Sight, error: SpecctlError) -> Sight:
    """Return what is left of a sight when its host does not answer: the same figures, which grow old, and the reason."""
    state = State.UNREACHABLE if isinstance(error, ConnectError) else State.UNKNOWN
    return replace(sight, state=state.value, reason=error.message, hint=error.hint, ready=None, loading=None)
