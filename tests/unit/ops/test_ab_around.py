"""What was so around a segment: processors, strangers on GPUs, one start or two, the GPUs at rest, greedy answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from specctl.measure.ab_types import Around
from specctl.measure.load import GpuReading
from specctl.ops import ab_rest
from specctl.ops.ab_answers import output_of
from specctl.ops.ab_around import Look, Processors, around, busy, parse, strangers
from specctl.rollout.facts import HostFacts, ServerFacts
from specctl.rollout.gpu_facts import Gpu, GpuProcess, Graphics
from tests.fakes import SERVER

STAT = """cpu  1000 100 500 9000 50 10 40 300 0 0
cpu0 500 50 250 4500 25 5 20 150 0 0
cpu1 500 50 250 4500 25 5 20 150 0 0
intr 12345 0 0
ctxt 99
"""
OWN = "4121 (sglang::sched (x)) S 1 4121 4121 0 -1 4194560 100 0 0 0 700 150 0 0 20 0 9 0 777 1 2\n"


def test_processors_are_read_as_proc_5_says() -> None:
    """Busy is user, nice, system and interrupts; a process's name may hold anything; seconds come of hundredths."""
    assert parse(STAT + OWN, 1, at_s=10.0, ours_s=0.5) == Processors(
        at_s=10.0, busy_s=16.5, stolen_s=3.0, cores=2, server_s=8.5, ours_s=0.5
    )


@pytest.mark.parametrize("text", ["", "cpu  1 2\n", "cpu  a b c d e f g h\ncpu0 1\n", STAT])
def test_what_does_not_say_is_not_known(text: str) -> None:
    """No such file, another format, or a process that has gone: unknown, never zero."""
    assert parse(text, 1, at_s=0.0, ours_s=0.0) is None


def test_others_are_what_neither_the_server_nor_we_used() -> None:
    """Of 12 busy seconds the server used 8 and we one: others had 0.3 of a core for ten seconds."""
    before = Processors(at_s=0.0, busy_s=100.0, stolen_s=1.0, cores=4, server_s=50.0, ours_s=2.0)
    after = Processors(at_s=10.0, busy_s=112.0, stolen_s=3.0, cores=4, server_s=58.0, ours_s=3.0)
    foreign, stolen, cores = busy(before, after)
    assert (foreign, stolen) == pytest.approx((0.3, 0.05))
    assert cores == 4
    assert busy(None, after) == (None, None, None)


def look(**values: object) -> Look:
    """Return a look at a host without figures."""
    blank = Look(strangers=None, processors=None, invocation="i1", restarts=0)
    return replace(blank, **values)  # type: ignore[arg-type]  # the field's own type


def test_a_second_start_upsets_a_segment() -> None:
    """Another invocation, or one more restart, is told; strangers of before and after are both named."""
    assert around(look(), look(), {}).upset is None
    assert around(look(), look(invocation="i2"), {}).upset == "the server was started anew"
    assert around(look(), look(restarts=1), {}).upset == "the service manager started the server again"
    assert around(look(strangers=("a 1",)), look(strangers=("b 2",)), {}).strangers == ("a 1", "b 2")
    assert around(look(strangers=()), look(), {}).strangers is None


def test_strangers_are_on_the_servers_gpus() -> None:
    """A process on a GPU of the server that is not the server's is named; one on another GPU is not; unknown stays unknown."""
    graphics = Graphics(
        gpus=(Gpu(index=0, uuid="g0"), Gpu(index=1, uuid="g1")),
        processes=(
            GpuProcess(pid=10, name="engine", gpu="g0"),
            GpuProcess(pid=11, name="train", gpu="g0"),
            GpuProcess(pid=12, name="other", gpu="g1"),
        ),
    )
    own = ServerFacts(name="chat", own_pids=(10,))
    host = HostFacts(host="gpu1", graphics=graphics)
    assert strangers(host, own, replace(SERVER, gpus=(0,))) == ("train 11",)
    assert strangers(host, own, SERVER) == ("other 12", "train 11")
    assert strangers(HostFacts(host="gpu1"), own, SERVER) is None
    assert strangers(host, replace(own, own_pids=None), SERVER) is None


class Warming:
    """Readings of a GPU that cools by a degree each time it is asked."""

    def __init__(self, first_c: float, step_c: float = -1.0) -> None:
        self.heat_c, self.step_c = first_c, step_c

    def since(self, at_s: float) -> Sequence[GpuReading]:
        """Return one reading."""
        self.heat_c += self.step_c
        return (GpuReading(at_s=at_s, index=0, temperature_c=self.heat_c, power_w=70.0, sm_clock_hz=2.1e8),)


class Blind:
    """A host without figures of GPUs."""

    def since(self, at_s: float) -> Sequence[GpuReading]:
        """Return nothing."""
        return ()


def test_a_state_is_the_hottest_the_mean_and_the_sum() -> None:
    """Of several GPUs: the hottest temperature, the mean clock, the power of all; a GPU read twice counts once."""
    rows = [
        GpuReading(at_s=0.0, index=0, temperature_c=40.0, power_w=70.0, sm_clock_hz=2e8),
        GpuReading(at_s=1.0, index=0, temperature_c=41.0, power_w=80.0, sm_clock_hz=2e8),
        GpuReading(at_s=0.0, index=1, temperature_c=39.0, power_w=60.0, sm_clock_hz=5e8),
    ]
    assert ab_rest.state_of(rows) == {"temperature_c": 41.0, "clock_hz": pytest.approx(3e8), "power_w": 135.0}


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({"temperature_c": 42.0, "power_w": 640.0, "clock_hz": 2.2e8}, None),
        ({"temperature_c": 46.0, "power_w": 600.0, "clock_hz": 2.1e8}, "46 °C, at first 41"),
        ({"temperature_c": 41.0, "power_w": 900.0, "clock_hz": 2.1e8}, "900 W, at first 600"),
        ({"temperature_c": 41.0, "power_w": None, "clock_hz": 9.0e8}, "900 MHz, at first 210"),
    ],
)
def test_a_state_is_held_against_the_first(now: dict[str, float | None], why: str | None) -> None:
    """Three degrees, 15 % of power and 10 % of the clock are alike; what is unknown is not held against anything."""
    first = Around(temperature_c=41.0, power_w=600.0, clock_hz=2.1e8)
    assert ab_rest.unlike(first, now) == why


def test_an_interrupted_wait_ends_at_once() -> None:
    """Whoever wants the end is heard while the GPUs cool."""
    first = Around(temperature_c=41.0, power_w=70.0, clock_hz=2.1e8)
    found = ab_rest.rest(Warming(70.0), first, lambda _s: True, lambda _text: None)
    assert (found.settled, found.waited_s < 1.0) == (False, True)
    assert ab_rest.rest(Blind(), None, lambda _s: True, lambda _text: None).state["temperature_c"] is None


def test_answers_are_read_with_their_gaps() -> None:
    """Tokens come from output_ids, the gap from the two best log probabilities; an engine without them gives none."""
    rows = [[[-0.1, 5, None], [-2.6, 9, None]], [[-0.7, 6, None], [-0.71, 8, None]]]
    found = output_of("p1", {"output_ids": [5, 6], "text": "ab", "meta_info": {"output_top_logprobs": rows}})
    assert found is not None
    assert tuple(found.tokens) == (5, 6)
    assert found.gaps == pytest.approx((2.5, 0.01))
    plain = output_of("p1", {"text": "ab", "meta_info": {"output_top_logprobs": [[["x"]]]}})
    assert plain is not None
    assert (plain.tokens, plain.gaps) == ("ab", ())
    assert output_of("p1", {"output_ids": [], "text": ""}) is None
