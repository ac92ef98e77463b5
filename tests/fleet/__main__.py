"""`python -m tests.fleet`: test hosts for people. See docs/test-fleet.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fleet import fleet, requirements, state
from tests.fleet.host import Host
from tests.fleet.waiting import FleetError

DEFAULT_NAME = "dev"


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask and return the exit status."""
    options = _parser().parse_args(arguments)
    reasons = requirements.missing()
    if reasons:
        return _failed("; ".join(reasons))
    try:
        return int(options.act(options))
    except FleetError as error:
        return _failed(str(error))


def _up(options: argparse.Namespace) -> int:
    made = fleet.up(options.hosts, name=options.name, lifeline=False)
    for host in made.hosts.values():
        print(f"{host.name}  {host.address}")
    print(f"fleet {made.name} is up: python -m tests.fleet ssh gpu1, python -m tests.fleet run -- specctl …")
    return 0


def _down(options: argparse.Namespace) -> int:
    for name in state.names() if options.all else (options.name,):
        if state.is_up(name):
            fleet.attach(name).down()
            print(f"fleet {name} is down")
        else:
            print(f"fleet {name} was not up")
    for name in state.sweep():
        print(f"fleet {name} was dead: leftovers removed")
    return 0


def _status(options: argparse.Namespace) -> int:
    found = []
    for name in state.names():
        with contextlib.suppress(FleetError):  # It is just coming up, or going down.
            found.append(fleet.attach(name))
    if options.json:
        rows = [{"fleet": one.name, "hosts": [_row(host) for host in one.hosts.values()]} for one in found]
        print(json.dumps(rows, indent=1))
        return 0
    for one in found:
        for host in one.hosts.values():
            print(f"{one.name}  {host.name}  {host.address}  {_row(host)['state']}")
    if not found:
        print("no fleet is up")
    return 0


def _row(host: Host) -> dict[str, str]:
    word = "off" if not host.is_running else "cut off" if host.is_cut else "on"
    return {"host": host.name, "address": host.address, "state": word}


def _ssh(options: argparse.Namespace) -> int:
    found = fleet.attach(options.name)
    if options.host.rpartition("@")[2] not in found.hosts:
        return _failed(f"no host {options.host}: there are {', '.join(found.hosts)}")
    return _become(found, ["ssh", options.host, *options.command], found.home)


def _run(options: argparse.Namespace) -> int:
    if not options.command:
        return _failed("run needs a command: python -m tests.fleet run -- COMMAND")
    return _become(fleet.attach(options.name), options.command, Path.cwd())


def _become(found: fleet.Fleet, argv: list[str], cwd: Path) -> int:
    command = found.enclosure.control_argv(argv, cwd=cwd)
    sys.stdout.flush()
    os.execvpe(command[0], command, found.environment())


def _failed(why: str) -> int:
    print(f"error: {why}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet", description="Real systemd + sshd hosts for tests.")
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"which fleet (default {DEFAULT_NAME})")
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="boot hosts; they stay until down")
    up.add_argument("-n", "--hosts", type=int, default=2, help="how many (default 2)")
    up.set_defaults(act=_up)
    down = commands.add_parser("down", help="end the fleet, and remove what dead fleets left")
    down.add_argument("--all", action="store_true", help="end every fleet, those of running tests too")
    down.set_defaults(act=_down)
    status = commands.add_parser("status", help="list fleets and hosts")
    status.add_argument("--json", action="store_true", help="as JSON")
    status.set_defaults(act=_status)
    ssh = commands.add_parser("ssh", help="log in to a host, or run a command there")
    ssh.add_argument("host", help="gpu1, or ops@gpu1")
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    ssh.set_defaults(act=_ssh)
    run = commands.add_parser("run", help="run a command where the hosts can be reached")
    run.add_argument("command", nargs="*")
    run.set_defaults(act=_run)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
