"""A simulation as its parts are put together: files in, sizes, starts, policies that are shown, and the drawing out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control.objective import Metric
from specctl.control.replay.outage import Outage
from specctl.errors import UsageError
from specctl.ops import simulate
from specctl.ops.simulate import Request

DATA = Path(__file__).parents[2] / "data" / "traces"
REQUEST = Request(trace=str(DATA / "azure_conv.csv"), model=str(DATA / "model.json"), cost="5")
SERIES = replace(REQUEST, trace=str(DATA / "concurrency.csv"))


def test_requests_are_replayed_with_queueing() -> None:
    """A trace of requests has a size, and its yardstick is the best in hindsight."""
    found = simulate.simulate(REQUEST)
    assert (found.size.name, found.size.requests, found.comparison.queueing) == ("azure_conv.csv", 24, True)
    assert found.comparison.setting.outage == Outage(seconds=5.0, drains=True)
    assert found.shown == tuple(found.comparison.rows)


def test_a_recording_is_replayed_as_it_was() -> None:
    """A concurrency is given from outside, and its yardstick is the clairvoyant schedule."""
    found = simulate.simulate(replace(REQUEST, trace=str(DATA / "recording.jsonl"), metric=Metric.THROUGHPUT))
    assert (found.size.requests, found.size.peak, found.size.span_s) == (None, None, 5.0)
    assert (found.comparison.queueing, found.comparison.yardstick.policy) == (False, "clairvoyant")


def test_rates_become_requests(tmp_path: Path) -> None:
    """A trace of rates is drawn with the seed and the lengths that are asked for."""
    place = tmp_path / "rates.csv"
    place.write_text("window_start_s,rate_rps\n0,2\n30,1\n", encoding="utf-8")
    rates = replace(REQUEST, trace=str(place), lengths=simulate.lengths(20.0, 30.0))
    first, same, other = (simulate.simulate(replace(rates, seed=seed)) for seed in (0, 0, 1))
    assert first == same
    assert first.size != other.size


def test_a_load_is_sized() -> None:
    """By a ratio of its own load, or so that its busiest minute is that part of the capacity."""
    own = simulate.simulate(REQUEST).size
    half = simulate.simulate(replace(REQUEST, scale=0.5)).size
    busy = simulate.simulate(replace(REQUEST, peak=2 * (own.peak or 0.0))).size
    assert (own.requests, half.requests, busy.requests) == (24, 12, 48)


@pytest.mark.parametrize(
    ("start", "mode"),
    [
        ("prior", "ddtree:tree_budget=16"),
        ("best", "ddtree:tree_budget=16"),
        ("worst", "none"),
        ("dflash", "dflash"),
        ("ddtree:tree_budget=16", "ddtree:tree_budget=16"),
    ],
)
def test_a_simulation_begins_where_it_is_told(start: str, mode: str) -> None:
    """In the mode that the agent would choose, the best or the worst static one, or one of the model's."""
    assert str(simulate.simulate(replace(SERIES, start=start)).comparison.setting.start) == mode


def test_policies_are_shown_alone() -> None:
    """Those that are asked for, by kind or by mode, and the yardstick."""
    found = simulate.simulate(replace(SERIES, policies=("agent", "dflash")))
    assert [row.name for row in found.shown] == ["dflash", "agent", "clairvoyant"]
    static = simulate.simulate(replace(SERIES, policies=("static",)))
    assert [row.policy for row in static.shown] == ["static", "static", "static", "clairvoyant"]


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"cost": "soon"}, "neither live, restart nor seconds", "--cost live"),
        (
            {"start": "ddtree:tree_budget=99"},
            "the model has no mode ddtree:tree_budget=99",
            "--start prior, best, worst",
        ),
        ({"start": "eagle"}, "no algo 'eagle'", "--start prior"),
        ({"policies": ("magic",)}, "there is no policy magic", "--policy "),
        ({"scale": 0.0}, "above zero", "--scale"),
        ({"peak": 0.5}, "no arrivals", "--scale"),
        ({"trace": "nowhere.csv"}, "nowhere.csv: cannot be read", "name a file"),
        ({"model": "nowhere.json"}, "nowhere.json: cannot be read", "name a file"),
    ],
)
def test_what_cannot_be_meant_has_a_hint(change: dict[str, object], message: str, hint: str) -> None:
    """Each is an error of usage that says what is wrong and what to write in its place."""
    with pytest.raises(UsageError) as caught:
        simulate.simulate(replace(SERIES, **change))  # type: ignore[arg-type]  # one wrong value at a time
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_lengths_are_checked() -> None:
    """A mean length that cannot be is an error of usage."""
    with pytest.raises(UsageError, match="1 to 1000000"):
        simulate.lengths(0.0, 10.0)


@pytest.mark.parametrize(("name", "first"), [("p.svg", b"<?xml"), ("p.png", b"\x89PNG")])
def test_a_drawing_is_a_picture(tmp_path: Path, name: str, first: bytes) -> None:
    """The file is of the kind that its name says, and the same again for the same simulation."""
    place = tmp_path / name
    found = simulate.simulate(REQUEST)
    simulate.write_plot(found, str(place))
    drawn = place.read_bytes()
    simulate.write_plot(found, str(place))
    assert drawn.startswith(first)
    assert place.read_bytes() == drawn


def test_a_plot_that_cannot_be_drawn_is_refused_before_the_replay() -> None:
    """An ending that is no picture's is an error of usage, told with one that is."""
    with pytest.raises(UsageError, match=r"p\.pdf"):
        simulate.refuse_plot("p.pdf")


@pytest.mark.slow
def test_a_long_load_is_worked_out_side_by_side(tmp_path: Path) -> None:
    """A series of more than a day gives in several processes what it gives in one."""
    levels = [[0, 1, 4, 8, 2][second // 700 % 5] for second in range(simulate.LONG)]
    place = tmp_path / "long.csv"
    place.write_text(
        "time_s,concurrency\n" + "".join(f"{second},{level}\n" for second, level in enumerate(levels)), encoding="utf-8"
    )
    found = simulate.simulate(replace(SERIES, trace=str(place)))
    short = simulate.simulate(replace(SERIES, trace=str(_without_last(place))))
    assert [row.name for row in found.shown] == [row.name for row in short.shown]
    for long_row, short_row in zip(found.shown, short.shown, strict=True):
        assert long_row.score.switches == short_row.score.switches
        assert long_row.score.tokens == pytest.approx(short_row.score.tokens, rel=1e-3)


def _without_last(place: Path) -> Path:
    """Write the same series without its last step, which is worked out in one process."""
    shorter = place.with_name("short.csv")
    shorter.write_text("".join(place.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    return shorter
