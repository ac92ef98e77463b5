"""The performer: root's own program, woken by a request of the agent; checks it against the host and does the operator's own act.

`python -m specctl_agent.perform` carries out what lies in the requests' folder, and ends. It imports nothing that an inventory,
a template or an SSH connection needs.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import pwd
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from specctl.errors import SpecctlError
from specctl.fleet.types import Host
from specctl.host import clock, files
from specctl.ops import engine_live
from specctl.ops.contact import Contact, contacts
from specctl.ops.deploy import Request as Wish
from specctl.ops.deploy import blank_record, carry_out, redacted_by
from specctl.ops.prepare import checked, refused
from specctl.ops.stored import current_of, prepare_stored, reach, whole_release
from specctl.rollout import reading, server_note
from specctl.rollout.agent_moves import WHO
from specctl.rollout.facts import ServerFacts
from specctl.rollout.gate_types import GateState
from specctl.rollout.record import Act, Record
from specctl.rollout.record import Result as Ending
from specctl.rollout.server_note import ServerNote
from specctl_agent import allowing, config, inbox, orders
from specctl_agent import request as requests
from specctl_agent.actuators import ask
from specctl_agent.request import Request, RequestError, Result
from specctl_agent.storing import FILE_BYTES

RECORDS = 500
RESULTS_KEPT = 50
LOCK_WAIT_S = 5.0
USER = "specctl-agent"
EXIT_REFUSED, EXIT_FAILED = 3, 1


class Lines:
    """Tells progress as lines on standard error, for the journal: what stays said, and each new phase of a load."""

    def __init__(self) -> None:
        self._phase: str | None = None

    def step(self, host: str, name: str, text: str) -> None:
        """Leave out what the next step replaces."""

    def gate(self, host: str, state: GateState) -> None:
        """Say a new phase."""
        phase = state.phases[-1].phase.value if state.phases else None
        if phase != self._phase:
            self._phase = phase
            self.final(host, "loading", str(phase))

    def final(self, host: str, name: str, text: str) -> None:
        """Say it."""
        del host
        sys.stderr.write(f"{name}: {text}\n")
        sys.stderr.flush()


class Performer:
    """Carries out the requests of one host's agent."""

    def __init__(self, found: config.Config, interrupted: threading.Event) -> None:
        self._config = found
        self._interrupted = interrupted
        self._lines = Lines()

    def run(self, owner: int) -> int:
        """Carry out what lies there; returns the exit status: whether all of it could be understood."""
        status = 0
        with inbox.opened(self._config.state / requests.FOLDER, owner) as box:
            for name in box.names():
                try:
                    wanted = box.peek(name)
                except RequestError as error:
                    box.drop(name)
                    self._lines.final("", "refused", str(error))
                    status = EXIT_REFUSED
                    continue
                self._one(wanted, box, name)
        return status

    def _one(self, wanted: Request, box: inbox.Inbox, name: str) -> None:
        """Carry out one request; whatever comes of it is written where the agent reads it."""
        folder = self._config.servers / wanted.server / server_note.FOLDER
        if not (folder / server_note.NOTE).is_file():
            box.drop(name)
            self._lines.final("", "refused", f"no server {wanted.server} was told to the agent")
            return
        with _working(folder):
            known = requests.read_result(folder, wanted.id)
            if known is None:
                _write(folder, Result(id=wanted.id, outcome=requests.TAKEN_UP))
            box.drop(name)
            if known is None:
                result = self._result(wanted, folder)
                _write(folder, result)
                self._lines.final(
                    "", result.outcome, f"{wanted.kind} of {wanted.server}: {result.reason or wanted.reason}"
                )

    def _result(self, wanted: Request, folder: Path) -> Result:
        try:
            return self._carried_out(wanted, folder)
        except (SpecctlError, RequestError) as error:
            said = error.message if isinstance(error, SpecctlError) else str(error)
            return Result(id=wanted.id, outcome=requests.REFUSED, reason=said)

    def _carried_out(self, wanted: Request, folder: Path) -> Result:
        note = _note(folder)
        standing = _orders(self._config.state / orders.NAME)
        why = allowing.stale(wanted, boot=clock.boot_id(), now_s=clock.boottime_s()) or allowing.forbidden(
            note, standing
        )
        if why is not None:
            raise RequestError(why)
        with contacts([_host(note)], program=WHO) as reached:
            found = reached[note.host.name]
            if isinstance(found, SpecctlError):
                raise found
            if wanted.kind == requests.SWITCH:
                return self._switch(wanted, note, found)
            return self._noted(wanted, note, found)

    def _switch(self, wanted: Request, note: ServerNote, contact: Contact) -> Result:
        """Do the operator's own switch, in the agent's name."""
        server = note.server
        host_facts = reach(contact, server)
        facts = host_facts.servers[server.name]
        current = current_of(contact, facts)
        manifest, _ = whole_release(contact, server, wanted.release)
        rows = reading.rows(contact.call("record.read", server, {"limit": RECORDS, "lives": 0}).get("records"))
        why = allowing.unfit(note, current, wanted, manifest) or allowing.too_many(
            server.agent, rows, datetime.now(UTC)
        )
        if why is not None:
            raise RequestError(why)
        plan = prepare_stored(contact, server, wanted.release, wanted.algo, host_facts=host_facts, force=False)
        if plan.plan.nothing is not None:
            raise RequestError(plan.plan.nothing)
        plan = checked(plan, {}, served=False)
        error = refused(plan)
        if error is not None:
            raise error
        wish = Wish(act=Act.SWITCH, algo=wanted.algo, reason=wanted.reason)
        ended = carry_out(plan, wish, self._lines, self._interrupted)
        return _of_record(wanted.id, ended.record)

    def _noted(self, wanted: Request, note: ServerNote, contact: Contact) -> Result:
        """Record what the agent says that it told the running engine, if the engine says so too."""
        server = note.server
        mode = requests.mode_of(wanted.mode)
        facts = reach(contact, server, brief=True).servers[server.name]
        current = current_of(contact, facts)
        why = allowing.foreign_mode(note, current, mode)
        if why is not None:
            raise RequestError(why)
        engine = engine_live.Engine(ask.Here(contact.transport), note.deployed(current.id))
        wrong = engine_live.differing(engine.info(), engine_live.fields(server.profile, mode))
        if wrong is None or wrong:
            raise RequestError("; ".join(wrong[:3]) if wrong else "the engine does not say what it runs")
        record = _live_record(blank_record(contact, server, Act.SWITCH), wanted, facts)
        record = replace(record, algo=mode.algo, knobs=dict(mode.knobs))
        contact.call("record.append", server, {"record": dict(redacted_by(contact, record))})
        return Result(id=wanted.id, outcome=requests.DONE, serving=(current.id, current.algo), proof=wanted.proof)


def _live_record(blank: Record, wanted: Request, facts: ServerFacts) -> Record:
    """Fill a record of a live change in, from what was asked and what runs."""
    assert facts.current is not None
    return replace(
        blank,
        result=Ending.DONE,
        release=facts.current.id,
        previous=(facts.current.id, requests.mode_of(wanted.was).algo) if wanted.was else None,
        proof=wanted.proof,
        evidence=wanted.evidence,
        durations_s={} if wanted.took_s is None else {"total": wanted.took_s},
        invocation=facts.unit.invocation,
        reason=wanted.reason,
        live=True,
    )


def _of_record(request_id: str, record: Record) -> Result:
    """Return the answer that a record amounts to."""
    outcome = requests.DONE if record.result is Ending.DONE else record.result.value
    return Result(
        id=request_id,
        outcome=outcome,
        reason=record.cause or "",
        serving=record.serving,
        proof=record.proof,
        evidence=record.evidence,
        durations_s=record.durations_s,
    )


def _host(note: ServerNote) -> Host:
    """Return this host, with the interpreter that runs here for specctl's own program on it."""
    return replace(note.as_host(), python=sys.executable)


def _note(folder: Path) -> ServerNote:
    text = files.read_text(str(folder / server_note.NOTE)) or ""
    return server_note.read(text, lambda name: str(folder / server_note.KEYS / name))


def _orders(path: Path) -> Mapping[str, object]:
    """Read what people told the agent, without following a link; empty where they told it nothing.

    Raises RequestError where it cannot be read: it may be a hold.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = json.loads(file.read(FILE_BYTES + 1))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RequestError(f"what people ordered cannot be read: {path}: {error}") from error
    if not isinstance(found, dict):
        raise RequestError(f"what people ordered cannot be read: {path} is no object")
    return found


@contextlib.contextmanager
def _working(folder: Path) -> Iterator[None]:
    """Hold the lock that says that the performer is at work; whoever keeps it from us keeps nothing else."""
    results = folder / server_note.RESULTS
    results.mkdir(mode=0o755, exist_ok=True)
    descriptor = os.open(results / requests.LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + LOCK_WAIT_S
    try:
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _write(folder: Path, result: Result) -> None:
    """Leave the answer where the agent reads it; old ones go."""
    results = folder / server_note.RESULTS
    files.replace(str(results / f"{result.id}.json"), result.text().encode(), 0o644)
    old = sorted(results.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in old[: max(0, len(old) - RESULTS_KEPT)]:
        path.unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> int:
    """Carry out what the agent asks; the exit status is for systemd alone."""
    parser = argparse.ArgumentParser(prog="specctl_agent.perform", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", type=Path, default=config.CONFIG)
    parser.add_argument("--user", default=USER)
    given = parser.parse_args(arguments)
    interrupted = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: interrupted.set())
    try:
        found = config.load(given.config)
        return Performer(found, interrupted).run(pwd.getpwnam(given.user).pw_uid)
    except (SpecctlError, RequestError, OSError, KeyError) as error:
        sys.stderr.write(f"specctl-actuate: {error}\n")
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
