"""The commands that look: status (cli/status.py), history, health, logs, ask, exec."""

from __future__ import annotations

import json
import sys
import threading
from typing import Annotated

import typer

from specctl.cli import options, status
from specctl.cli.stopping import interruptible
from specctl.errors import SpecctlError


def mount(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command("status")(status.status)
    app.command("history")(history)
    app.command("health")(health)
    app.command("logs")(logs)
    app.command("ask")(ask)
    app.command("exec", context_settings={"ignore_unknown_options": True})(execute)


@options.selecting()
def history(
    chosen: options.Chosen,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="The newest so many.")] = 20,
    as_json: options.JSON = False,
) -> int:
    """Show what was done to servers: who, when, what, and how it ended."""
    from specctl.cli.main import print_error
    from specctl.ops import look
    from specctl.rollout.outcome import Outcome, exit_code

    found = look.history(chosen.pairs(), limit)
    outcomes, rows = [], []
    for (host_name, server_name), records in found.items():
        error = records if isinstance(records, SpecctlError) else None
        outcomes.append(Outcome(host=host_name, server=server_name, error=error))
        if error is not None:
            print_error(error, as_json=as_json)
            continue
        assert isinstance(records, tuple)
        rows.append({"host": host_name, "server": server_name, "records": list(records)})
    code = exit_code(outcomes)
    if as_json:
        typer.echo(json.dumps({"history": rows}, indent=2))
        return code
    from specctl.cli.printed import is_folded, listing
    from specctl.ui import history as views

    out = listing()
    for row in rows:
        out.print(f"{row['host']}  {row['server']}", style="host")
        if not row["records"]:
            out.print("  no records")
        elif is_folded():
            out.print(views.records_view(row["records"]))
        for record in () if is_folded() else row["records"]:
            out.print(views.record_line(record), soft_wrap=True)
    return code


@options.selecting()
def health(
    chosen: options.Chosen,
    as_json: options.JSON = False,
) -> int:
    """Run gate, smoke and proof on what is running; changes nothing."""
    from specctl.cli.acting import finish_health
    from specctl.ops import look
    from specctl.ui.board import Board, mode_for
    from specctl.ui.theme import console

    selected = chosen.pairs()
    screen = console(stderr=True)
    with Board(screen, mode_for(screen, json_asked=as_json), hosts=tuple(one.name for one, _ in selected)) as board:
        ends = look.health(selected, board)
    return finish_health(ends, as_json=as_json)


@options.selecting("group", "exclude", "every")
def logs(
    chosen: options.Chosen,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, metavar="N", help="The last so many.")
    ] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come.")] = False,
    release: Annotated[
        str | None, typer.Option("--release", metavar="RELEASE", help="Of this release's newest start only.")
    ] = None,
) -> None:
    """Show a server's log, secrets blotted out."""
    from specctl.ops import look
    from specctl.ui.text import plain

    pair = options.one(chosen.pairs())
    done = threading.Event()
    with interruptible(done, None):
        look.logs(
            pair,
            lines=lines,
            follow=follow,
            release=release,
            show=lambda line: typer.echo(plain(line)),
            done=done,
        )


@options.selecting("group", "exclude", "every")
def ask(
    chosen: options.Chosen,
    prompt: Annotated[str, typer.Argument(help="What the engine is to go on from.")],
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, max=100_000, metavar="N", help="At most so many new tokens.")
    ] = 64,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0.0, max=10.0, metavar="T", help="0 is greedy.")
    ] = 0.0,
    as_json: options.JSON = False,
) -> None:
    """Send one prompt to a server and show its answer."""
    from specctl.ops import look
    from specctl.ui.text import plain

    pair = options.one(chosen.pairs())
    answer = look.ask(pair, prompt, tokens=tokens, temperature=temperature)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    typer.echo(plain(str(answer.get("text", ""))))
    meta = answer.get("meta_info")
    if isinstance(meta, dict):
        said = [f"{meta['completion_tokens']} tokens"] if "completion_tokens" in meta else []
        if meta.get("spec_accept_length"):
            said.append(f"accept length {meta['spec_accept_length']:.2f}")
        typer.echo(f"— {', '.join(said)}", err=True)


@options.selecting("group", "exclude", "server", "every")
def execute(
    chosen: options.Chosen,
    command: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.")],
) -> int:
    """Run a command on one host, as the user and with the sudo that the inventory names; its exit status is ours."""
    from specctl.ops import look

    code = 0
    for name, content in look.execute(chosen.host(), command):
        if name == "status":
            code = int(content)
            continue
        stream = sys.stdout.buffer if name == "out" else sys.stderr.buffer
        stream.write(content)
        stream.flush()
    return code
