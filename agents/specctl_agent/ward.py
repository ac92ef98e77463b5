"""One server in the agent's care: its samplers, what is known of it, what is decided, what is done, and what is kept of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from specctl.control.mode import Mode
from specctl.control.policy_types import Act, Hold, Means, Now, SetTable
from specctl.control.rates import Rates
from specctl.control.table import Table
from specctl.fleet.types import AgentMode
from specctl.rollout import reading
from specctl.rollout.agent_moves import WHO
from specctl_agent.acting import REFUSED, Acting, Report
from specctl_agent.actuators import Cost
from specctl_agent.decisions import DecisionJournal
from specctl_agent.errands import Done, Errands
from specctl_agent.eyes import endpoint, open_eyes
from specctl_agent.gpu_watch import GpuWatch
from specctl_agent.here import Graphics
from specctl_agent.keeping import Keeping
from specctl_agent.log import ERROR, INFO, WARNING, Log
from specctl_agent.mind import Beside, Mind, means_of, text_of
from specctl_agent.orders import Orders, Standing
from specctl_agent.pictures import RANKS, ServerPicture, SwitchCount
from specctl_agent.places import Place
from specctl_agent.put_there import PutThere
from specctl_agent.samplers.runner import Slot
from specctl_agent.watch import Watch
from specctl_agent.ways import Ways, WaysSampler

MEND_EACH_S = 60.0
# The profile changes slowly, and a model made anew costs milliseconds.
RATES_EACH_S = 10.0
STOP_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a ward needs of the agent around it."""

    keeping: Keeping
    orders: Orders
    journal: DecisionJournal
    log: Log
    open_hands: Callable[[Place], Acting]
    rates: Callable[[Place, Watch, Now, Graphics], Rates]
    find: Callable[[str], Place | None]


@dataclass(slots=True)
class Ward:
    """A server; all but `picture` is for the loop alone."""

    tools: Tools
    watch: Watch
    mind: Mind
    errands: Errands
    ways: Slot[Ways]
    changes: int = 0
    lost_s: float = 0.0
    switches: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    put_there: PutThere = field(default_factory=PutThere)
    _sent: Act | None = None
    _standing: Standing = field(default_factory=Standing)
    _mend_s: float = 0.0
    _ways: Ways | None = None
    _ways_from: Mode | None = None
    _rates: Rates | None = None
    _rates_s: float = 0.0
    _rates_for: Mode | None = None

    @classmethod
    def of(cls, place: Place, tools: Tools) -> Ward:
        """Begin to care for a server, with what was known of it before."""
        loaded = tools.keeping.profile(place.name).load()
        if loaded.said is not None:
            tools.log(WARNING, "profile", server=place.name, reason=loaded.said)
        watch = Watch(place=place, eyes=open_eyes(place), profile=loaded.profile)
        acting = tools.open_hands(place)
        ways = Slot(lambda: WaysSampler(place, acting, place.deployed))
        ward = cls(tools=tools, watch=watch, mind=Mind(place.note.server.agent), errands=Errands(acting), ways=ways)
        ward._take_up(tools.keeping.state(place.name).load())
        watch.eyes.start()
        ways.start()
        return ward

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.watch.place.name

    @property
    def conduct(self) -> AgentMode:
        """Return what the agent may do here: the inventory's mode is the most, and somebody may have ordered less."""
        said = self.watch.place.note.server.agent.mode
        return min(self._standing.conduct or said, said, key=RANKS.index)

    @property
    def expected(self) -> Mode | None:
        """Return what was put there last: by a deploy, by the agent since, or by a person; None while it is being changed."""
        if self.errands.busy is not None and self._sent is not None:
            return None
        return self.put_there.mode(self.watch.place)

    def move(self, place: Place) -> None:
        """Take up what a deploy changed; samplers begin anew where the engine answers elsewhere, or by another profile."""
        before = self.watch.place
        if before is place or self.errands.busy is not None:
            return
        self.watch.place = place
        self.mind.settings = place.note.server.agent
        acting = self.tools.open_hands(place)
        acting.live.turn = self.errands.acting.live.turn  # somebody may be asking by the old ones
        self.errands.acting = acting
        self._look_for_ways(place.deployed)
        if endpoint(before) != endpoint(place) or before.note.server.profile != place.note.server.profile:
            self.watch.eyes.stop()
            self.watch.eyes = open_eyes(place)
            self.watch.eyes.start()

    def turn(self, now: Now, gpus: GpuWatch, invocation: str | None) -> None:
        """Take one turn: take in what errands brought, look, decide, and act on it."""
        self.put_there.invocation = invocation or self.put_there.invocation
        self._standing = self.tools.orders.of(self.name)
        self._tend(now)
        for done in self.errands.collect():
            self._ended(done, now)
        self.watch.observe(now, self.expected)
        if self.errands.busy is not None:
            return
        if now.mono_s >= self._mend_s:
            self._mend_s = now.mono_s + MEND_EACH_S
            if self.errands.mend(self.watch.mode):
                return
        self._decide(now, gpus)

    def _tend(self, now: Now) -> None:
        for slot in self.slots():
            if slot.tend(now.mono_s):
                self.tools.log(WARNING, "collector-hangs", collector=slot.name)

    def _look_for_ways(self, running: Mode | None) -> None:
        """Ask anew what can be done from a mode; until the answer comes, what was known before counts."""
        place, acting = self.watch.place, self.errands.acting
        self._ways_from = running
        self.ways.stop()
        self.ways = Slot(lambda: WaysSampler(place, acting, running))
        self.ways.start()

    def slots(self) -> tuple[Slot[object], ...]:
        """Return the server's samplers."""
        return (*self.watch.eyes.each(), self.ways)

    def _decide(self, now: Now, gpus: GpuWatch) -> None:
        told = self.watch.expected if self.watch.followed else self.watch.mode
        if told is not None and told != self._ways_from:
            self._look_for_ways(told)
        self._ways = self.ways.read(now.mono_s).value or self._ways
        if now.mono_s >= self._rates_s or self.watch.mode != self._rates_for:
            self._rates_s, self._rates_for = now.mono_s + RATES_EACH_S, self.watch.mode
            graphics = gpus.graphics(self.watch.place.note.server.gpus)
            self._rates = self.tools.rates(self.watch.place, self.watch, now, graphics)
        holder = self.errands.acting.holder()
        beside = Beside(
            ways=self._ways,
            rates=self._rates,
            gpu_troubles=gpus.troubles(self.watch.place.note.server.gpus),
            lease_holder=None if holder == WHO else holder,
        )
        if self.mind.think(self.watch, beside, self._standing, now):
            self._tell()
        decision = self.mind.decision
        if decision is None or isinstance(decision, Hold) or self.conduct is not AgentMode.ACT:
            return
        if isinstance(decision, SetTable):
            self._send_table(decision)
        else:
            self._send(decision)

    def _tell(self) -> None:
        """Write a new decision into its journal and, unless only observed, one line into the log."""
        self.changes += 1
        entry = self.mind.entry(self.name, self.conduct)
        self.tools.journal.append(entry)
        acts = not isinstance(self.mind.decision, Hold)
        self.tools.log(
            INFO,
            "decision",
            server=self.name,
            decision=entry["decision"],
            conduct=self.conduct.value,
            rule=entry["rule"],
            reason=entry["reason"],
            would=True if acts and self.conduct is not AgentMode.ACT else None,
        )

    def _send(self, act: Act) -> None:
        old = self.watch.mode
        if old is None:
            return
        self._sent = act
        cost = Cost(means_of(act).value)
        self.tools.log(INFO, "switch", server=self.name, old=old, new=act.mode, means=cost.value, reason=act.why.reason)
        self.errands.send(cost, old, act.mode, act.why.reason, conduct=self.conduct, held=self._standing.held)

    def _send_table(self, act: SetTable) -> None:
        base = self.expected
        if base is None:
            return
        self.tools.log(INFO, "table", server=self.name, table=act.table or "none", reason=act.why.reason)
        self.errands.send_table(act.table, base, conduct=self.conduct, held=self._standing.held)

    def _ended(self, done: Done, now: Now) -> None:
        """Take in how an errand ended."""
        if done.table:
            self._given(done.given, done.report, now)
            return
        report, act = done.report, self._sent
        self._sent = None
        level = INFO if report.done else WARNING if report.result == REFUSED else ERROR
        self.tools.log(
            level,
            "switched",
            server=self.name,
            result=report.result,
            mode=report.mode,
            took_s=report.took_s,
            reason=report.reason,
        )
        if done.old is not None and done.new is not None and done.cost is not None:
            key = (str(done.old), str(done.new), done.cost.value, report.result)
            self.switches[key] = self.switches.get(key, 0) + 1
            self.lost_s += report.took_s
        if report.mode is not None and (done.cost is Cost.LIVE or done.cost is None):
            self.put_there.move(report.mode, self.watch.place)
        place = self.tools.find(self.name)
        if place is not None:
            self.move(place)  # a restart has changed what is deployed: nothing must be decided by what was
        if act is not None and done.old is not None:
            if report.done:
                self.mind.arrived(done.old, act, now, report.took_s)
            elif report.result == REFUSED:
                self.mind.refused(act.price.means, report.reason, now)
            else:
                self.mind.failed(act, report.reason, now)
        self.save()

    def _given(self, table: Table | None, report: Report, now: Now) -> None:
        """Take in whether the engine follows the table that it was given; where it does not, it is not told again for a while."""
        level = INFO if report.done else WARNING if report.result == REFUSED else ERROR
        self.tools.log(level, "table-given", server=self.name, result=report.result, reason=report.reason)
        if not report.done:
            self.mind.refused(Means.LIVE, report.reason, now)
        else:
            self.watch.given(table, now)

    def picture(self, now: Now) -> ServerPicture:
        """Return what is to be shown of the server."""
        watch, pin, frozen = self.watch, self._standing.pin, self.mind.state.frozen
        return ServerPicture(
            server=self.name,
            conduct=self.conduct,
            allowed=watch.place.note.server.agent.mode,
            modes=self._ways.modes if self._ways is not None else watch.place.startable,
            mode=watch.mode,
            told_at=None if watch.place.told is None else watch.place.told.at,
            table=None if watch.table is None else str(watch.table),
            sample=watch.sample,
            sample_age_s=watch.look_age_s,
            load=watch.load,
            now=watch.now,
            figures=watch.figures,
            info=watch.info,
            decided=self.mind.decided,
            grounds=None if self.mind.decided is None else self.mind.entry(self.name, self.conduct),
            acting=self.errands.busy,
            held=self._standing.held,
            pinned=None if pin is None else f"{pin.mode} ({pin.reason}, {pin.who})",
            pin_left_s=None if pin is None else pin.until.left_s(now),
            frozen=None if frozen is None else frozen.reason,
            findings=watch.findings,
            gain_ratio=self.mind.gain_ratio,
            mode_s=dict(watch.mode_s),
            switches=tuple(
                SwitchCount(old=old, new=new, means=means, result=result, count=count)
                for (old, new, means, result), count in sorted(self.switches.items())
            ),
            lost_s=self.lost_s,
            history=tuple(watch.history),
        )

    def status(self) -> str:
        """Return a few words for `systemctl status`."""
        decision = text_of(self.mind.decision) if self.mind.decision is not None else "nothing decided"
        return f"{self.name} {self.watch.mode or 'unknown'}, {decision} ({self.conduct.value})"

    def save(self) -> None:
        """Put on the disk what must survive a restart."""
        complaints, subject = self.tools.keeping.complaints, f"profile of {self.name}"
        said = self.tools.keeping.profile(self.name).save(self.watch.profile)
        if said is None:
            complaints.over(subject)
        else:
            complaints.trouble(subject, said)
        self.tools.keeping.state(self.name).save(
            {
                "mode_s": self.watch.mode_s,
                "lost_s": self.lost_s,
                "switches": [[*key, count] for key, count in self.switches.items()],
                "moved": self.put_there.plain(),
                "policy": self.mind.plain(),
            }
        )

    def _take_up(self, fields: Mapping[str, object]) -> None:
        """Take up what an agent before knew; what cannot be meant is left out, and that is said of the policy's state."""
        self.watch.mode_s.update(_seconds(fields.get("mode_s")))
        self.lost_s = reading.number(fields.get("lost_s")) or 0.0
        rows = fields.get("switches")
        for row in rows if isinstance(rows, list) else ():
            match row:
                case [str(old), str(new), str(means), str(result), int(count)]:
                    self.switches[old, new, means, result] = count
        self.put_there.take_up(reading.mapping(fields.get("moved")))
        if "policy" in fields and (reason := self.mind.take_up(fields["policy"])) is not None:
            self.tools.log(ERROR, "policy-state", server=self.name, reason=reason, then="starting clean")

    def close(self) -> None:
        """End the samplers and save; an errand under way is left to its journal, where it takes longer."""
        self.watch.eyes.stop()
        self.ways.stop()
        if not self.errands.join(STOP_S):
            self.tools.log(WARNING, "errand-left", server=self.name, errand=self.errands.busy)
        self.save()


def _seconds(value: object) -> Mapping[str, float]:
    found = {name: reading.number(seconds) for name, seconds in reading.mapping(value).items()}
    return {name: seconds for name, seconds in found.items() if seconds is not None and seconds >= 0}
