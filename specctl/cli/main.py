"""The `specctl` command: mounts the command groups and is the one place where an error is printed."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import click
import typer

from specctl import errors
from specctl.errors import InventoryError, SpecctlError

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


def mount() -> None:
    """Add every command group to the app."""
    from specctl.cli import deploy, inventory, lifecycle, lock, look, render

    app.add_typer(inventory.app, name="inventory", help="Check, list and explain the inventory.")
    app.add_typer(lock.app, name="lock", help="See, take or release the lease on a server.")
    inventory.mount(app)
    for group in (render, deploy, lifecycle, look):
        group.mount(app)


def print_error(error: SpecctlError, *, as_json: bool) -> None:
    """Print one error on stderr, as text or as a JSON object."""
    if as_json:
        import json

        typer.echo(json.dumps({"error": error.as_json()}), err=True)
        return
    if isinstance(error, InventoryError):
        for problem in error.problems:
            typer.echo(str(problem), err=True)
    typer.echo(f"error: {error}", err=True)
    if error.hint:
        typer.echo(f"  try: {error.hint}", err=True)


def _click_error(error: click.ClickException) -> int:
    error.show()
    return errors.EXIT_USAGE if isinstance(error, click.UsageError) else error.exit_code


def main() -> None:
    """Run the command line and leave with a documented exit code."""
    mount()
    command = typer.main.get_command(app)
    code = errors.EXIT_OK
    try:
        returned = command.main(standalone_mode=False)
        code = returned if isinstance(returned, int) else errors.EXIT_OK
    except SpecctlError as error:
        print_error(error, as_json="--json" in sys.argv[1:])
        code = error.exit_code
    except click.ClickException as error:
        code = _click_error(error)
    except (click.Abort, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        code = errors.EXIT_INTERRUPTED
    except BrokenPipeError:
        code = errors.EXIT_UNREAD
        _forget_output()
    sys.exit(code)


def _forget_output() -> None:
    """Keep the interpreter from complaining, at its end, of a pipe that nobody reads."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
