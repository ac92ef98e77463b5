"""The commands that put a release into service: deploy, rollback, restart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specctl.cli import options

DIFF = Annotated[bool, typer.Option("--diff", help="Show the difference of the unit files.")]
FORCE = Annotated[bool, typer.Option("--force", help="Act even where there is nothing to do.")]
CANARY = Annotated[bool, typer.Option("--canary", help="One host first; the others only when it serves.")]
ALGO = Annotated[
    str | None, typer.Option("--algo", help="none, dflash or ddtree; else the inventory's.", metavar="ALGO")
]
KNOB = Annotated[
    list[str] | None, typer.Option("--knob", help="A knob of the algo, NAME=NUMBER (repeatable).", metavar="K=N")
]
REASON = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Kept in the lease, for whoever finds it held.")
]
TEMPLATES = Annotated[
    list[Path] | None, typer.Option("--templates", help="A folder of templates that come before the shipped ones.")
]
NO_GATE = Annotated[
    bool, typer.Option("--no-gate", help="Do not wait for the load: nothing is proven, nothing is rolled back.")
]
LOSSLESS = Annotated[
    bool, typer.Option("--prove-lossless", help="Also compare greedy output with that of algo none (one more load).")
]


def mount(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command("deploy")(deploy)
    app.command("rollback")(rollback)
    app.command("restart")(restart)


@options.selecting()
def deploy(
    chosen: options.Chosen,
    algo: ALGO = None,
    knob: KNOB = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    diff: DIFF = False,
    force: FORCE = False,
    canary: CANARY = False,
    steal_lock: options.STEAL = False,
    no_gate: NO_GATE = False,
    prove_lossless: LOSSLESS = False,
    reason: REASON = None,
    skip_check: options.SKIP = None,
    templates: TEMPLATES = None,
    as_json: options.JSON = False,
) -> int:
    """Bring the inventory's servers to the hosts and prove that they serve; take them back when they do not."""
    from specctl.cli import acting
    from specctl.ops import inventory as fleets
    from specctl.ops.act import Care
    from specctl.ops.deploy import Request
    from specctl.ops.preflight import skips
    from specctl.rollout.record import Act

    overrides = fleets.Overrides(algo=algo, knobs=options.knobs(knob))
    selected = chosen.pairs(overrides)
    request = Request(
        act=Act.DEPLOY,
        algo=algo,
        force=force,
        canary=canary,
        steal=steal_lock,
        care=Care(gated=not no_gate, lossless=prove_lossless),
        reason=reason,
        skipped=skips(skip_check, reason),
    )
    manner = acting.Manner(yes=yes, dry_run=dry_run, as_json=as_json, diff=diff, templates=tuple(templates or ()))
    return acting.run(selected, request, manner)


@options.selecting()
def rollback(
    chosen: options.Chosen,
    release: Annotated[
        str | None,
        typer.Option("--release", metavar="RELEASE", help="The release to go back to; else what served before."),
    ] = None,
    algo: Annotated[
        str | None, typer.Option("--algo", help="With --release: one of its algos.", metavar="ALGO")
    ] = None,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    diff: DIFF = False,
    steal_lock: options.STEAL = False,
    reason: REASON = None,
    skip_check: options.SKIP = None,
    as_json: options.JSON = False,
) -> int:
    """Go back to what served before, or to a release that is named."""
    from specctl.cli import acting
    from specctl.ops.deploy import Request
    from specctl.ops.preflight import skips
    from specctl.ops.stored import RollBackTo
    from specctl.rollout.record import Act

    selected = chosen.pairs()
    request = Request(act=Act.ROLLBACK, algo=algo, steal=steal_lock, reason=reason, skipped=skips(skip_check, reason))
    manner = acting.Manner(yes=yes, dry_run=dry_run, as_json=as_json, diff=diff)
    return acting.run(selected, request, manner, RollBackTo(release, algo))


@options.selecting()
def restart(
    chosen: options.Chosen,
    yes: options.YES = False,
    dry_run: options.DRY_RUN = False,
    canary: CANARY = False,
    steal_lock: options.STEAL = False,
    reason: REASON = None,
    skip_check: options.SKIP = None,
    as_json: options.JSON = False,
) -> int:
    """Drain, stop and start what is deployed, and gate it again."""
    from specctl.cli import acting
    from specctl.ops.deploy import Request
    from specctl.ops.preflight import skips
    from specctl.ops.stored import prepare_restart
    from specctl.rollout.record import Act

    selected = chosen.pairs()
    request = Request(
        act=Act.RESTART, canary=canary, steal=steal_lock, reason=reason, skipped=skips(skip_check, reason)
    )
    manner = acting.Manner(yes=yes, dry_run=dry_run, as_json=as_json)
    return acting.run(selected, request, manner, prepare_restart)
