"""Which of an engine's tokens are worth asking the target about, with the text that each was picked after.

From a verify trace: every node of every step, classed by what could have gone wrong for it. From an answer's stream: the tokens
as they came, a step at a time. Pure; called by ops/doctor_probe.py, which asks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from specctl.doctor import replay_step
from specctl.doctor.lossless_stream import Chunk
from specctl.doctor.lossless_types import History, Pick, Place
from specctl.doctor.replay_read import read
from specctl.doctor.replay_types import Plain, Prefill, Verified

Records = Mapping[str, tuple[Prefill | Plain | Verified, ...]]


def records_of(lines: Iterable[str | bytes], rids: Iterable[str]) -> Records:
    """Return these requests' records from their prefill on, in order; a request of which a line is lost is left out."""
    wanted = set(rids)
    found: dict[str, list[Prefill | Plain | Verified]] = {}
    for record in map(read, lines):
        if not isinstance(record, (Prefill, Plain, Verified)) or record.rid not in wanted:
            continue
        if isinstance(record, Prefill):
            found[record.rid] = [record]
        elif record.rid in found:
            found[record.rid].append(record)
    return {rid: tuple(records) for rid, records in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A request just before a verify step: all its tokens, the newest being the root's, and what its cache has been through."""

    record: Verified
    tokens: tuple[int, ...]
    history: History


def moments(prompt: Sequence[int], records: Sequence[Prefill | Plain | Verified]) -> tuple[Moment, ...]:
    """Return a request's verify steps with what came before each.

    The first step that does not follow ends the list, and so does one that committed other tokens than it accepted: what the
    engine took them for is not known.
    """
    found: list[Moment] = []
    tokens, history = list(prompt), History.FRESH
    for record in records:
        if isinstance(record, Prefill) and record.prompt != len(prompt):
            break
        if not isinstance(record, Prefill) and record.prefix != len(tokens) - 1:
            break
        if isinstance(record, Verified):
            if record.tokens[0] != tokens[-1] or replay_step.tree(record) is not None:
                break
            found.append(Moment(record=record, tokens=tuple(tokens), history=history))
            if replay_step.walk(record) is None and not _commits_its_path(record):
                break
            history = _after(history, record)
        tokens += record.committed
    return tuple(found)


def _commits_its_path(record: Verified) -> bool:
    return record.committed == tuple(record.target[node] for node in record.path)[: len(record.committed)]


def _after(history: History, record: Verified) -> History:
    """Return the history after a step: nodes that were kept where the pass wrote them, or that had to be moved."""
    kept = record.path[: len(record.committed)]
    if kept != tuple(range(len(kept))):
        return History.MOVED
    return History.STRAIGHT if history is History.FRESH and len(kept) > 1 else history


def picks(rid: str, moment: Moment) -> tuple[Pick, ...]:
    """Return what the target said at each node of a step."""
    record, base = moment.record, moment.tokens[:-1]
    paths: list[tuple[int, ...]] = []
    found: list[Pick] = []
    for node, parent in enumerate(replay_step.parents_of(record)):
        path = (*paths[parent], node) if node else (0,)
        paths.append(path)
        straight = path == tuple(range(node + 1))
        found.append(
            Pick(
                rid=rid,
                step=record.step,
                node=node,
                place=Place.ROOT if node == 0 else Place.CHAIN if straight else Place.BRANCH,
                history=moment.history,
                said=record.target[node],
                context=(*base, *(record.tokens[each] for each in path)),
            )
        )
    return tuple(found)


def streamed_picks(rid: str, prompt: Sequence[int], chunks: Sequence[Chunk], *, chain: bool) -> tuple[Pick, ...]:
    """Return the tokens of an answer that came a verify step a chunk; the first chunk is the prefill's token.

    A chunk that several steps went into begins with a root; what the rest of it is, one does not know.
    """
    found: list[Pick] = []
    tokens, history = list(prompt), History.FRESH
    for step, chunk in enumerate(chunks):
        known = 0 if not step else 1 if (chunk.steps or 1) > 1 else len(chunk.tokens)
        for at, token in enumerate(chunk.tokens):
            place = Place.ROOT if at == 0 else Place.CHAIN if chain else Place.DRAFTED
            if at < known:
                found.append(Pick(rid=rid, step=step, place=place, history=history, said=token, context=tuple(tokens)))
            tokens.append(token)
        if len(chunk.tokens) > 1:  # also where a first step came with the prefill's token
            history = History.STRAIGHT if chain else History.AFTER
    return tuple(found)


def spread(every: Iterable[Pick], most: int) -> tuple[Pick, ...]:
    """Return up to `most` picks of each place and history, no context twice, evenly over the order in which they came."""
    cells: dict[tuple[Place, History], dict[tuple[int, ...], Pick]] = {}
    for pick in every:
        cells.setdefault((pick.place, pick.history), {}).setdefault(pick.context, pick)
    return tuple(itertools.chain.from_iterable(_even(tuple(cell.values()), most) for cell in cells.values()))


def _even(items: tuple[Pick, ...], most: int) -> tuple[Pick, ...]:
    if len(items) <= most:
        return items
    return tuple(items[at * len(items) // most] for at in range(most))
