"""Fold what a server's samplers saw into what is known of it, once a tick: sample, window, profile, audit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from specctl.control import audit as audits
from specctl.control import profile as profiles
from specctl.control import window as windows
from specctl.control.audit_types import AuditInput
from specctl.control.mode import Mode
from specctl.control.policy_types import Now
from specctl.control.profile import ConcurrencyProfile
from specctl.control.sample import engine_info
from specctl.control.sample.engine import EngineInfo, EngineLines, EngineLoad, EngineSample, Look, Page
from specctl.control.sample.engine_track import EngineTrack, advance
from specctl.control.table import Table
from specctl.control.window import Figures, Window
from specctl_agent.eyes import Eyes
from specctl_agent.places import Place
from specctl_agent.samplers.runner import Reading

# Lines and pages come each ten seconds: an audit between them would look at the same figures again.
AUDIT_EACH_S = 10.0
# A contradiction that is seen once may be two answers that crossed; one that stays is none.
FINDING_TIMES = 3
INFO_FRESH_S = 150.0
HISTORY = 600
# Means over minutes move slowly, and to work them out costs a millisecond.
FIGURES_EACH_S = 5.0
# What people are shown as "now": an engine publishes its sums in lumps, each 15 steps, so that one second alone says little.
NOW_S = 10.0
# What a mode brings is measured over this much of the newest past; longer would mix loads that differ.
LATELY_S = 60.0

# Running and waiting requests, tokens a second and accept length of one tick.
Moment = tuple[int | None, int | None, float | None, float | None]


@dataclass(slots=True)
class Watch:
    """What is known of one server; `observe` once a tick, by the loop alone.

    `table`: what the engine says that it follows, where it is understood; `followed`: it follows some table. `mode` is then that of
    the table at the number of requests that run now, which may be another one a moment later.
    """

    place: Place
    eyes: Eyes
    profile: ConcurrencyProfile = field(default_factory=ConcurrencyProfile)
    window: Window = field(default_factory=Window)
    sample: EngineSample | None = None
    mode: Mode | None = None
    table: Table | None = None
    followed: bool = False
    expected: Mode | None = None
    _expected_s: float = 0.0
    _given: tuple[Table | None, float] | None = None
    info: EngineInfo | None = None
    page: Page | None = None
    lines: EngineLines | None = None
    look_age_s: float | None = None
    findings: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    load: EngineLoad | None = None
    history: deque[Moment] = field(default_factory=lambda: deque(maxlen=HISTORY))
    mode_s: dict[str, float] = field(default_factory=dict)
    _track: EngineTrack = field(default_factory=EngineTrack)
    _audited_s: float | None = None
    _seen: dict[str, int] = field(default_factory=dict)
    _figures: Figures | None = None
    _lately: Figures | None = None
    _figures_s: float = 0.0

    def observe(self, now: Now, expected: Mode | None) -> None:
        """Take in what the samplers have; `expected`: what was put there last, None while that is being changed."""
        at_s = now.mono_s
        loads, pages = self.eyes.loads.read(at_s), self.eyes.pages.read(at_s)
        infos, lines = self.eyes.infos.read(at_s), self.eyes.lines.read(at_s)
        if expected != self.expected:
            self.expected, self._expected_s, self._given = expected, at_s, None
        self.info, self.lines, self.page = infos.value, lines.value, pages.value
        self.mode = self._believed(infos, expected, at_s)
        self._look_at_table(infos, loads, at_s)
        self._track, sample = advance(self._track, at_s=at_s, look=loads.value, page=pages.value, mode=self.mode)
        self.look_age_s = _age(loads)
        self.load = None if loads.value is None else loads.value.load
        self.sample = sample
        self.window = windows.observe(self.window, sample)
        if at_s - self._figures_s >= FIGURES_EACH_S:
            self._figures, self._lately, self._figures_s = None, None, at_s
        self.profile = profiles.observe(self.profile, sample, now.wall_s)
        self._count(sample)
        if self._audited_s is None or at_s - self._audited_s >= AUDIT_EACH_S:
            self._audited_s = at_s
            self._audit()

    @property
    def figures(self) -> Figures:
        """Return what the window says as a whole; worked out anew every few seconds."""
        if self._figures is None:
            self._figures = windows.figures(self.window)
        return self._figures

    @property
    def now(self) -> Figures:
        """Return what the last seconds say."""
        return windows.figures(windows.last(self.window, NOW_S))

    @property
    def tokens_s(self) -> float | None:
        """Return the tokens a second of decoding of the newest past; None where it was not all in the present mode."""
        if self._lately is None:
            self._lately = windows.figures(windows.last(self.window, LATELY_S))
        found = self._lately
        known = self.mode is not None and found.modes == frozenset({self.mode}) and found.decoded is not None
        return found.tokens_s if known else None

    def _believed(self, infos: Reading[EngineInfo], expected: Mode | None, at_s: float) -> Mode | None:
        """Return what the engine runs: what was put there, in the engine's own fuller words; None where those contradict it.

        Words from before it was put there, and words that are old, count for nothing.
        """
        info, age_s = infos.value, infos.age_s
        if expected is None or info is None or age_s is None or age_s > min(INFO_FRESH_S, at_s - self._expected_s):
            return expected
        deployed = {**self.place.knobs, expected.algo: dict(expected.knobs)}
        claimed = engine_info.claimed(info, self.place.note.server.profile, deployed)
        if claimed is None:
            return expected
        told = dict(claimed.knobs)
        same = claimed.algo == expected.algo and all(told.get(name) == value for name, value in expected.knobs)
        return claimed if same else None

    def given(self, table: Table | None, now: Now) -> None:
        """Note that the engine follows another table, or none, from now on: its words from before count for nothing."""
        self._given = table, now.mono_s

    def _look_at_table(self, infos: Reading[EngineInfo], loads: Reading[Look], at_s: float) -> None:
        """Take the mode of the table that the engine follows, if it follows one: that of no table is not what decodes."""
        profile, info, age_s = self.place.note.server.profile, infos.value, infos.age_s
        told_s = self._expected_s if self._given is None else self._given[1]
        if info is not None and age_s is not None and age_s <= at_s - told_s:
            self.followed, self.table = engine_info.follows(info, profile), engine_info.table(info, profile)
        else:
            self.table = None if self._given is None else self._given[0]
            self.followed = self.table is not None
        if not self.followed or self.mode is None:
            return
        running = None if loads.value is None or loads.value.load is None else loads.value.load.running
        self.mode = None if self.table is None or running is None else self.table.at(running)

    def _count(self, sample: EngineSample) -> None:
        span = sample.span_s
        if span is not None and self.mode is not None and sample.concurrency is not None:
            name = str(self.mode)
            self.mode_s[name] = self.mode_s.get(name, 0.0) + span
        decoded = sample.decoded
        tokens_s = decoded.tokens / span if decoded is not None and span else None
        accept_length = None if decoded is None else decoded.accept_length
        self.history.append((sample.running, sample.waiting, tokens_s, accept_length))

    def _audit(self) -> None:
        profile = self.place.note.server.profile
        found = audits.audit(
            AuditInput(
                # What an engine that follows a table told of a past window was of more modes than one.
                mode=None if self.followed else self.mode,
                window=self.window,
                counters=None if self.page is None else self.page.counters,
                lines=self.lines,
                has_tree_line=profile.tree_line is not None,
                counts_root=profile.counts_root,
                counts_bonus=profile.counts_bonus,
            )
        )
        seen = {finding.id: self._seen.get(finding.id, 0) + 1 for finding in found.findings}
        self._seen = seen
        lasting = [finding for finding in found.findings if seen[finding.id] >= FINDING_TIMES]
        self.findings = tuple(finding.id for finding in lasting)
        self.blocking = tuple(f"{finding.id}: {finding.reason}" for finding in lasting if finding.blocks)


def _age(reading: Reading[Look]) -> float | None:
    return reading.age_s
