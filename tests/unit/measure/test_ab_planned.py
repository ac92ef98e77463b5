"""Accept length over the requests that every arm sends: the same chain shows the same, however fast it is."""

from __future__ import annotations

from specctl.measure.ab_planned import figures_for, planned
from specctl.measure.load import Client, Closed, Level, Run, Timing

LEVEL = Level(pace=Closed(concurrency=1), tokens=11, warmup=1, rounds=2)


def timing(number: int, steps: int, began_s: float, *, warmup: bool = False) -> Timing:
    """Return a request of eleven tokens in so many verify steps, a second long."""
    return Timing(
        number=number,
        prompt=f"p{number}",
        asked_tokens=11,
        sent_s=began_s,
        ended_s=began_s + 1.0,
        first_s=began_s + 0.1,
        at_s=(began_s + 0.1, began_s + 1.0),
        counts=(1, 11),
        prompt_tokens=20 + number,
        output_tokens=11,
        verify_steps=steps,
        warmup=warmup,
    )


def run(*timings: Timing) -> Run:
    """Return a run of these requests."""
    return Run(level=LEVEL, timings=timings, client=Client(cpu_s=0.1, wall_s=4.0))


def test_a_faster_arm_shows_the_same_accept_length() -> None:
    """The requests beyond the rounds, which only a fast arm sends, and the warm-up do not count."""
    same = (timing(0, 10, 0.0, warmup=True), timing(1, 5, 1.0), timing(2, 4, 2.0))
    slow, fast = run(*same), run(*same, timing(3, 1, 3.0), timing(4, 1, 4.0))
    assert [each.number for each in planned(fast)] == [1, 2]
    assert figures_for(slow).accept_length == figures_for(fast).accept_length == 20 / 9
    assert figures_for(slow).prompt_tokens == figures_for(fast).prompt_tokens == 21.5


def test_a_request_that_failed_is_no_planned_one() -> None:
    """An answer that was cut short is left out, and its prompt with it."""
    cut = timing(2, 4, 2.0)
    short = Timing(
        **{name: getattr(cut, name) for name in cut.__dataclass_fields__ if name != "failure"}, failure="cut"
    )
    assert [each.number for each in planned(run(timing(1, 5, 1.0), short))] == [1]
