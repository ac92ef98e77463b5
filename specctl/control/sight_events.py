"""What happened between two sights of a server, in words: state, decision, act, drift, throttling; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from specctl.control.sight import LastAct, Sight
from specctl.rollout import reading


class Kind(StrEnum):
    """What an event is about."""

    STATE = "state"
    DECISION = "decision"
    ACT = "act"
    DRIFT = "drift"
    GPU = "gpu"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a server; `at` in Unix seconds, by the clock of the machine that watches."""

    at: float
    host: str
    server: str
    kind: Kind
    text: str


def between(before: Sight | None, after: Sight, at: float) -> Iterator[Event]:
    """Yield what changed from one sight to the next; nothing where there was none before."""
    if before is None:
        return
    for kind, text in _changes(before, after):
        yield Event(at=at, host=after.host, server=after.server, kind=kind, text=text)


def _changes(before: Sight, after: Sight) -> Iterator[tuple[Kind, str]]:
    if after.state != before.state:
        reason = f" ({after.reason})" if after.reason else ""
        yield Kind.STATE, f"{before.state} → {after.state}{reason}"
    if after.mode != before.mode and after.mode is not None:
        yield Kind.STATE, f"runs {after.mode}" + (f", before {before.mode}" if before.mode else "")
    yield from _of_agent(before, after)
    if after.last is not None and before.age_s is not None and _new_act(before.last, after.last):
        who = f" by {after.last.who}" if after.last.who else ""
        yield Kind.ACT, f"{after.last.act}{who}: {after.last.result or 'no result'}"
    for words in after.drift:
        if words not in before.drift:
            yield Kind.DRIFT, words
    yield from _of_gpus(before, after)


def _new_act(old: LastAct | None, new: LastAct) -> bool:
    """Claim that another act is on record; its age alone makes it no other one."""
    return old is None or (old.act, old.at, old.result) != (new.act, new.at, new.result)


def _of_agent(before: Sight, after: Sight) -> Iterator[tuple[Kind, str]]:
    old, new = before.agent, after.agent
    if new is None:
        if old is not None and after.agent_trouble:
            yield Kind.AGENT, f"no answer: {after.agent_trouble}"
        return
    decided = new.decision
    if decided is not None and (old is None or old.decision is None or old.decision.at != decided.at):
        yield Kind.DECISION, f"{decided.text}: {decided.reason or decided.rule or 'no reason told'}"
    for name in ("acting", "pinned", "held", "frozen"):
        was, now = (getattr(old, name) if old is not None else None), getattr(new, name)
        if was != now:
            yield Kind.AGENT, f"{name}: {now}" if now else f"no longer {name}"
    if old is not None and old.conduct != new.conduct:
        yield Kind.AGENT, f"mode {old.conduct} → {new.conduct}"


def _of_gpus(before: Sight, after: Sight) -> Iterator[tuple[Kind, str]]:
    old = {gpu.index: gpu.slowing or () for gpu in before.gpus or ()}
    for gpu in after.gpus or ():
        was, now = old.get(gpu.index, ()), gpu.slowing
        if now is None or set(now) == set(was):
            continue
        words = ", ".join(reason.value for reason in now)
        yield Kind.GPU, f"GPU {gpu.index} is slowed ({words})" if now else f"GPU {gpu.index} is slowed no longer"


def decided(entry: Mapping[str, object], host: str, server: str) -> Event | None:
    """Return an entry of the agent's decision journal as an event; None where it has no moment."""
    try:
        at = datetime.fromisoformat(str(entry.get("at"))).timestamp()
    except (ValueError, OverflowError):
        return None
    text = (
        f"{reading.text(entry.get('decision')) or 'decided'}: {reading.text(entry.get('reason')) or 'no reason told'}"
    )
    return Event(at=at, host=host, server=server, kind=Kind.DECISION, text=text)
