"""Reach the server that is to be measured, say what it is and what a bench would cost; refuse where a bench would mean nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version

from specctl.control import mode as modes
from specctl.control.sample import engine_info
from specctl.control.sample.engine import EngineInfo
from specctl.control.sight_facts import proof_of
from specctl.errors import LockHeldError, SpecctlError, UnhealthyError, UsageError
from specctl.fleet.types import Host, Server
from specctl.measure.bench import Subject
from specctl.measure.load import Closed, Level, Prompt, Replay, Timing
from specctl.measure.load_plan import ASSUMED_CHARS_A_TOKEN, Send
from specctl.ops.bench_wish import Wish, fitted
from specctl.ops.contact import Contact, contacts
from specctl.ops.engine_http import EngineClient
from specctl.ops.load import expected_requests, expected_tokens
from specctl.ops.load_counters import counters, info
from specctl.ops.load_request import Line, send
from specctl.ops.stored import reach
from specctl.rollout import reading
from specctl.rollout.agent_moves import live_move
from specctl.rollout.facts import HostFacts, ServerFacts, as_deployed, stored_launch

PROBE_S = 120.0
PROBE_TOKENS = 64
PROBE_PROMPT = Prompt(
    id="probe", kind="chat", text="List the whole numbers from one to forty, each on a line of its own."
)
# Of a trace, so many prompts are asked for their tokens; of other loads, the longest alone.
PROBED = 32
# Characters a token differ from text to text by so much, at most: what is longer than that cannot fit.
SURE = 0.6
DIGEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What some requests before a bench told: one stream's tokens a second, and characters a token of its prompts."""

    tokens_s: float | None
    chars_a_token: float
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A server that can be measured. `running`: requests that are there already; `cut`: a trace's requests cut to the context."""

    contact: Contact
    client: EngineClient
    subject: Subject
    wish: Wish
    running: int | None = None
    max_running: int | None = None
    context: int | None = None
    cut: int = 0
    probe: Probe | None = None

    def mode(self) -> str | None:
        """Return what the engine claims to run now."""
        return claimed_mode(info(self.client), self.client.server)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Return the first run's level of each pace."""
        return tuple(self.wish.level(number, 0) for number in range(len(self.wish.paces)))

    @property
    def tokens(self) -> int:
        """Return about how many tokens the whole bench generates."""
        return self.wish.setting.runs * sum(expected_tokens(level) for level in self.levels)

    @property
    def requests(self) -> int:
        """Return about how many requests the whole bench sends."""
        return self.wish.setting.runs * sum(expected_requests(level) for level in self.levels)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what a person would want to know before."""
        found = []
        most = max((level.pace.concurrency for level in self.levels if isinstance(level.pace, Closed)), default=0)
        if self.max_running is not None and most > self.max_running:
            found.append(f"the engine runs at most {self.max_running} requests at once: beyond, they wait in its queue")
        if self.cut:
            what = "1 request of the trace is" if self.cut == 1 else f"{self.cut} requests of the trace are"
            found.append(f"{what} cut to the engine's context of {self.context} tokens")
        return tuple(found)

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Return the least and the most that the bench takes by the probe: as if throughput grew with concurrency, or its root."""
        if self.probe is None or self.probe.tokens_s is None:
            return None
        least = most = 0.0
        for level in self.levels:
            if isinstance(level.pace, Closed):
                alone_s = expected_tokens(level) / self.probe.tokens_s
                least += max(level.seconds, alone_s / level.pace.concurrency)
                most += max(level.seconds, alone_s / level.pace.concurrency**0.5)
            else:
                span_s = level.pace.arrivals[-1].at_s if isinstance(level.pace, Replay) else level.seconds
                least, most = least + span_s, most + span_s + level.tokens / self.probe.tokens_s
        runs = self.wish.setting.runs
        return least * runs, min(most, len(self.levels) * self.wish.limit_s) * runs


@contextlib.contextmanager
def reached(pair: tuple[Host, Server], wish: Wish, *, ask: bool) -> Iterator[Ready]:
    """Yield the server, ready to be measured; `ask`: send the requests of the probe.

    Raises LockHeldError while somebody acts on it, UnhealthyError where it does not serve, UsageError where the prompts and answers
    do not fit into its context.
    """
    host, server = pair
    with contacts([host]) as found:
        contact = found[host.name]
        if isinstance(contact, SpecctlError):
            raise contact
        try:
            yield _ready(contact, server, wish, ask=ask)
        except SpecctlError as error:
            error.host = error.host or host.name
            raise


def _ready(contact: Contact, server: Server, wish: Wish, *, ask: bool) -> Ready:
    host_facts = reach(contact, server)
    facts = host_facts.servers[server.name]
    if facts.lease is not None:
        why = f" ({facts.lease.reason})" if facts.lease.reason else ""
        raise LockHeldError(
            f"{facts.lease.owner} acts on server {server.name}{why}: figures of a server that changes mean nothing",
            hint=f"specctl lock status --host {contact.host.name}",
        )
    deployed = server if facts.current is None else as_deployed(server, facts.current.manifest)
    client = EngineClient.of(contact, deployed)
    _must_serve(client, contact.host.name)
    told, now = info(client), counters(client, 0.0, 0.0)
    ready = Ready(
        contact=contact,
        client=client,
        subject=subject(host_facts, facts, deployed, told),
        wish=wish,
        running=now.running,
        max_running=None if told is None else told.max_running,
        context=_context(client),
    )
    if ask:
        ready = replace(ready, probe=_probe(client, wish, ready.context))
        _must_fit(ready)
    return _cut(ready)


def _context(client: EngineClient) -> int | None:
    """Return the longest context that the engine serves; /server_info has it only where a flag set it, /v1/models always."""
    for row in reading.rows(client.get("/v1/models").fields.get("data")):
        if (found := reading.whole(row.get("max_model_len"))) is not None and found > 0:
            return found
    return None


def _must_serve(client: EngineClient, host: str) -> None:
    reply = client.get("/ready")
    if reply.status != 200:
        why = f"/ready answers {reply.status}" if reply.status is not None else reply.failure or "no answer"
        raise UnhealthyError(
            f"server {client.server.name} does not serve now: {why}", hint=f"specctl health --host {host}"
        )


def _probe(client: EngineClient, wish: Wish, context: int | None) -> Probe:
    """Send one short request for a stream's speed, and the longest prompt (of a trace: many) for its length in tokens.

    Raises UnhealthyError where one fails, UsageError where the longest prompt cannot fit into the context.
    """
    speed = _first(client, PROBE_PROMPT, PROBE_TOKENS)
    spent_s = speed.ended_s - speed.sent_s
    ratio = len(PROBE_PROMPT.text) / (speed.prompt_tokens or len(PROBE_PROMPT.text) / ASSUMED_CHARS_A_TOKEN)
    longest = sorted(wish.prompts, key=lambda each: -len(each.text))
    about = round(len(longest[0].text) / ratio)
    if context is not None and about * SURE > context and wish.setting.tokens is not None:
        raise _too_long(f"about {about:,}", wish.setting.tokens, context)
    asked = longest[:PROBED] if wish.setting.tokens is None else longest[:1]
    sizes = [_first(client, prompt, 1).prompt_tokens or round(len(prompt.text) / ratio) for prompt in asked]
    return Probe(
        tokens_s=(speed.output_tokens or 0) / spent_s if spent_s > 0 and speed.output_tokens else None,
        chars_a_token=sum(len(prompt.text) for prompt in asked) / max(1, sum(sizes)),
        prompt_tokens=max(sizes),
    )


def _first(client: EngineClient, prompt: Prompt, tokens: int) -> Timing:
    """Send one request by itself; raises UnhealthyError where it fails."""
    request = Send(number=0, prompt=prompt, text=prompt.text, tokens=tokens)
    line = Line(client.contact.transport, time.monotonic)
    level = Level(pace=Closed(concurrency=1), tokens=tokens)
    timing = send(client, request, level, line, slot=0, timeout_s=PROBE_S, clock=time.monotonic, tell=lambda _new: None)
    if timing.failure is not None:
        hint = f"specctl ask --host {client.contact.transport.host} hello"
        raise UnhealthyError(f"a first request (prompt {prompt.id}) failed: {timing.failure}", hint=hint)
    return timing


def _too_long(prompt: str, tokens: int, context: int) -> UsageError:
    return UsageError(
        f"a prompt of {prompt} tokens and {tokens:,} new ones do not fit into the server's context of {context:,}",
        hint="choose fewer --tokens, or other --prompts",
    )


def _must_fit(ready: Ready) -> None:
    tokens = ready.wish.setting.tokens
    if ready.context is None or ready.probe is None or tokens is None:
        return
    if ready.probe.prompt_tokens + tokens > ready.context:
        raise _too_long(f"{ready.probe.prompt_tokens:,}", tokens, ready.context)


def _cut(ready: Ready) -> Ready:
    """Cut a trace to the context of the server."""
    pace = ready.wish.paces[0]
    if not isinstance(pace, Replay):
        return ready
    shorter, changed = fitted(pace, ready.context)
    return replace(ready, wish=replace(ready.wish, paces=(shorter,)), cut=changed)


def subject(host_facts: HostFacts, facts: ServerFacts, server: Server, told: EngineInfo | None) -> Subject:
    """Say what is measured, as far as it is known."""
    current = facts.current
    launch = None if current is None else stored_launch(current.manifest, current.algo)
    mode = claimed_mode(told, server)
    return Subject(
        host=host_facts.host,
        server=server.name,
        profile=server.profile.name,
        mode=mode,
        proven=proven_as(facts, mode),
        engine_version=None if told is None else told.version,
        engine_seed=None if told is None else told.seed,
        release=None if current is None else current.id,
        launch_digest=hashlib.sha256(json.dumps(launch, sort_keys=True).encode()).hexdigest()[:DIGEST]
        if launch
        else None,
        target=server.target.name,
        draft=None if server.draft is None else server.draft.name,
        gpus=gpus_word(host_facts),
        driver=host_facts.graphics.driver,
        kernel=host_facts.machine.kernel,
        specctl=version("specctl-fleet"),
    )


def claimed_mode(told: EngineInfo | None, server: Server) -> str | None:
    """Return the mode that /server_info claims; None where it does not tell, fits more than one, or follows a table of them.

    Knobs that the engine does not tell are the inventory's.
    """
    if told is None or engine_info.follows(told, server.profile):
        return None
    found = engine_info.claimed(told, server.profile, server.knobs)
    return None if found is None else str(found)


def proven_as(facts: ServerFacts, mode: str | None) -> bool | None:
    """Say whether what runs was proven when it was put there; None where no record says, or the engine claims another algo."""
    if mode is None or facts.current is None:
        return None
    moved = live_move(facts)
    algo, proven = (facts.current.algo, proof_of(facts)) if moved is None else (moved.algo, moved.proven)
    return proven if modes.parse(mode).algo == algo else None


def gpus_word(host_facts: HostFacts) -> str | None:
    """Return the host's GPUs by model, as in "8× RTX PRO 6000"; None where they are not known, or there is none."""
    models = Counter(gpu.model or "GPU" for gpu in host_facts.graphics.gpus or ())
    return ", ".join(f"{count}× {model}" for model, count in models.items()) or None
