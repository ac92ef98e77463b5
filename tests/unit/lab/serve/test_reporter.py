"""What the scheduler's steps become: true lines, and gauges that move only when SGLang's do."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from specctl.lab.serve import faults
from specctl.lab.serve.log import logger
from specctl.lab.serve.reporter import THROUGHPUT_STALE_S, Reporter
from specctl.lab.types import Emission, Generation, Mode, Sampling, StepReport, Verify
from tests.unit.lab.serve.scripted import ScriptedDecoder


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def last(self, beginning: str) -> str:
        """Return the last line with this beginning."""
        return [text for text in self.texts if text.startswith(beginning)][-1]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The lab's log, kept."""
    handler = Lines()
    level, logger.level = logger.level, logging.INFO
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def reporter(decoder: ScriptedDecoder, *injected: str, interval: int = 2, with_metrics: bool = True) -> Reporter:
    """Return a reporter that began at time 0."""
    found = faults.parse(injected, allowed=True)
    made = Reporter(decoder, interval=interval, with_metrics=with_metrics, faults=found, now=0.0)
    made.claimed_draft_tokens = 8
    return made


def verified(*committed: int, nodes: int = 8) -> StepReport:
    """Return a decode step that committed these numbers of tokens, each one bonus included."""
    emissions = tuple(Emission(rid=str(index), tokens=(1,) * count) for index, count in enumerate(committed))
    verifies = tuple(
        Verify(rid=str(index), nodes=nodes, accepted_drafts=count - 1, accepted_depth=count - 1, committed=count)
        for index, count in enumerate(committed)
    )
    return StepReport(emissions=emissions, verifies=verifies)


def busy() -> ScriptedDecoder:
    """Return a decoder with one request of 10 prompt tokens running."""
    decoder = ScriptedDecoder()
    decoder.add(Generation(rid="0", prompt=(1,) * 10, sampling=Sampling(max_new_tokens=50)))
    decoder.step()
    return decoder


def numbers(line: str) -> list[float]:
    """Return the figures after equals signs or colons."""
    return [float(text) for text in re.findall(r"[=:] ?(\d+\.?\d*)", line)]


class TestDecodeLine:
    """The lines hold the window's true averages."""

    def test_line_and_tree_line(self, lines: Lines) -> None:
        """Accept length is drafts plus bonus per verify, the rate is per proposed node, throughput is over the whole window."""
        made = reporter(busy())
        made.decode(verified(3, 1), batch=2, busy_s=0.1, now=1.0)
        made.decode(verified(4, nodes=6), batch=1, busy_s=0.1, now=2.0)
        assert lines.last("Decode batch") == (
            "Decode batch, #running-req: 1, #token: 11, token usage: 0.01, accept len: 2.67, accept rate: 0.26, "
            "cpu graph: False, gen throughput (token/s): 4.00, #queue-req: 0"
        )
        assert lines.last("DDTREE") == (
            "DDTREE metrics: bs=1 budget=7 avg_actual_nodes=7.33 avg_accepted_drafts=1.67 "
            "avg_commit_len=2.67 avg_accepted_depth=1.67"
        )

    def test_a_window_begins_anew(self, lines: Lines) -> None:
        """A line averages over its own steps only, and over the idle time before them."""
        made = reporter(busy(), interval=1)
        made.decode(verified(5), batch=1, busy_s=0.1, now=1.0)
        made.decode(verified(1), batch=1, busy_s=0.1, now=11.0)
        assert "accept len: 1.00, accept rate: 0.00" in lines.last("Decode batch")
        assert "gen throughput (token/s): 0.10" in lines.last("Decode batch")

    def test_without_speculation(self, lines: Lines) -> None:
        """Without verifies the line has no acceptance and there is no tree line."""
        decoder = busy()
        decoder.mode = Mode(algo="none")
        reporter(decoder, interval=1).decode(
            StepReport(emissions=(Emission(rid="0", tokens=(1,)),)), batch=1, busy_s=0.1, now=1.0
        )
        assert "accept" not in lines.last("Decode batch")
        assert not any(text.startswith("DDTREE") for text in lines.texts)

    def test_a_chain_prints_no_tree_line(self, lines: Lines) -> None:
        """The tree line appears only where a tree decodes."""
        decoder = busy()
        decoder.mode = Mode(algo="dflash", knobs={"block_size": 8})
        reporter(decoder, interval=1).decode(verified(3), batch=1, busy_s=0.1, now=1.0)
        assert not any(text.startswith("DDTREE") for text in lines.texts)

    @pytest.mark.parametrize(
        ("fault", "commit", "depth"),
        [("bonus-missing", 2.0, 2.0), ("commit-truncated", 2.0, 2.0), ("metric-depth-off", 3.0, 5.0)],
    )
    def test_metric_faults_bend_one_figure(self, fault: str, commit: float, depth: float, lines: Lines) -> None:
        """Each metric fault bends its own figure of the tree line and no other."""
        reporter(busy(), fault, interval=1).decode(verified(3), batch=1, busy_s=0.1, now=1.0)
        assert numbers(lines.last("DDTREE"))[2:] == [8.0, 2.0, commit, depth]


class TestGauges:
    """Gauges keep old values exactly where SGLang's do."""

    def test_absent_before_the_first_prefill(self) -> None:
        """A server that has prefilled nothing has no scheduler gauges."""
        made = reporter(ScriptedDecoder())
        made.idle(waited_s=1.0, now=1.0)
        assert made.gauges is None

    def test_prefill_counts_those_that_ran_before(self) -> None:
        """After a prefill the gauge of running requests does not count the new one, and stays so when it ends before a line."""
        decoder = busy()
        made = reporter(decoder)
        made.prefill(
            StepReport(emissions=(), prefilled_requests=1, prefilled_tokens=10), running_before=0, busy_s=0.1, now=1.0
        )
        decoder.abort("0")
        made.idle(waited_s=1.0, now=2.0)
        assert made.gauges is not None
        assert (made.gauges.running, made.gauges.used_tokens) == (0, 11)

    def test_idle_after_a_load(self) -> None:
        """When a load ends the gauges go to 0, but the spec gauges keep the last window."""
        decoder = busy()
        made = reporter(decoder, interval=1)
        made.decode(verified(3), batch=1, busy_s=0.1, now=1.0)
        decoder.abort("0")
        made.idle(waited_s=0.1, now=1.2)
        shown = made.gauges
        assert shown is not None
        assert (shown.running, shown.used_tokens, shown.gen_throughput) == (0, 0, 0.0)
        assert (shown.spec_accept_length, shown.spec_num_draft_tokens, made.last_gen_throughput) == (3.0, 8, 3.0)

    def test_a_probe_brings_throughput_back(self) -> None:
        """A prefill on an idle server shows the last throughput again, until it is stale."""
        decoder = busy()
        made = reporter(decoder, interval=1)
        made.decode(verified(3), batch=1, busy_s=0.1, now=1.0)
        decoder.abort("0")
        made.idle(waited_s=0.1, now=1.2)
        made.prefill(
            StepReport(emissions=(), prefilled_requests=1, prefilled_tokens=1), running_before=0, busy_s=0.1, now=2.0
        )
        made.idle(waited_s=0.1, now=2.2)
        assert made.gauges is not None
        assert made.gauges.gen_throughput == 3.0
        made.idle(waited_s=0.1, now=1.1 + THROUGHPUT_STALE_S)
        assert made.gauges.gen_throughput == 0.0

    def test_stale_gauges_fault(self) -> None:
        """Under the fault the gauges keep the first decode line's values, also when idle; the snapshot stays true."""
        decoder = busy()
        made = reporter(decoder, "stale-gauges", interval=1)
        made.decode(verified(3), batch=1, busy_s=0.1, now=1.0)
        decoder.abort("0")
        made.idle(waited_s=0.1, now=2.0)
        assert made.gauges is not None
        assert (made.gauges.running, made.snapshot.running) == (1, 0)


class TestSnapshot:
    """What /v1/loads shows."""

    def test_lifetime_acceptance_needs_a_line(self) -> None:
        """The lifetime accept length is unknown before the first decode line and after a reset."""
        made = reporter(busy(), interval=2)
        known: list[float | None] = []
        for report in (verified(3), verified(5)):
            made.decode(report, batch=1, busy_s=0.1, now=1.0)
            known.append(made.lifetime_accept_length)
        made.reset_acceptance()
        assert [*known, made.lifetime_accept_length] == [None, 4.0, None]

    def test_lifetime_and_window_differ(self) -> None:
        """The accept length is the average since the start, the rate beside it the last window's."""
        made = reporter(busy(), interval=1)
        made.decode(verified(8), batch=1, busy_s=0.1, now=1.0)
        made.decode(verified(1), batch=1, busy_s=0.1, now=2.0)
        made.publish(running=1)
        assert (made.snapshot.accept_length, made.snapshot.accept_rate) == (4.5, 0.0)

    def test_without_metrics(self) -> None:
        """Without --enable-metrics throughput and rate stay 0, the accept length is right."""
        made = reporter(busy(), interval=1, with_metrics=False)
        made.decode(verified(3), batch=1, busy_s=0.1, now=1.0)
        made.publish(running=1)
        assert (made.snapshot.gen_throughput, made.snapshot.accept_rate, made.snapshot.accept_length) == (0.0, 0.0, 3.0)

    def test_moments(self) -> None:
        """Moments are the sums of steps, batch, time, batch squared, batch times time, and tokens."""
        made = reporter(busy(), interval=99)
        made.decode(verified(3, 1), batch=2, busy_s=0.5, now=1.0)
        made.decode(verified(4), batch=1, busy_s=0.25, now=2.0)
        made.publish(running=1)
        assert made.snapshot.decode_moments == (2.0, 3.0, 750000.0, 5.0, 1250000.0, 8.0)

    def test_every_fifteen_steps(self) -> None:
        """A busy server publishes once in 15 decode steps."""
        made = reporter(busy(), interval=99)
        for step in range(14):
            made.decode(verified(1), batch=1, busy_s=0.1, now=float(step))
        assert made.snapshot.decode_moments[0] == 0
        made.decode(verified(1), batch=1, busy_s=0.1, now=15.0)
        assert made.snapshot.decode_moments[0] == 15

    def test_retract_pause(self) -> None:
        """A pause in mode retract shows every running request as queued in the gauges and leaves the snapshot."""
        made = reporter(busy(), interval=1)
        made.decode(verified(3), batch=1, busy_s=0.1, now=1.0)
        made.publish(running=1)
        made.retracted(1)
        assert made.gauges is not None
        assert (made.gauges.running, made.gauges.queued, made.snapshot.running) == (0, 1, 1)
