"""`specctl doctor`: what is wrong with a server's figures, speed and configuration, with evidence, effect and remedy."""

from __future__ import annotations

import contextlib
import enum
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from specctl.cli import options
from specctl.cli.printed import is_folded, listing
from specctl.errors import EXIT_OK, EXIT_ROLLED_BACK, UsageError

if TYPE_CHECKING:
    from specctl.doctor.evidence import Log
    from specctl.doctor.types import Report
    from specctl.ops.doctor import Examined, Show
    from specctl.ops.doctor_files import Given


class FailOn(enum.StrEnum):
    """From which finding on the exit code is 6."""

    NEVER = "never"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


RANKS = (FailOn.ERROR, FailOn.WARNING, FailOn.NOTE)

LIVE = Annotated[
    bool, typer.Option("--live", help="Put a short load on the server, count and compare; else only read.")
]
SINCE = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Of the log only so long before its newest line: 90s, 10m, 2h."),
]
LOG = Annotated[
    str | None, typer.Option("--log", metavar="FILE", help="An engine's log (- reads standard input); no host.")
]
FIGURES = Annotated[
    str | None, typer.Option("--figures", metavar="FILE", help="Figures in YAML (docs/doctor.md); no host.")
]
TRACE = Annotated[str | None, typer.Option("--trace", metavar="FILE", help="A verify trace to replay; no host.")]
ENGINE = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="PROFILE", help="The engine profile that wrote the files: built in, or -i PATH's."
    ),
]
MODE = Annotated[
    str | None, typer.Option("--mode", metavar="MODE", help="What the files are of: ddtree:tree_budget=7.")
]
FAIL_ON = Annotated[
    FailOn, typer.Option("--fail-on", help="Leave with exit code 6 when there is such a finding or a graver.")
]
WHOLE = Annotated[bool, typer.Option("--verbose", "-v", help="Show what passed, and each unknown with its reason.")]
CHECKS = Annotated[bool, typer.Option("--checks", help="List the checks and leave.")]


def mount(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("doctor")(doctor)


@options.selecting()
def doctor(
    chosen: options.Chosen,
    live: LIVE = False,
    since: SINCE = None,
    log: LOG = None,
    figures: FIGURES = None,
    trace: TRACE = None,
    engine: ENGINE = None,
    mode: MODE = None,
    fail_on: FAIL_ON = FailOn.NEVER,
    whole: WHOLE = False,
    checks: CHECKS = False,
    as_json: options.JSON = False,
) -> int:
    """Examine servers, or a log and figures without any host, and say what contradicts, what is slow, what has drifted."""
    if checks:
        return _list_checks(as_json=as_json)
    given = (log, figures, trace)
    if any(one is not None for one in given):
        return _offline(chosen, given, (engine, mode, since), live=live, fail_on=fail_on, whole=whole, as_json=as_json)
    if engine is not None or mode is not None:
        raise UsageError("--engine and --mode are for files", hint="specctl doctor --log FILE --engine PROFILE")
    return _examine(chosen, since, live=live, fail_on=fail_on, whole=whole, as_json=as_json)


def _offline(
    chosen: options.Chosen,
    files: tuple[str | None, str | None, str | None],
    said: tuple[str | None, str | None, str | None],
    *,
    live: bool,
    fail_on: FailOn,
    whole: bool,
    as_json: bool,
) -> int:
    """Judge files; hosts have no part in it."""
    from specctl.ops import doctor_files

    if chosen.given or live:
        raise UsageError("files are judged without a host", hint="leave --host, --group, --all and --live out")
    log, figures, trace = files
    engine, mode, since = said
    given = doctor_files.Given(
        log=log,
        figures=figures,
        trace=trace,
        engine=engine,
        mode=mode,
        inventory=chosen.inventory,
        since_s=_seconds(since),
    )
    found, read = doctor_files.examine(given)
    if as_json:
        lines = None if read is None else read.lines
        typer.echo(json.dumps({"files": _named(given), "log_lines": lines, **found.as_wire()}, indent=2))
    else:
        size = [] if log is None or read is None else [_size(read)]
        _print([([*_named(given).values(), *size], found)], whole=whole)
    return _code([found], fail_on)


def _size(read: Log) -> str:
    """Say how much of a log there was to go by; of a long one only the newest decoding is kept."""
    from specctl.doctor.lines import MOST_WINDOWS

    found = len(read.windows)
    lines = "1 log line" if read.lines == 1 else f"{read.lines} log lines"
    return f"{lines}, {f'at least {found}' if found == MOST_WINDOWS else found} of decoding"


def _named(given: Given) -> dict[str, str]:
    """Return the files that are judged, by what they are."""
    names = {"log": given.log, "figures": given.figures, "trace": given.trace}
    return {kind: path for kind, path in names.items() if path is not None}


def _examine(
    chosen: options.Chosen, since: str | None, *, live: bool, fail_on: FailOn, whole: bool, as_json: bool
) -> int:
    """Examine hosts; the gravest failure to reach one gives the exit code, else what was found."""
    from specctl.cli.main import print_error
    from specctl.ops import doctor as doctors
    from specctl.ops.doctor_gather import Wish
    from specctl.rollout.outcome import Outcome, exit_code

    wish = Wish(live=live, since_s=_seconds(since))
    selected = chosen.pairs()
    with _watching(len(selected), as_json=as_json) as show:
        found = doctors.examine(selected, wish, show=show)
    if as_json:
        typer.echo(json.dumps({"servers": [one.as_wire() for one in found]}, indent=2))
    else:
        _print([(_heading(one), one.report) for one in found if one.error is None], whole=whole)
    for one in found:
        if one.error is not None:
            print_error(one.error, as_json=as_json)
    failed = exit_code([Outcome(host=one.host, server=one.server, error=one.error) for one in found])
    return failed or _code([one.report for one in found], fail_on)


@contextlib.contextmanager
def _watching(servers: int, *, as_json: bool) -> Iterator[Show | None]:
    """Say on a terminal what is being waited for; nothing anywhere else."""
    from specctl.ui.theme import console

    screen = console(stderr=True)
    if as_json or not screen.is_terminal:
        yield None
        return
    with screen.status(f"looking at {servers} server{'' if servers == 1 else 's'}") as status:
        yield lambda host, progress: status.update(f"{host}  load  {progress.share:.0%}  {progress.tokens} tokens")


def _seconds(text: str | None) -> float | None:
    from specctl.fleet import units

    if text is None:
        return None
    try:
        found = units.seconds(text)
    except ValueError as error:
        raise UsageError(f"--since {text}: {error}", hint="--since 10m") from error
    if found <= 0:
        raise UsageError(f"--since {text} is no time", hint="--since 10m")
    return found


def _heading(one: Examined) -> list[str]:
    from specctl.ui.text import age

    mode = "mode unknown" if one.mode is None else str(one.mode)
    up = [] if one.up_s is None else [f"up {age(one.up_s)}"]
    log = [] if one.log_lines is None else [f"{one.log_lines} log lines"]
    return [one.host, one.server, *([one.profile] if one.profile else []), mode, *up, *log]


def _print(rows: Sequence[tuple[Sequence[str], Report]], *, whole: bool) -> None:
    from specctl.ui import doctor as views

    folded, out = is_folded(), listing()
    for number, (heading, report) in enumerate(rows):
        if number:
            out.print()
        out.print(views.view(heading, report, width=out.width if folded else None, whole=whole), soft_wrap=not folded)


def _code(reports: Sequence[Report], fail_on: FailOn) -> int:
    """Return 6 where a report has a finding that is grave enough."""
    if fail_on is FailOn.NEVER:
        return EXIT_OK
    grave = {rank.value for rank in RANKS[: RANKS.index(fail_on) + 1]}
    found = any(one.severity.value in grave for report in reports for one in report.findings)
    return EXIT_ROLLED_BACK if found else EXIT_OK


def _list_checks(*, as_json: bool) -> int:
    """Print every check by its id."""
    from specctl.doctor.catalogue import by_id

    found = by_id().values()
    if as_json:
        rows = [
            {"id": one.id, "severity": one.severity.value, "title": one.title, "meaning": one.meaning} for one in found
        ]
        typer.echo(json.dumps({"checks": rows}, indent=2))
        return EXIT_OK
    for one in found:
        typer.echo(f"{one.id}  {one.severity.value:<7}  {one.title}")
    return EXIT_OK
