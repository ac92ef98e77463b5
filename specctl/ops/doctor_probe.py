"""The doctor's lossless probe (`--live`): greedy answers, held against what the target says after the same texts. Changes nothing.

The algo stays as it is: a prefill computes the plain target's token whatever is speculated. Where the engine writes a verify
trace, every node of its steps can be asked about, and the probe's own steps are replayed. About 1,500 tokens are generated and
up to some hundred short prompts are read; what is judged of it is pure (specctl.doctor.lossless*).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from specctl.algos import ALGOS
from specctl.algos.types import Shape
from specctl.control.mode import Mode
from specctl.doctor import lossless_picks, replay
from specctl.doctor.evidence import Evidence
from specctl.doctor.lossless_picks import Moment
from specctl.doctor.lossless_stream import Chunk, Told, answered, chunks, told
from specctl.doctor.lossless_types import Answer, Baseline, DraftPair, History, Pick, Probe
from specctl.doctor.replay_types import Kind, ReplayResult, Verified
from specctl.ops import doctor_probe_ask as ask
from specctl.ops import doctor_probe_trace as trace
from specctl.ops.doctor_probe_ask import Stream, Text
from specctl.ops.engine_http import EngineClient
from specctl.rollout.smoke import PROMPTS

T = TypeVar("T")

SEED_TOKENS = 96
"""Tokens of the answers that are cut into prompts: token ids of this very model, and text that it finds likely."""
PROMPT_TOKENS = 24
PROMPT_STRIDE = 12
INEXACT_NOISE = 0.03
"""Share of picks that near-ties turn on an engine whose passes are not exact, where it tells no leads; some 0.5 % were seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much a probe asks for.

    `requests` of `tokens` new tokens are streamed: a dozen steps of each and more. `picks` texts are put to the target for each
    place in a step and each history of the cache, `again` of them twice. `pairs` steps are drafted anew, after moved paths and
    otherwise.
    """

    requests: int = 32
    tokens: int = 40
    picks: int = 72
    pairs: int = 32
    again: int = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One request of the probe: its prompt, and what came of it an event at a time."""

    rid: str
    prompt: Text
    chunks: tuple[Chunk, ...]
    end: Told

    @property
    def tokens(self) -> Text:
        """Return its answer."""
        return self.end.tokens


@dataclass(slots=True, kw_only=True)
class Prober:
    """Asks one engine; `mode` is what it is thought to run, `noise` 0 for an engine whose passes are exact."""

    client: EngineClient
    host: str
    mode: Mode | None
    noise: float = 0.0
    leads: bool = False
    size: Size = Size()
    name: str = field(default_factory=lambda: f"specctl-doctor-{uuid.uuid4().hex[:8]}")

    def run(self, prompts: Sequence[Text] | None = None) -> tuple[Probe, ReplayResult | None]:
        """Probe, by default with prompts of the engine's own making; raises RemoteCommandError where it does not answer."""
        seeds = () if prompts is not None else self._seeds()
        texts = _windows([seed.tokens for seed in seeds]) if prompts is None else tuple(prompts)
        grown = tuple(answered(f"{self.name}-seed-{at}", SEED_TOKENS, seed) for at, seed in enumerate(seeds))
        if not texts:
            silent = "answers are too short to make prompts of" if seeds else "answers tell no token ids (output_ids)"
            return Probe(answered=grown, silent=silent), None
        courses = self._courses(texts[: self.size.requests])
        lines, replayed = self._replayed(courses)
        moments = self._moments(courses, lines)
        picks = lossless_picks.spread(self._picks(courses, moments), self.size.picks)
        contexts = list(dict.fromkeys(pick.context for pick in picks))
        answers = ask.target_says(self.client, contexts, host=self.host, leads=self.leads)
        probe = Probe(
            picks=picks,
            answers=answers,
            baseline=self._baseline(contexts, answers),
            drafts=self._drafts(courses, moments),
            answered=(*grown, *(answered(course.rid, self.size.tokens, course.end) for course in courses)),
            traced=bool(moments),
            positions_right=_positions_right(moments, replayed),
            max_drafts=None if self.mode is None else ALGOS[self.mode.algo].max_drafts(dict(self.mode.knobs)),
            noise=self.noise,
        )
        return probe, replayed

    def _seeds(self) -> tuple[Told, ...]:
        """Return answers that tell token ids: no tokenizer is needed to make prompts of them."""
        params = {"temperature": 0, "max_new_tokens": SEED_TOKENS, "ignore_eos": True}
        found = ask.whole(
            self.client, {"text": list(PROMPTS), "sampling_params": params}, count=len(PROMPTS), host=self.host
        )
        return tuple(answer for each in found if (answer := told(each)) is not None)

    def _courses(self, prompts: Sequence[Text]) -> tuple[Course, ...]:
        wanted = [
            Stream(rid=f"{self.name}-{number}", prompt=prompt, tokens=self.size.tokens)
            for number, prompt in enumerate(prompts)
        ]
        events = ask.streamed(self.client, wanted, host=self.host)
        return tuple(
            Course(rid=each.rid, prompt=each.prompt, chunks=chunks(events[each.rid]), end=events[each.rid][-1])
            for each in wanted
            if events[each.rid]
        )

    def _replayed(self, courses: Sequence[Course]) -> tuple[tuple[bytes, ...], ReplayResult | None]:
        """Return the probe's lines of the engine's trace and their replay; nothing where the engine writes none."""
        path = trace.path_of(self.client)
        if path is None:
            return (), None
        lines = trace.lines_of(self.client.contact.transport, path, [course.rid for course in courses])
        streamed = {course.rid: course.tokens for course in courses}
        return (lines, replay.check(lines, streamed=streamed)) if lines else ((), None)

    def _moments(self, courses: Sequence[Course], lines: Sequence[bytes]) -> tuple[Moment, ...]:
        records = lossless_picks.records_of(lines, [course.rid for course in courses])
        return tuple(
            moment
            for course in courses
            for moment in lossless_picks.moments(course.prompt, records.get(course.rid, ()))
        )

    def _picks(self, courses: Sequence[Course], moments: Sequence[Moment]) -> list[Pick]:
        if moments:
            return [pick for moment in moments for pick in lossless_picks.picks(moment.record.rid, moment)]
        chain = self.mode is not None and _is_chain(self.mode)
        return [
            pick
            for course in courses
            for pick in lossless_picks.streamed_picks(course.rid, course.prompt, course.chunks, chain=chain)
        ]

    def _baseline(self, contexts: Sequence[Text], before: Mapping[Text, Answer]) -> Baseline:
        """Ask some of the prefills a second time, one by one: another batch is another shape of the same sums."""
        some = [
            context for context in contexts[:: max(1, len(contexts) // max(1, self.size.again))] if context in before
        ]
        again = ask.target_says(self.client, some, host=self.host, leads=self.leads, batch=1)
        pairs = [(before[context], again[context]) for context in some if context in again]
        changed = [one for one, other in pairs if one.token != other.token]
        drifts = [abs(one.gap - other.gap) for one, other in pairs if one.gap is not None and other.gap is not None]
        return Baseline(
            asked=len(pairs),
            changed=len(changed),
            widest_gap=max((one.gap for one in changed if one.gap is not None), default=None),
            drift=max(drifts, default=None),
        )

    def _drafts(self, courses: Sequence[Course], moments: Sequence[Moment]) -> tuple[DraftPair, ...]:
        """Put steps' texts to the engine as fresh requests and return both drafts, or what both accepted."""
        if moments:
            moved = _some([each for each in moments if each.history is History.MOVED], self.size.pairs)
            clean = _some([each for each in moments if each.history is not History.MOVED], self.size.pairs)
            return self._drafted([*moved, *clean])
        steps = [step for course in courses for step in _streamed_steps(course)]
        chosen = _some(steps, self.size.pairs)
        bodies = self._fresh([text for text, _ in chosen])
        pairs = zip(chosen, bodies, strict=True)
        return tuple(
            DraftPair(history=History.AFTER, accepted=accepted, fresh_accepted=body.correct_drafts)
            for (_, accepted), body in pairs
            if body is not None and body.correct_drafts is not None
        )

    def _drafted(self, chosen: Sequence[Moment]) -> tuple[DraftPair, ...]:
        self._fresh([moment.tokens for moment in chosen])
        path = trace.path_of(self.client)
        names = [f"{self.name}-fresh-{number}" for number in range(len(chosen))]
        lines = () if path is None else trace.lines_of(self.client.contact.transport, path, names)
        records = lossless_picks.records_of(lines, names)
        pairs = []
        for name, moment in zip(names, chosen, strict=True):
            fresh = next((each for each in records.get(name, ()) if isinstance(each, Verified)), None)
            ours = moment.record
            if fresh is not None and fresh.tokens[0] == ours.tokens[0] and fresh.prefix == ours.prefix:
                pairs.append(
                    DraftPair(
                        history=moment.history,
                        accepted=len(ours.path) - 1,
                        fresh_accepted=len(fresh.path) - 1,
                        same=(fresh.tokens, fresh.parents) == (ours.tokens, ours.parents),
                    )
                )
        return tuple(pairs)

    def _fresh(self, texts: Sequence[Text]) -> list[Told | None]:
        """Ask for two tokens after each text but its newest token: the prefill gives that one, a verify step the next."""
        found: list[Told | None] = []
        for at in range(0, len(texts), ask.BATCH):
            part = texts[at : at + ask.BATCH]
            names = [f"{self.name}-fresh-{at + number}" for number in range(len(part))]
            content = ask.body([text[:-1] for text in part], tokens=2, rids=names)
            for text, each in zip(part, ask.whole(self.client, content, count=len(part), host=self.host), strict=True):
                answer = told(each)
                found.append(answer if answer is not None and answer.tokens[:1] == text[-1:] else None)
        return found


def _streamed_steps(course: Course) -> list[tuple[Text, int]]:
    """Return the text before each step that came as one event, and how many drafts it accepted.

    The first event holds the prefill's token and is no step by itself, the last one was cut.
    """
    text, found = course.prompt, []
    for number, chunk in enumerate(course.chunks[:-1]):
        if number and chunk.steps == 1 and chunk.correct is not None:
            found.append((text, chunk.correct))
        text = (*text, *chunk.tokens)
    return found


def _is_chain(mode: Mode) -> bool:
    """Tell whether every path of a mode is straight: a chain, or a tree of one candidate a depth."""
    return ALGOS[mode.algo].shape is Shape.CHAIN or dict(mode.knobs).get("topk_cap") == 1


def _positions_right(moments: Sequence[Moment], replayed: ReplayResult | None) -> bool | None:
    if replayed is not None and replayed.by_kind.get(Kind.POSITION):
        return False
    return True if moments and all(moment.record.positions is not None for moment in moments) else None


def _windows(answers: Sequence[Text]) -> tuple[Text, ...]:
    """Return prompts: windows of single answers, or of all of them together where each is too short for one."""
    starts = range(0, SEED_TOKENS - PROMPT_TOKENS + 1, PROMPT_STRIDE)
    found = dict.fromkeys(answer[start : start + PROMPT_TOKENS] for start in starts for answer in answers)
    whole = tuple(window for window in found if len(window) == PROMPT_TOKENS)
    if whole:
        return whole
    joined = tuple(token for answer in answers for token in answer)
    return tuple(joined[at : at + PROMPT_TOKENS] for at in range(0, len(joined) - PROMPT_TOKENS + 1, 2))


def _some(items: Sequence[T], most: int) -> list[T]:
    """Return up to so many items, evenly spread."""
    if len(items) <= most:
        return list(items)
    return [items[at * len(items) // most] for at in range(most)]


def probed(client: EngineClient, evidence: Evidence, *, leads: bool = False) -> Evidence:
    """Return the evidence with a probe in it; raises RemoteCommandError where the engine does not answer.

    `leads`: ask for log-probabilities too. Off by default: builds whose speculation does not know them have died of it.
    """
    noise = 0.0 if evidence.no_gpus else INEXACT_NOISE
    prober = Prober(client=client, host=evidence.host or "", mode=evidence.mode, noise=noise, leads=leads)
    probe, replayed = prober.run()
    return replace(evidence, probe=probe, replay=replayed if replayed is not None else evidence.replay)
