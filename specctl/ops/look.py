"""Look without touching: history, health of what is running, logs, a prompt; and a command of the operator's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from specctl.engines.types import AlgoProfile, EvidenceKind
from specctl.errors import NoHealthyReleaseError, RemoteCommandError, SpecctlError, UnhealthyError
from specctl.fleet.types import Host, Server
from specctl.ops import engine_live
from specctl.ops.contact import Contact, contacts, each
from specctl.ops.engine_http import EngineClient
from specctl.ops.gate import Gate, GateEnd, Question
from specctl.ops.reporter import Reporter
from specctl.ops.stored import current_of, demand_accepted_key, reach, reach_deployed
from specctl.rollout.agent_moves import LiveMove, live_move
from specctl.rollout.launch import algo_profile

Pair = tuple[Host, Server]
# A start of eight ranks logs some thousand lines until it is ready.
OPENING_LINES = 5000
LINES_LOST = "— here lines are missing: they came faster than the connection takes them —"


def history(selected: Sequence[Pair], limit: int) -> Mapping[tuple[str, str], object]:
    """Return the host's records of every selected server, oldest first; a SpecctlError where they cannot be read."""

    def one(contact: Contact, server: Server) -> object:
        answer = contact.call("record.read", server, {"limit": limit})
        records = answer.get("records")
        return tuple(record for record in records if isinstance(record, Mapping)) if isinstance(records, list) else ()

    return each(selected, one)


def health(selected: Sequence[Pair], reporter: Reporter) -> Mapping[tuple[str, str], GateEnd | SpecctlError]:
    """Run the gate, smoke and proof on what is running; changes nothing."""

    def one(contact: Contact, wanted: Server) -> GateEnd:
        server, facts = reach_deployed(contact, wanted)
        current = current_of(contact, facts)
        if facts.unit.active != "active":
            raise NoHealthyReleaseError(
                f"server {server.name} is not running ({facts.unit.active or 'state unknown'})",
                hint=f"specctl start --host {contact.host.name}",
            )
        demand_accepted_key(contact, server, facts)
        moved = live_move(facts)
        question = Question(
            algo=_provable(contact, server, current.algo, moved),
            knobs=current.knobs() if moved is None else moved.knobs,
            started=facts.unit,
            started_at_s=facts.now_s or 0.0,
            past_loads=facts.past_loads(current.algo),
            opening=opening_of(contact, server, facts.unit.invocation),
        )
        gate = Gate(
            contact,
            server,
            question,
            show=lambda state: reporter.gate(contact.host.name, state),
            interrupted=threading.Event(),
        )
        return gate.run()

    found = each(selected, one)
    return {key: value for key, value in found.items() if isinstance(value, (GateEnd, SpecctlError))}


def _provable(contact: Contact, server: Server, started: str, moved: LiveMove | None) -> AlgoProfile:
    """Return the profile with the proof of what runs: after a live change, and of an engine that follows a table of modes, another.

    Lines of a table's engine speak of more modes than one; what its answers tell holds for all.
    """
    found = algo_profile(server, started) if moved is None else algo_profile(server, moved.algo).after_a_change()
    if not engine_live.Engine(contact, server).follows_table():
        return found
    return replace(found, live_proof=tuple(each for each in found.live_proof if each.kind is not EvidenceKind.LOG))


def opening_of(contact: Contact, server: Server, invocation: str | None) -> tuple[str, ...]:
    """Return the first log lines of a start: what the engine said of itself, however much it has logged since."""
    found: list[str] = []

    def take(event: Mapping[str, object]) -> None:
        found.extend(told(event))

    contact.call("logs", server, {"first": OPENING_LINES, "invocation": invocation}, on_event=take)
    return tuple(found)


def judged(end: GateEnd, host: str) -> SpecctlError | None:
    """Return the error that an unhealthy server ends `specctl health` with."""
    if end.healthy:
        return None
    return UnhealthyError(end.cause, hint=f"specctl logs --host {host}", host=host)


def logs(
    pair: Pair, *, lines: int, follow: bool, release: str | None, show: Callable[[str], None], done: threading.Event
) -> None:
    """Show a server's log, of all starts or of one release's last start; secrets are blotted out.

    Lines that were lost because they came too fast are told in their place. Raises UsageError where there is no log, since
    nothing was ever deployed.
    """
    host, server = pair

    def one(contact: Contact, _server: Server) -> None:
        facts = reach(contact, server, brief=True).servers[server.name]
        if not facts.records:
            current_of(contact, facts)

        def take(event: Mapping[str, object]) -> None:
            for line in told(event):
                show(contact.redactor.redact(line))

        invocation = invocation_of(contact, server, release) if release else None
        args = {"lines": lines, "follow": follow, "invocation": invocation}
        contact.call("logs", server, args, on_event=take, timeout_s=None if follow else 60.0, cancel=done)

    for found in each([(host, server)], one).values():
        if isinstance(found, SpecctlError):
            raise found


def told(event: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of one event of a log that is followed; before them, that some were lost, where they were."""
    if event.get("lost") is True:
        yield LINES_LOST
    found = event.get("lines")
    yield from (str(line) for line in (found if isinstance(found, list) else ()))


def invocation_of(contact: Contact, server: Server, release: str) -> str:
    """Return the newest start of a release by the host's records; raises RemoteCommandError when there is none."""
    records = contact.call("record.read", server, {"limit": 200}).get("records")
    for record in reversed(records if isinstance(records, list) else []):
        if (
            isinstance(record, Mapping)
            and record.get("release") == release
            and isinstance(record.get("invocation"), str)
        ):
            return str(record["invocation"])
    raise RemoteCommandError(
        f"no start of release {release} is on record",
        hint=f"specctl history --host {contact.host.name}",
        host=contact.host.name,
    )


def ask(pair: Pair, prompt: str, *, tokens: int, temperature: float) -> Mapping[str, object]:
    """Send one prompt to a server and return the engine's answer; raises RemoteCommandError when there is none."""
    content = {"text": prompt, "sampling_params": {"max_new_tokens": tokens, "temperature": temperature}}

    def one(contact: Contact, wanted: Server) -> Mapping[str, object]:
        server, facts = reach_deployed(contact, wanted)
        if facts.current is not None:
            demand_accepted_key(contact, server, facts)
        reply = EngineClient.of(contact, server).post("/generate", content, timeout_s=600.0)
        if reply.status != 200:
            said = reply.failure or f"status {reply.status}"
            raise RemoteCommandError(
                f"the engine gave no answer: {said}", hint=f"specctl status --host {contact.host.name}"
            )
        return reply.fields

    found = next(iter(each([pair], one).values()))
    if isinstance(found, SpecctlError):
        raise found
    assert isinstance(found, Mapping)
    return found


def execute(host: Host, argv: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Run a command of the operator's on the host; yields ("out"|"err", bytes) and last ("status", its number as text)."""
    from specctl.ops.execute import run_there

    with contacts([host]) as reached:
        found = reached[host.name]
        if isinstance(found, SpecctlError):
            raise found
        yield from run_there(found.transport, argv)
