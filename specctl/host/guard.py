"""The ops on the guard: arm it before anything is changed, disarm it by the confirm, and tell how it stands.

The rules are in guard_rules.py; guard_tick.py runs them on the host, without any session.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from dataclasses import replace
from typing import Dict, Mapping, Optional

from specctl.host import clock, files, guard_files, guard_state, lease, records, releases, services, systemd
from specctl.host.guard_state import CONFIRMED, OVER, WATCHING, GuardState
from specctl.host.wire import UNSUPPORTED, USAGE, Args, Call, OpError

TARGET = ("manager", "port", "bind")


def unit_dir(target: Args) -> str:
    """Return where the units lie of what an op's `manager` names; refuse what is no systemd."""
    chosen = target.part("manager")
    if chosen.text("kind") != services.SYSTEMD:
        raise OpError(
            UNSUPPORTED, "there is no guard without systemd", hint="set service_manager: systemd for the host"
        )
    return chosen.text_or_none("unit_dir") or systemd.UNIT_DIR


def _earlier(folder: str) -> Optional[GuardState]:
    """Return the guard that is armed already, if its state can be read."""
    try:
        found = guard_state.load(folder)
    except OpError:
        return None
    return None if found is None or found.phase in OVER else found


def _before(call: Call, folder: str, back: Optional[guard_state.Goal], earlier: Optional[GuardState]) -> Optional[str]:
    """Return the start of what is to come back, if it still runs; else what an earlier arming knew of it."""
    named = releases.pointed(folder)
    if back is not None and named is not None and (named.id, named.algo) == (back.id, back.algo):
        return services.of(call.args).state().invocation
    return earlier.before if earlier is not None and earlier.back == back else None


def _keep_unwritten(folder: str) -> None:
    """Write the record of a guard that ended but could not write it."""
    with contextlib.suppress(OpError):
        found = guard_state.load(folder)
        if found is not None and found.phase in OVER and found.record is not None:
            records.add(folder, found.record, once=True)


def arm(call: Call) -> Mapping[str, object]:
    """Put a guard on a deploy, or on its next part: from now on it is taken back unless `disarm` comes in time."""
    args = call.args
    folder, script, home = args.path("dir"), args.text("script"), unit_dir(args)
    aim, back = guard_state.goal(args.part("aim")), guard_state.goal(args.part("back"))
    if aim is None or files.sha256(script.encode("utf-8")) != args.text("sha256"):
        raise OpError(USAGE, "the guard's program did not come whole")
    earlier = _earlier(folder)
    _keep_unwritten(folder)
    state = GuardState(
        phase=WATCHING,
        act=args.text("act"),
        who=args.text("who"),
        server=args.text("server"),
        host=args.text("host"),
        aim=aim,
        back=back,
        token=args.whole("token", 0),
        boot=clock.boot_id(),
        seen_s=clock.boottime_s(),
        hard_left_s=args.number("hard_s", 1200.0),
        hard_s=args.number("hard_s", 1200.0),
        confirm_s=args.number("confirm_s", 120.0),
        load_s=args.number("load_s", 1200.0),
        stop_s=args.number("stop_s", 180.0),
        before=_before(call, folder, back, earlier),
        version=args.text_or_none("version"),
        target={name: args.fields.get(name) for name in TARGET},
    )
    try:
        # The timer first: whoever dies in between leaves a guard without a state, which removes itself, and never a state
        # without a guard. It takes no lease from us meanwhile.
        guard_files.write_program(folder, script)
        guard_files.install(folder, state.server, home, sys.executable)
        with lease.fenced(folder, state.token):
            guard_state.save(folder, state)
    except (OpError, OSError):
        # Nothing was changed yet by whoever arms for the first time; a half-armed guard must not act on that.
        if earlier is None:
            shutil.rmtree(guard_state.place(folder), ignore_errors=True)
            with contextlib.suppress(OpError, OSError):
                guard_files.remove(folder, state.server, home, from_within=False)
        raise
    return {"armed": True, "hard_s": state.hard_s, "took_over": None if earlier is None else facts(folder)}


def disarm(call: Call) -> Mapping[str, object]:
    """Confirm: nothing is taken back from here on; write the act's record, if it has one, and remove the guard.

    The confirm is one step under the lease: either it was there before the guard began to act, or it is refused.
    """
    args = call.args
    folder, home, server = args.path("dir"), unit_dir(args), args.text("server")
    record = args.part("record").fields or None
    earlier = _earlier(folder)
    with lease.fenced(folder, args.whole("token", 0)):
        if earlier is not None:
            _confirm(folder, replace(earlier, phase=CONFIRMED, record=record))
    if guard_files.present(folder, server, home):
        # The record is durable in the state until it is in the records: whoever dies here, the next tick writes it.
        if record is not None:
            records.add(folder, record, once=True)
        guard_files.remove(folder, server, home, from_within=False)
    elif record is not None:
        records.add(folder, record)
    return {"disarmed": earlier is not None}


def _confirm(folder: str, state: GuardState) -> None:
    """Write the confirmed state; on a disk that takes no write, no state means the same."""
    try:
        guard_state.save(folder, state)
    except OSError:
        files.remove(os.path.join(guard_state.place(folder), guard_state.STATE))
        files.sync_dir(guard_state.place(folder))


def facts(folder: str) -> Optional[Dict[str, object]]:
    """Return what others may know of the guard that is armed on a server; None: none is."""
    state = guard_state.load(folder)
    if state is None or state.phase in OVER:
        return None
    same = state.boot == clock.boot_id()
    passed_s = max(0.0, clock.boottime_s() - state.seen_s) if same else 0.0

    def left(value: Optional[float]) -> Optional[float]:
        return None if value is None else round(max(0.0, value - passed_s), 3)

    return {
        "phase": state.phase,
        "act": state.act,
        "who": state.who,
        "token": state.token,
        "aim": {"id": state.aim.id, "algo": state.aim.algo},
        "back": None if state.back is None else {"id": state.back.id, "algo": state.back.algo},
        "hard_left_s": left(state.hard_left_s),
        "confirm_left_s": left(state.confirm_left_s),
        "reason": state.reason,
    }


def status(call: Call) -> Mapping[str, object]:
    """Say how the guard of a server stands, and who holds the lease."""
    folder = call.args.path("dir")
    held = lease.status(folder)
    return {"guard": facts(folder), "lease": None if held is None else held.as_wire()}
