"""What a bench will send and about how long it takes, in words, before it is sent; and how far it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from specctl.measure.bench import Setting, Subject
from specctl.ui import bench
from specctl.ui.text import UNKNOWN, plain

BAR = 10


def lines(
    subject: Subject,
    setting: Setting,
    *,
    levels: Sequence[str],
    requests: int,
    tokens: int,
    seconds: tuple[float, float] | None,
    running: int | None,
    warnings: Sequence[str],
) -> tuple[Text, ...]:
    """Return the plan, a line a matter."""
    found = [
        bench.title(subject),
        _line("sends", bench.load(setting)),
        _line("prompts", bench.asked(setting)),
        _line("levels", " ".join(levels)),
        _line("in all", f"{_about(setting)} {requests:,} requests and {tokens:,} tokens; {duration(seconds)}"),
        _line("running", _running(running), style="warn" if running else "default"),
    ]
    found += [_line("warning", warning, style="warn") for warning in warnings]
    return tuple(found)


def _line(word: str, text: str, style: str = "default") -> Text:
    return Text.assemble("  ", (word.ljust(9), "quiet"), (plain(text), style))


def _about(found: Setting) -> str:
    """Return how sure the counts are: a closed loop that lasts so many seconds sends as much as the engine answers."""
    return "at least" if found.pace == "closed" and found.seconds else "about"


def _running(count: int | None) -> str:
    if count is None:
        return f"{UNKNOWN} (the engine does not say what is running)"
    if count == 0:
        return "nothing else"
    one = count == 1
    return (
        f"{count} other request{' is' if one else 's are'} there now: they slow the figures, and the bench slows them"
    )


def duration(seconds: tuple[float, float] | None) -> str:
    """Return how long it takes, in minutes; by how throughput grows with concurrency, which is not known before."""
    if seconds is None:
        return "how long it takes shows after a first request"
    least, most = (max(1.0, each) for each in seconds)
    if most < 90:
        return _from_to(f"{least:.0f}", f"{most:.0f}", "s")
    return _from_to(f"{least / 60:.1f}", f"{most / 60:.1f}", "min")


def _from_to(least: str, most: str, unit: str) -> str:
    return f"about {most} {unit}" if least == most else f"about {least} to {most} {unit}"


def progress(*, level: str, number: int, levels: int, run: int, runs: int, share: float, rest: str, drawn: bool) -> str:
    """Say how far a bench is, in one line that fits behind a host's name on 80 columns; `drawn`: with a bar, for a terminal."""
    done = min(BAR, int(share * BAR + 0.5))
    bar = "█" * done + "░" * (BAR - done) + f" {share * 100:3.0f} %" if drawn else f"{share * 100:.0f} %"
    return f"{bar}  {level} ({number}/{levels}) run {run}/{runs}  {rest}"
