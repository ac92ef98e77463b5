"""The probe against an engine of a few lines: what it asks, what comes of it, and engines that answer badly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from specctl.control.mode import Mode, parse
from specctl.doctor import lossless
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from specctl.doctor.lossless_types import Break, Place, Probe
from specctl.errors import RemoteCommandError
from specctl.ops.doctor_probe import Prober, Size, probed
from tests.unit.ops.toy_engine import VOCABULARY, Toy, ToyEngine

TREE = parse("ddtree:block_size=4,tree_budget=6,topk_cap=3")
CHAIN = parse("dflash:block_size=4")
SMALL = Size(requests=8, tokens=12, picks=20, pairs=4, again=6)
NO_IDS = [{"text": "x", "meta_info": {}}] * 8


def run(toy: Toy, mode: Mode = TREE, *, leads: bool = False, noise: float = 0.0) -> tuple[Probe, ToyEngine]:
    """Probe a toy; return what came of it and the engine with all that it was asked."""
    with ToyEngine(toy) as engine:
        probe, replayed = Prober(
            client=engine.client, host="gpu1", mode=mode, size=SMALL, leads=leads, noise=noise
        ).run()
        assert replayed is None
        return probe, engine


def wrong_drafts(_context: Sequence[int], token: int, drafted: bool) -> int:
    """Say another token than the target at accepted drafts."""
    return (token + 1) % VOCABULARY if drafted else token


def test_a_sound_engine_is_lossless() -> None:
    """Every token of every step is what a prefill says, and prefills repeat themselves."""
    with ToyEngine(Toy()) as engine:
        evidence = probed(engine.client, Evidence(host="gpu1", mode=TREE, no_gpus=True))
    assert evidence.probe is not None
    judged = lossless.judge(evidence.probe)
    assert (judged.wrong, judged.named, judged.candidates) == (0, None, ())
    assert judged.checked > 150
    assert {cell.place for cell in judged.cells} == {Place.ROOT, Place.DRAFTED}
    assert (evidence.probe.baseline.asked >= 48, evidence.probe.baseline.changed) == (True, 0)
    assert judge(evidence).findings == ()


def test_what_is_asked_is_bounded_and_greedy() -> None:
    """A probe asks greedy requests alone, ignores end tokens, changes nothing and keeps to its size."""
    _, engine = run(Toy())
    streamed = [asked for asked in engine.asked if asked.get("stream")]
    tokens = [asked["sampling_params"]["max_new_tokens"] for asked in engine.asked]
    assert (len(streamed), {asked["sampling_params"]["max_new_tokens"] for asked in streamed}) == (8, {12})
    assert all(asked["sampling_params"]["temperature"] == 0 for asked in engine.asked)
    assert all(asked["sampling_params"]["ignore_eos"] is True for asked in engine.asked)
    assert all("return_logprob" not in asked for asked in engine.asked)
    assert max(len(asked.get("input_ids", ())) for asked in engine.asked if not asked.get("stream")) <= 32
    assert set(tokens) == {96, 12, 1, 2}


def test_wrong_drafts_are_found_without_a_trace() -> None:
    """A tree's wrong drafts leave mask and positions open; a chain's are at wrong positions."""
    tree, _ = run(Toy(says=wrong_drafts))
    chain, _ = run(Toy(says=wrong_drafts), CHAIN)
    assert lossless.judge(tree).candidates == (Break.MASK, Break.POSITION)
    assert lossless.judge(chain).named is Break.POSITION


@pytest.mark.parametrize(("lead", "wrong"), [(0.1, False), (3.0, True)])
def test_leads_tell_near_ties_from_wrong_tokens(lead: float, wrong: bool) -> None:
    """Where log-probabilities are asked for, a token that hardly leads may be another one."""
    probe, engine = run(Toy(says=wrong_drafts, lead=lead), leads=True, noise=0.03)
    judged = lossless.judge(probe)
    assert any(asked.get("return_logprob") for asked in engine.asked)
    assert (judged.wrong > 0, judged.ties > 0) == (wrong, not wrong)
    assert bool(judged.candidates) == wrong


def test_an_engine_without_token_ids_is_not_judged() -> None:
    """Answers of text alone cannot be compared token by token: said, not guessed."""
    probe, _ = run(Toy(change=lambda answers: NO_IDS))
    assert probe.silent == "answers tell no token ids (output_ids)"


@pytest.mark.parametrize(
    ("toy", "words"),
    [
        (Toy(status=500), "status 500"),
        (Toy(change=lambda answers: {"error": "no"}), "no list of answers"),
        (Toy(change=lambda answers: NO_IDS[:1]), "1 answers to 8 prompts"),
        (Toy(change=lambda answers: [1] * 8), "answers that are no objects"),
        (Toy(breaks_off=True), "the probe's stream from /generate ended"),
    ],
    ids=["status", "object", "short", "numbers", "cut"],
)
def test_an_engine_that_answers_badly_is_an_error(toy: Toy, words: str) -> None:
    """Whatever is no whole answer ends the probe with one error that says so and where to look."""
    with pytest.raises(RemoteCommandError, match=words) as caught:
        run(toy)
    assert caught.value.hint == "specctl logs --host gpu1"


def _late(after: int) -> Callable[[Sequence[int], int, bool], int]:
    def says(context: Sequence[int], token: int, _drafted: bool) -> int:
        return (token + 1) % VOCABULARY if len(context) > after else token

    return says


def test_what_is_wrong_later_leaves_the_cache_open() -> None:
    """Roots and drafts that are wrong only after accepted drafts leave the move of the cache open, first of all."""
    probe, _ = run(Toy(says=_late(30)))
    assert lossless.judge(probe).candidates[0] is Break.KV
