"""The `specctl` command: mounts the command groups and is the one place where an error is printed."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from functools import cache
from typing import Annotated

import typer

from specctl import errors
from specctl.errors import BugError, InventoryError, SpecctlError, UsageError

app = typer.Typer(
    name="specctl",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Deploy, prove and operate fleets of SGLang servers that decode speculatively.",
)


def _version(wanted: bool) -> None:  # the signature is typer's
    if wanted:
        from importlib.metadata import version

        typer.echo(f"specctl {version('specctl-fleet')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Take options that go before every command."""


@cache
def mount() -> None:
    """Add every command group to the app, once: a second time, each would stand in it twice."""
    from specctl.cli import (
        ab,
        agent,
        bench,
        calibrate,
        deploy,
        doctor,
        inventory,
        lifecycle,
        lint,
        lock,
        look,
        preflight,
        render,
        simulate,
        switch,
        top,
    )

    app.add_typer(inventory.app, name="inventory", help="Check, list and explain the inventory.")
    app.add_typer(lock.app, name="lock", help="See, take or release the lease on a server.")
    inventory.mount(app)
    groups = (
        render,
        lint,
        preflight,
        deploy,
        switch,
        lifecycle,
        look,
        agent,
        simulate,
        bench,
        ab,
        doctor,
        calibrate,
        top,
    )
    for group in groups:
        group.mount(app)


def print_error(error: SpecctlError, *, as_json: bool) -> None:
    """Print one error on stderr, as text or as a JSON object."""
    if as_json:
        import json

        typer.echo(json.dumps({"error": error.as_json()}), err=True)
        return
    from specctl.ui.text import plain

    if isinstance(error, InventoryError):
        for problem in error.problems:
            typer.echo(plain(str(problem)), err=True)
    typer.echo(plain(f"error: {error}"), err=True)
    if error.hint:
        typer.echo(plain(f"  try: {error.hint}"), err=True)


def _print_misread(error: typer.TyperException, *, as_json: bool) -> None:
    """Print why the command line could not be read; a group that was called bare shows its help instead."""
    context = getattr(error, "ctx", None)
    message = error.format_message()
    if context is None or message != context.get_help():
        words = message[:1].lower() + message[1:].rstrip(".")
        command = "specctl" if context is None else context.command_path
        print_error(UsageError(words, hint=f"{command} --help"), as_json=as_json)
    else:
        typer.echo(message, err=True)


def main() -> None:
    """Run the command line and leave with a documented exit code."""
    _open_streams()
    mount()
    command = typer.main.get_command(app)
    code = errors.EXIT_OK
    as_json = "--json" in sys.argv[1:]
    try:
        returned = command.main(prog_name="specctl", standalone_mode=False)
        code = returned if isinstance(returned, int) else errors.EXIT_OK
    except SpecctlError as error:
        print_error(error, as_json=as_json)
        code = error.exit_code
    except typer.TyperException as error:
        _print_misread(error, as_json=as_json)
        code = errors.EXIT_USAGE
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        code = errors.EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:
        # Typer and Rich make an exit of their own of it, with what would be the code of a bug.
        if not isinstance(end, BrokenPipeError) and not isinstance(end.__context__, BrokenPipeError):
            raise
        code = errors.EXIT_UNREAD
        _forget_output()
    except Exception as error:  # noqa: BLE001  # the last boundary: a bug ends in a file and two lines, not in a screenful
        found = _full(error) or _bug(error)
        print_error(found, as_json=as_json)
        code = found.exit_code
    gc.freeze()  # The interpreter's end would look through all that imports have left, a tenth of a short command.
    sys.exit(code)


def _open_streams() -> None:
    """Put /dev/null in the place of streams that are closed, where a connection would be opened else and be written to.

    What the output's encoding does not have is printed as ?, and is no error.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _full(error: Exception) -> UsageError | None:
    """Return the error of a disk that is full, which is nobody's bug; None of another one."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    place = f"{error.filename}" if error.filename else "the output"
    return UsageError(f"{place} cannot be written: {error.strerror}", hint="make room: df -h")


def _bug(error: Exception) -> BugError:
    """Write the traceback to a file and return an error that says where it is."""
    import traceback

    from specctl.adapters.records import keep_crash

    place = keep_crash("".join(traceback.format_exception(error)))
    return BugError(f"a bug in specctl: {type(error).__name__}: {error}", hint=f"report it, with {place}")


def _forget_output() -> None:
    """Keep the interpreter from complaining, at its end, of a pipe that nobody reads."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
