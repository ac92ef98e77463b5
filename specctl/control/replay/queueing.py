"""A server that requests share, event by event: they queue, are read, decode together; a switch stops it as it would a real one.

At most `max_running` requests run and share the mode's rate equally (processor sharing); the others wait in order of arrival.
Reading the prompts of those let in stops decoding, as in an engine that prefills first. A switch that drains lets nobody in
until the running ones have ended and the server is back; a live one stops decoding for its cost and keeps all requests.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right

from specctl.control.mode import Mode
from specctl.control.replay.load import Requests
from specctl.control.replay.outage import Outage
from specctl.control.replay.service import Service

NEVER = math.inf
# What is left of an answer below this counts as nothing: whether two requests end together is not for rounding to decide.
EVEN_TOKENS = 1e-6


class Server:
    """One server that works through requests; `now` moves only forward, by `advance`.

    `finished_s` has when each request ended, infinite for those that have not; `lost_s` the time in which switches kept new
    requests out or, where they are live, stopped decoding; `log`: when a mode began to serve, and None when a switch began.
    """

    def __init__(self, service: Service, requests: Requests, mode: Mode) -> None:
        self.now = 0.0
        self.mode = mode
        self.lost_s = 0.0
        self.switches = 0
        self.log: list[tuple[float, Mode | None]] = [(0.0, mode)]
        self.finished_s: list[float] = [NEVER] * len(requests)
        self._requests = requests
        self._prefill_s = service.prefill_s
        self._slots = service.max_running
        self._rates = {each: service.by_running(each) for each in service.rates}
        self._arrived = 0  # requests that are there or were
        self._next_s = requests.at_s[0]  # when the next one arrives
        self._admitted = 0  # of those, requests that were let in
        self._ended = 0
        self._ended_tokens = 0
        # Tokens that a request would have by now had it decoded since the beginning: one number moves all that decode.
        self._share = 0.0
        self._decoding: list[tuple[float, int]] = []  # heap: the share at which a request ends, and its number
        self._stalled_until = 0.0  # nothing decodes before
        self._goal: Mode | None = None  # the mode of a switch under way
        self._outage: Outage | None = None
        self._closed_since: float | None = None
        self._move(0.0)

    @property
    def running(self) -> int:
        """Requests that were let in and have not ended."""
        return self._admitted - self._ended

    @property
    def waiting(self) -> int:
        """Requests that are there and were not let in yet."""
        return self._arrived - self._admitted

    @property
    def switching(self) -> bool:
        """Claim that a switch is under way."""
        return self._goal is not None

    @property
    def idle(self) -> bool:
        """Claim that every request of the trace has ended."""
        return self._ended == len(self.finished_s)

    @property
    def served(self) -> float:
        """The tokens that were generated so far, those of requests that have not ended too."""
        outputs = self._requests.outputs
        return self._ended_tokens + sum(outputs[each] - (end - self._share) for end, each in self._decoding)

    def switch(self, mode: Mode, outage: Outage) -> None:
        """Begin a switch; raises ValueError while another is under way."""
        if self._goal is not None:
            raise ValueError("a switch is under way")
        self._goal, self._outage = mode, outage
        self._closed_since = self.now
        self.switches += 1
        self.log.append((self.now, None))
        if not outage.drains:
            self._stalled_until = max(self._stalled_until, self.now) + outage.seconds
            if outage.seconds == 0:
                self._resume()
        elif self.running == 0:
            self._leave()

    def advance(self, until: float) -> None:
        """Let time pass until a moment, and everything happen that happens before it or at it."""
        self._let_in()
        while self.now < until:
            if self.now < self._stalled_until:
                self._move(min(until, self._stalled_until))
                if self.now >= self._stalled_until:
                    self._resume()
            else:
                self._decode(until)
            self._let_in()

    def _decode(self, until: float) -> None:
        """Decode until a request ends, one arrives that can be let in, or the moment given."""
        running = len(self._decoding)
        if running == 0:
            self._move(min(until, self._next_s))
            return
        pace = self._rates[self.mode][running] / running
        end = self.now + max(0.0, self._decoding[0][0] - self._share) / pace
        open_to_all = running < self._slots and (self._outage is None or not self._outage.drains)
        stop = min(until, end, self._next_s if open_to_all else NEVER)
        self._share += (stop - self.now) * pace
        self._move(stop)
        if stop == end or self._decoding[0][0] - self._share <= EVEN_TOKENS:
            self._end_first()

    def _end_first(self) -> None:
        """Take out the request that has all its tokens, and any that ends with it."""
        decoding, finished = self._decoding, self.finished_s
        self._share = max(self._share, decoding[0][0])
        while decoding and decoding[0][0] - self._share <= EVEN_TOKENS:
            _, number = heapq.heappop(decoding)
            finished[number] = self.now
            self._ended += 1
            self._ended_tokens += self._requests.outputs[number]
        if decoding:
            return
        self._share = 0.0  # nobody holds a share: keep the number small, and with it exact
        if self._closed:
            self._leave()

    @property
    def _closed(self) -> bool:
        """Claim that a switch keeps new requests out."""
        return self._outage is not None and self._outage.drains

    def _leave(self) -> None:
        """Go away for the price of the switch, now that nothing runs."""
        assert self._outage is not None
        self._stalled_until = self.now + self._outage.seconds
        if self._outage.seconds == 0:
            self._resume()

    def _resume(self) -> None:
        """End what stopped decoding; where that was a switch, the new mode serves from now on."""
        if self._goal is None or (self._closed and self.running):
            return
        assert self._closed_since is not None
        self.lost_s += self.now - self._closed_since
        self.log.append((self.now, self._goal))
        self.mode, self._goal, self._outage, self._closed_since = self._goal, None, None, None

    def _let_in(self) -> None:
        """Let in who waits while there is room, and read their prompts, which stops decoding."""
        if self._arrived == self._admitted or self.now < self._stalled_until or self._closed:
            return
        free = min(self._slots - self.running, self.waiting)
        if free <= 0:
            return
        inputs, outputs = self._requests.inputs, self._requests.outputs
        first, self._admitted = self._admitted, self._admitted + free
        for number in range(first, self._admitted):
            heapq.heappush(self._decoding, (self._share + outputs[number], number))
        self._stalled_until = self.now + self._prefill_s * sum(inputs[first : self._admitted])

    def _move(self, moment: float) -> None:
        """Set the clock, and count who has arrived by then."""
        self.now = moment
        if moment < self._next_s:
            return
        at_s = self._requests.at_s
        self._arrived = bisect_right(at_s, moment, self._arrived)
        self._next_s = at_s[self._arrived] if self._arrived < len(at_s) else NEVER
