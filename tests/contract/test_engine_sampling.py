"""The agent's engine samplers against the lab's real server: idle, busy, a live change of algo, a pause, a restart, lies."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles, read_bytes
from specctl.control import profile as profiles
from specctl.control import window as windows
from specctl.control.audit import Audit, audit
from specctl.control.audit_types import AuditInput
from specctl.control.mode import Mode, mode
from specctl.control.profile import ConcurrencyProfile
from specctl.control.sample import engine_info, engine_lines
from specctl.control.sample.engine import Activity, EngineLines, EngineSample, Look, Page
from specctl.control.sample.engine_track import EngineTrack, advance
from specctl.control.window import Window
from specctl.engines import lab
from specctl.engines.types import EngineProfile
from specctl.fleet.resolve import resolve
from specctl_agent.samplers.engine import Endpoint, EngineInfos, EngineLoads, EngineMetrics
from specctl_agent.samplers.engine_http import NoAnswerError
from specctl_agent.samplers.journal import EngineLog
from specctl_agent.samplers.journal_source import FileSource
from tests import labmodels
from tests.labserver import ALLOW_FAULTS, LabServer, free_port, wait_until

pytestmark = pytest.mark.slow

INVENTORY = b"""
models: {tiny: {path: /srv/tiny}, tiny-draft: {kind: draft, path: /srv/tiny-draft, target: tiny}}
servers: {chat: {engine: lab, target: tiny, draft: tiny-draft, port: 30001, algo: dflash}}
hosts: {here: {connect: {via: local}, servers: [chat], launch: {python: /usr/bin/python3}}}
"""
METRICS = lab.ENGINE.metrics
CHAIN = mode("dflash", {"block_size": 8})
TREE = mode("ddtree", {"block_size": 8, "topk_cap": 8, "tree_budget": 16})
ALGORITHMS = {"dflash": "DFLASH", "ddtree": "DDTREE"}
MONDAY = 1_795_996_800.0
TOKENS = 400
INTERVAL = ("--decode-log-interval", "5")


def lab_profile() -> EngineProfile:
    """Return the built-in profile of the lab engine."""
    (host,) = resolve([read_bytes("lab.yaml", INVENTORY)], BuiltInProfiles()).fleet.hosts
    return host.servers[0].profile


@dataclass
class Watch:
    """All samplers of one server, and the folds over what they see; each tick is a look at everything."""

    server: LabServer
    running: Mode | None = None
    pace: float = 1.0
    """How many seconds of the folds a second of this test is: some figures need half a minute of them."""
    track: EngineTrack = field(default_factory=EngineTrack)
    window: Window = field(default_factory=Window)
    profile: ConcurrencyProfile = field(default_factory=ConcurrencyProfile)
    page: Page | None = None

    def __post_init__(self) -> None:
        endpoint = Endpoint(host="127.0.0.1", port=self.server.port)
        reading = engine_lines.reader(lab.ENGINE.log, lab_profile().tree_line)
        self.loads = EngineLoads(endpoint, METRICS)
        self.pages = EngineMetrics(endpoint, METRICS)
        self.infos = EngineInfos(endpoint, METRICS)
        self.log = EngineLog(FileSource(self.server.log_path), reading)

    def tick(self) -> EngineSample:
        """Take one look and fold it in; an engine that does not answer is a look without an answer."""
        look: Look | None
        try:
            look = self.loads.sample()
            self.page = self.pages.sample()
        except NoAnswerError:
            look = None
        at_s = time.monotonic() * self.pace
        look = None if look is None else replace(look, at_s=look.at_s * self.pace)
        page = None if self.page is None else replace(self.page, at_s=self.page.at_s * self.pace)
        self.track, sample = advance(self.track, at_s=at_s, look=look, page=page, mode=self.running)
        self.window = windows.observe(self.window, sample)
        self.profile = profiles.observe(self.profile, sample, MONDAY)
        return sample

    def until(self, claim: Callable[[EngineSample], bool], what: str) -> EngineSample:
        """Tick until a sample is as claimed, and return it."""
        found: list[EngineSample] = []

        def seen() -> bool:
            found.append(self.tick())
            return claim(found[-1])

        wait_until(seen, what=what)
        return found[-1]

    def claimed(self) -> Mode | None:
        """Return the mode that the engine claims."""
        return engine_info.claimed(self.infos.sample(), lab_profile())

    def lines(self) -> EngineLines:
        """Return what the log said so far."""
        return self.log.sample()

    def settled(self) -> None:
        """Tick until it is idle and its samples have the mode that it runs."""
        self.until(lambda one: one.activity is Activity.IDLE and one.mode == self.running, "idleness in its mode")

    def audited(self) -> Audit:
        """Audit what is known by now."""
        known = lab_profile()
        return audit(
            AuditInput(
                mode=self.running,
                window=self.window,
                counters=None if self.page is None else self.page.counters,
                lines=self.lines(),
                has_tree_line=known.tree_line is not None,
                counts_root=known.counts_root,
                counts_bonus=known.counts_bonus,
                same_start=True,
            )
        )

    def close(self) -> None:
        """Close the connections."""
        for sampler in (self.loads, self.pages, self.infos):
            sampler.close()


@pytest.fixture
def watch(folders: labmodels.Folders, tmp_path: Path) -> Iterator[Watch]:
    """Give the samplers of a running server that drafts a chain."""
    arguments = ("--enable-metrics", "--speculative-algorithm", "DFLASH", "--speculative-dflash-block-size", "8")
    with LabServer(folders, tmp_path, *arguments, *INTERVAL) as server:
        found = Watch(server.ready(), running=CHAIN)
        yield found
        found.close()


def switched(server: LabServer, **knobs: object) -> None:
    """Change the algo of a running server."""
    assert server.post("/set_internal_state", {"server_args": knobs}).json() == [True]


def rates(watch: Watch) -> Mapping[Mode, float | None]:
    """Return the accept length by the modes that were measured."""
    return {found.mode: found.accept_length for found in profiles.observations(watch.profile, MONDAY)}


def test_idle_busy_and_idle_again(watch: Watch) -> None:
    """An idle server is shown to be; under load its requests and tokens are seen, and measured for its mode; then idle again."""
    watch.settled()
    idle = watch.tick()
    assert (idle.concurrency, idle.context_tokens) == (0, None)
    assert watch.claimed() == CHAIN
    with watch.server.background_generate(tokens=TOKENS) as answer:
        busy = watch.until(lambda one: one.running == 1 and one.decoded is not None and one.decoded.tokens > 0, "load")
        answer.result()
    assert (busy.activity, busy.concurrency, busy.mode) == (Activity.ACTIVE, 1, CHAIN)
    watch.until(lambda one: one.activity is Activity.IDLE, "idleness after the load")
    decoded = windows.figures(watch.window).decoded
    assert decoded is not None
    assert TOKENS - 10 <= decoded.tokens <= TOKENS + 10
    assert set(rates(watch)) == {CHAIN}
    assert watch.page is not None
    assert watch.page.counters.draft_tokens == 8


def test_a_live_change_of_algo_is_followed(watch: Watch) -> None:
    """A chain becomes a tree while the server runs: claims, lines and draft tokens say so, and each mode has its own figures."""
    watch.settled()
    assert watch.server.generate(tokens=TOKENS).status_code == 200
    watch.until(lambda one: one.activity is Activity.IDLE, "idleness after the chain")
    assert watch.lines().last_is_tree is False
    watch.running = None
    switched(watch.server, speculative_algorithm="DDTREE", speculative_ddtree_budget=16)
    watch.tick()
    watch.running = watch.claimed()
    assert watch.running == TREE
    watch.settled()
    assert watch.server.generate(tokens=TOKENS).status_code == 200
    watch.until(lambda one: one.activity is Activity.IDLE, "idleness after the tree")
    lines = watch.lines()
    assert lines.last_is_tree is True
    assert lines.last_tree is not None
    assert lines.last_tree.tree_budget == 16
    assert set(rates(watch)) == {CHAIN, TREE}
    assert watch.page is not None
    assert watch.page.counters.draft_tokens == 17


@pytest.mark.slow  # a start of a server for each mode
@pytest.mark.parametrize(
    ("running", "judged"), [(CHAIN, {"M011", "M012", "M014"}), (TREE, {"M003", "M004", "M005", "M011", "M013", "M015"})]
)
def test_an_honest_server_has_no_finding(tmp_path: Path, running: Mode, judged: set[str]) -> None:
    """Figures of a server that does what it says contradict neither each other nor its mode, though all are judged."""
    models = labmodels.write_metronome(tmp_path / "models")
    arguments = ("--enable-metrics", "--speculative-algorithm", ALGORITHMS[running.algo])
    with LabServer(models, tmp_path, *arguments, *INTERVAL) as server:
        watch = Watch(server.ready(), running=running, pace=40.0)
        watch.settled()

        def all_judged() -> bool:
            assert server.generate(tokens=TOKENS).status_code == 200
            watch.tick()
            result = watch.audited()
            assert result.findings == ()
            return {"M001", "M002", "M008", "M009", "M010"} | judged <= set(result.passed)

        wait_until(all_judged, limit_s=40.0, what="every check to be made")
        watch.close()


def test_a_pause_is_seen_though_the_load_does_not_tell(watch: Watch) -> None:
    """Paused in place, the load goes on saying that a request runs; the sample says unready, and unknown requests."""
    with watch.server.background_generate(tokens=TOKENS) as answer:
        watch.until(lambda one: one.running == 1, "load")
        assert watch.server.post("/pause_generation", {"mode": "in_place"}).status_code == 200
        paused = watch.until(lambda one: one.activity in (Activity.UNREADY, Activity.FROZEN), "the pause")
        assert watch.server.post("/continue_generation", {}).status_code == 200
        answer.result()
    assert paused.concurrency is None
    watch.until(lambda one: one.activity is Activity.IDLE, "idleness after the pause")


@pytest.mark.slow  # two whole starts of a server
def test_a_restart_is_seen_and_makes_no_negative_rate(folders: labmodels.Folders, tmp_path: Path) -> None:
    """A server that is killed is unknown while it is gone; when it is back, its counters are a restart and no loss of tokens."""
    port = free_port()
    with LabServer(folders, tmp_path, "--enable-metrics", *INTERVAL, port=port) as server:
        watch = Watch(server.ready(), running=mode("none"))
        watch.until(lambda one: one.activity is Activity.IDLE, "idleness")
        assert server.generate(tokens=TOKENS).status_code == 200
        watch.until(lambda one: one.activity is Activity.IDLE, "idleness after the load")
    gone = watch.until(lambda one: one.activity is Activity.STALE, "that it is gone")
    assert gone.concurrency is None
    with LabServer(folders, tmp_path, "--enable-metrics", *INTERVAL, port=port) as server:
        server.ready()
        assert watch.until(lambda one: one.activity is not Activity.STALE, "that it is back").restarted
        watch.until(lambda one: one.activity is Activity.IDLE, "idleness after the restart")
    watch.close()
    gains = [one.decoded.tokens for one in watch.window.samples if one.decoded is not None]
    assert min(gains) >= 0
    assert windows.figures(watch.window).restarts == 1


def test_a_server_without_metrics_has_requests_and_sums(folders: labmodels.Folders, tmp_path: Path) -> None:
    """Without --enable-metrics there is no page, and load, idleness and tokens are known all the same."""
    with LabServer(folders, tmp_path) as server:
        endpoint = Endpoint(host="127.0.0.1", port=server.ready().port)
        with pytest.raises(NoAnswerError, match="no metrics"):
            EngineMetrics(endpoint, METRICS).sample()
        assert server.generate(tokens=TOKENS).status_code == 200
        loads, track = EngineLoads(endpoint, METRICS), EngineTrack()

        def idle() -> bool:
            nonlocal track
            track, sample = advance(track, at_s=time.monotonic(), look=loads.sample(), mode=mode("none"))
            return sample.activity is Activity.IDLE

        wait_until(idle, what="idleness after the load")
        loads.close()
    assert track.sums is not None
    assert track.sums.tokens >= TOKENS - 10


@pytest.mark.slow  # a start of a server for each lie
@pytest.mark.parametrize(
    ("fault", "running", "check_id"),
    [
        ("claims-ddtree-runs-linear", TREE, "M011"),
        ("claims-dflash-runs-none", CHAIN, "M012"),
        ("metric-depth-off", TREE, "M003"),
        ("bonus-missing", TREE, "M004"),
        ("commit-truncated", TREE, "M005"),
    ],
)
def test_a_lie_is_found(tmp_path: Path, fault: str, running: Mode, check_id: str) -> None:
    """A server that claims one algo and decodes another, or whose tree line bends a figure, is found out by its own numbers."""
    models = labmodels.write_metronome(tmp_path / "models")
    arguments = ("--enable-metrics", "--speculative-algorithm", ALGORITHMS[running.algo], "--inject", fault)
    with LabServer(models, tmp_path, *arguments, *INTERVAL, env=ALLOW_FAULTS) as server:
        watch = Watch(server.ready(), running=running, pace=40.0)
        watch.settled()

        def found() -> bool:
            assert server.generate(tokens=TOKENS).status_code == 200
            watch.tick()
            return check_id in [finding.id for finding in watch.audited().findings]

        wait_until(found, limit_s=40.0, what=f"{check_id} of {fault}")
        watch.close()


@pytest.mark.slow  # a frozen scheduler is told by ten seconds of silence
def test_a_scheduler_that_hangs_is_told_from_a_busy_one(folders: labmodels.Folders, tmp_path: Path) -> None:
    """Every endpoint still answers 200 with a request running; the age of the load says that nobody publishes any more."""
    arguments = ("--enable-metrics", "--inject", "hang:serving")
    with LabServer(folders, tmp_path, *arguments, env=ALLOW_FAULTS) as server:
        watch = Watch(server.ready(), running=mode("none"))
        watch.settled()
        with ThreadPoolExecutor(max_workers=1) as pool:
            pool.submit(server.generate, tokens=TOKENS)
            busy = watch.until(lambda one: one.running == 1, "load")
            frozen = watch.until(lambda one: one.activity is Activity.FROZEN, "the hang")
            assert server.status("/ready") == 200
            assert server.status("/v1/loads") == 200
            assert server.process is not None
            server.process.kill()
        watch.close()
    assert busy.activity is Activity.ACTIVE
    assert frozen.concurrency is None


def test_a_server_that_is_stopped_costs_a_bounded_look(watch: Watch) -> None:
    """A stopped process holds its connections and says nothing: the look ends in time, and is no answer; it is back when it is."""
    watch.settled()
    watch.server.signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(NoAnswerError, match="in time"):
            watch.loads.sample()
        assert time.monotonic() - began < watch.loads.deadline_s
    finally:
        watch.server.signal(signal.SIGCONT)
    watch.until(lambda one: one.activity is Activity.IDLE, "that it is back")
