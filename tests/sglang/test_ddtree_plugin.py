"""DDTREE on the unedited engine in float32: whatever is drafted, the text is plain decoding's; one server for all of it."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from scipy import stats

from tests.sglang import ddtree_cases as cases
from tests.sglang.ddtree_cases import PROMPTS, TOKENS, Plain
from tests.sglang.ddtree_engine import BLOCK, PLUGIN, Answer, Engine, Refused, started

pytestmark = pytest.mark.sglang

MAX_BUDGET, MAX_TOPK = 31, 8
# Budget and top-k: nothing drafted, chains, shallow and deep trees, more alternatives than budget, as wide as it gets.
PAIRS = ((0, 1), (1, 1), (7, 1), (31, 1), (2, 2), (5, 2), (15, 2), (3, 8), (7, 4), (16, 4), (24, 3), (31, 8))
TREE = {"ddtree_budget": 16, "ddtree_topk": 4}
CHAIN = {"ddtree_budget": BLOCK - 1, "ddtree_topk": 1}
CHANGES = 60
DRAWS, A_REQUEST = 2400, 60
# A right sampler fails once in ten thousand runs.
RARE = 1e-4
TRYOUT_S = 300.0
LINE = re.compile(
    r"DDTREE metrics: bs=(?P<bs>\d+) budget=(?P<budget>\d+) avg_actual_nodes=(?P<nodes>[\d.]+) "
    r"avg_accepted_drafts=(?P<drafts>[\d.]+) avg_commit_len=(?P<commit>[\d.]+) "
    r"avg_accepted_depth=(?P<depth>[\d.]+) topk=(?P<topk>\d+) verify_steps=20 build_ms=[\d.]+"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, plain: Plain) -> Iterator[Engine]:  # one engine at a time
    """Give an engine with DDTREE and the overlap scheduler, as it is by default."""
    limits = {"DDTREE_MAX_BUDGET": str(MAX_BUDGET), "DDTREE_MAX_TOPK": str(MAX_TOPK), "DDTREE_METRICS_EVERY": "20"}
    with started(tmp_path_factory.mktemp("ddtree"), "DDTREE", env=limits) as engine:
        yield engine


@pytest.fixture
def tree(server: Engine) -> Engine:
    """Give the engine with the usual tree, and no mutant."""
    server.mutate("")
    assert server.turn(**TREE)
    return server


@pytest.mark.parametrize(("budget", "topk"), PAIRS)
def test_text_is_that_of_plain_decoding(server: Engine, plain: Plain, budget: int, topk: int) -> None:
    """With every budget and top-k, alone and in a batch of six, each text is the one that plain decoding gives."""
    assert server.turn(ddtree_budget=budget, ddtree_topk=topk)
    alone = server.ask_all(cases.plain_bodies())
    together = server.ask_all(cases.plain_bodies(), at_once=len(PROMPTS))
    assert [answer.tokens for answer in alone] == plain.texts
    assert [answer.tokens for answer in together] == plain.texts
    print(f"budget {budget:2} topk {topk}: accept " + " ".join(f"{answer.accept_length:.3f}" for answer in alone))


def test_drafts_are_accepted(tree: Engine) -> None:
    """A tree is no idle claim: it commits more tokens a pass than the chain does, and the chain more than one."""
    by_tree = [answer.accept_length for answer in tree.ask_all(cases.plain_bodies())]
    assert tree.turn(**CHAIN)
    by_chain = [answer.accept_length for answer in tree.ask_all(cases.plain_bodies())]
    assert 1.02 < sum(by_chain) / len(by_chain) < sum(by_tree) / len(by_tree)


def test_special_requests_are_answered_as_plainly(tree: Engine, plain: Plain) -> None:
    """Limits and stops inside a path, a bias, a grammar, and prompts that go on in a tree's cache change no token."""
    tree.ask_all(cases.plain_bodies())
    answers = {name: tree.ask(body) for name, body in cases.special_bodies(plain.texts).items()}
    assert {name: answer.tokens for name, answer in answers.items()} == {
        name: answer.tokens for name, answer in plain.special.items()
    }
    assert int(str(answers["follow-up"].meta["cached_tokens"])) > len(PROMPTS[4]) + TOKENS // 2
    assert len(answers["stop token inside a text"].tokens) < TOKENS


def test_log_probabilities_are_the_targets(tree: Engine, plain: Plain) -> None:
    """Each committed token has the log-probability, and the rivals, that plain decoding tells."""
    wanted = plain.special["log-probabilities"]
    told = tree.ask(cases.special_bodies(plain.texts)["log-probabilities"])
    for kind in ("output_token_logprobs", "output_top_logprobs"):
        ours, theirs = (scored(answer, kind) for answer in (told, wanted))
        assert [token for token, _ in ours] == [token for token, _ in theirs]
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-4)


def scored(answer: Answer, kind: str) -> list[tuple[int, float]]:
    """Return tokens and log-probabilities in the order in which the engine tells them, rivals of one place included."""
    told = json.loads(json.dumps(answer.meta[kind]))
    rows = [entry for place in told for entry in (place if isinstance(place[0], list) else [place])]
    return [(int(token), float(score)) for score, token, *_ in rows]


def test_knobs_turn_while_requests_run(tree: Engine, plain: Plain) -> None:
    """Sixty changes of budget and top-k while six requests are in flight lose none of them and change no token."""
    chance, ended, changes = random.Random(5), threading.Event(), 0
    found: list[list[int]] = []

    def ask() -> None:
        for _ in range(3):
            found.extend(answer.tokens for answer in tree.ask_all(cases.plain_bodies(), at_once=len(PROMPTS)))
        ended.set()

    asking = threading.Thread(target=ask)
    asking.start()
    while not ended.is_set():
        assert tree.turn(ddtree_budget=chance.randint(0, MAX_BUDGET), ddtree_topk=chance.randint(1, MAX_TOPK))
        changes += 1
    asking.join()
    assert found == plain.texts * 3
    assert changes >= CHANGES


def test_bad_changes_are_refused_and_change_nothing(tree: Engine) -> None:
    """A value out of range, an unknown name and a mixture are refused with the reason in the log; the engine's own knobs work."""
    before = tree.state()
    refused: tuple[dict[str, float], ...] = (
        {"ddtree_budget": MAX_BUDGET + 1},
        {"ddtree_topk": 0},
        {"ddtree_deep": 1},
        {"ddtree_topk": 2, "ddtree_budget": 0.5},
        {"ddtree_budget_from_1": 4, "ddtree_topk_from_2": 1},
        {"ddtree_budget_from_1": 4, "ddtree_topk": 1},
    )
    for wanted in refused:
        assert not tree.turn(**wanted)
    assert tree.state() == before
    assert f"DDTREE knobs not changed: ddtree_budget={MAX_BUDGET + 1} is outside 0 to {MAX_BUDGET}" in tree.log()
    assert tree.turn(pp_max_micro_batch_size=8)


def test_policy_follows_the_batch(tree: Engine, plain: Plain) -> None:
    """A table by batch size is followed step by step, from a tree over the chain to no draft; a budget ends it."""
    assert tree.turn(
        ddtree_budget_from_1=MAX_BUDGET,
        ddtree_topk_from_1=MAX_TOPK,
        ddtree_budget_from_2=MAX_BUDGET,
        ddtree_topk_from_2=1,
        ddtree_budget_from_5=0,
    )
    assert tree.state() == {
        **TREE,
        "ddtree_policy": [
            {"from": 1, "ddtree_budget": MAX_BUDGET, "ddtree_topk": MAX_TOPK},
            {"from": 2, "ddtree_budget": MAX_BUDGET, "ddtree_topk": 1},
            {"from": 5, "ddtree_budget": 0, "ddtree_topk": TREE["ddtree_topk"]},
        ],
        "ddtree_block_size": BLOCK,
        "ddtree_max_budget": MAX_BUDGET,
        "ddtree_max_topk": MAX_TOPK,
    }
    for at_once, nodes in ((1, MAX_BUDGET + 1), (3, BLOCK), (6, 1)):
        log = len(tree.log())
        answers = tree.ask_all(cases.plain_bodies()[:at_once], at_once=at_once)
        assert [answer.tokens for answer in answers] == plain.texts[:at_once]
        tree.flush()
        lines = [found for found in LINE.finditer(tree.log()[log:]) if int(found["bs"]) == at_once]
        assert {float(line["nodes"]) for line in lines} == {nodes}
    assert tree.turn(ddtree_budget=4)
    assert tree.state()["ddtree_policy"] == []


def test_figures_are_those_of_the_requests(tree: Engine) -> None:
    """Verifies and committed tokens are what the requests themselves were told, and nodes, depth and knobs keep their bounds."""
    names = (
        "ddtree_verifies_total",
        "ddtree_committed_tokens_total",
        "ddtree_nodes_total",
        "ddtree_accepted_drafts_total",
    )
    before = [tree.count(name) for name in names]
    answers = tree.ask_all(cases.plain_bodies(), at_once=3)
    tree.flush()  # an answer leaves before its last step is entered
    verifies, committed, nodes, accepted = (tree.count(name) - was for name, was in zip(names, before, strict=True))
    assert verifies == sum(int(str(answer.meta["spec_verify_ct"])) for answer in answers)
    # Every request's first token is its prefill's.
    assert committed == sum(len(answer.tokens) - 1 for answer in answers)
    assert nodes == verifies * (TREE["ddtree_budget"] + 1)
    assert 0 < accepted <= committed <= accepted + verifies
    assert (tree.count("ddtree_budget"), tree.count("ddtree_topk")) == (TREE["ddtree_budget"], TREE["ddtree_topk"])


def test_metrics_line_is_true(tree: Engine) -> None:
    """Each line is of one setting: nodes with the root within the budget, depth equal to drafts, commit at most one more."""
    tree.ask_all(cases.plain_bodies())
    assert tree.turn(**CHAIN)
    tree.ask_all(cases.plain_bodies())
    lines = [{name: float(text) for name, text in found.groupdict().items()} for found in LINE.finditer(tree.log())]
    assert {(line["budget"], line["topk"]) for line in lines} >= {tuple(TREE.values()), tuple(CHAIN.values())}
    for line in lines:
        assert line["nodes"] <= line["budget"] + 1
        assert line["depth"] == line["drafts"] <= min(line["budget"], BLOCK - 1)
        # Both are rounded to hundredths.
        assert line["commit"] <= line["drafts"] + 1.0101


def test_what_would_not_be_exact_is_refused(tree: Engine) -> None:
    """Requests with penalties, a least length or a processor of logits are refused by name, not answered wrongly."""
    for name, value in (
        ("presence_penalty", 0.5),
        ("frequency_penalty", 0.5),
        ("repetition_penalty", 1.2),
        ("min_new_tokens", 4),
    ):
        with pytest.raises(Refused, match=f"DDTREE does not support {name}={value}"):
            tree.ask(cases.greedy(PROMPTS[0], tokens=4, parameters={name: value}))


def test_drawn_texts_have_the_targets_distribution(tree: Engine, plain: Plain) -> None:
    """Texts drawn with a tree are distributed as those drawn token by token: chi-square against the exact probabilities."""
    accepted = tree.count("ddtree_accepted_drafts_total")
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(DRAWS // A_REQUEST):
        said = tree.post("/generate", cases.sampled(A_REQUEST))
        counts.update(tuple(one["output_ids"]) for one in said)  # type: ignore[attr-defined]  # JSON
    assert tree.count("ddtree_accepted_drafts_total") - accepted > DRAWS / 20, (
        "too few drafts accepted to prove anything"
    )
    assert set(counts) <= set(plain.drawn)
    texts = sorted(plain.drawn)
    assert "non-greedy verification is unavailable" not in tree.log()
    result = stats.chisquare([counts[text] for text in texts], [DRAWS * plain.drawn[text] for text in texts])
    print(f"chi-square {result.statistic:.1f} at {len(texts) - 1} degrees of freedom, p {result.pvalue:.3f}")
    assert result.pvalue > RARE


@pytest.mark.parametrize("mutant", ["causal mask", "position by index", "keys not moved", "draft not verified"])
def test_mutants_change_the_text(tree: Engine, plain: Plain, mutant: str) -> None:
    """A wrong mask, a wrong position, keys left where they were and an unverified draft are each caught by the text."""
    tree.mutate(mutant)
    try:
        tree.flush()
        found = [answer.tokens for answer in tree.ask_all(cases.plain_bodies())]
    finally:
        tree.mutate("")
        tree.flush()
    assert found != plain.texts
    assert [answer.tokens for answer in tree.ask_all(cases.plain_bodies())] == plain.texts


def test_paths_past_the_end_of_the_context_end_a_text_alone(tree: Engine, plain: Plain) -> None:
    """Where every draft is right, last paths reach past the end of the context: texts end there, and the server serves on."""
    left = range(3 * BLOCK, 4 * BLOCK)
    tree.mutate("first path accepted")
    try:
        for knobs in (CHAIN, TREE):
            assert tree.turn(**knobs)
            bodies = [cases.greedy(cases.prompt(60, cases.CONTEXT - rest), tokens=rest) for rest in left]
            # The engine itself keeps the last two places free.
            assert [len(answer.tokens) for answer in tree.ask_all(bodies)] == [rest - 2 for rest in left]
            assert max(answer.accept_length for answer in tree.ask_all(bodies[:1])) > 2
    finally:
        tree.mutate("")
        tree.flush()
    assert [answer.tokens for answer in tree.ask_all(cases.plain_bodies())] == plain.texts


def going_on(engine: Engine, plain: Plain, *, fresh: bool) -> list[float]:
    """Return accept lengths of prompts that go on from the plain texts: in the cache that trees left, or read afresh."""
    engine.flush()
    if not fresh:
        assert [answer.tokens for answer in engine.ask_all(cases.plain_bodies())] == plain.texts
    prompts = [[*ids, *text, 7] for ids, text in zip(PROMPTS, plain.texts, strict=True)]
    answers = [engine.ask(cases.greedy(ids)) for ids in prompts]
    held = [int(str(answer.meta["cached_tokens"])) > len(ids) - 5 for answer, ids in zip(answers, prompts, strict=True)]
    assert held == [not fresh] * len(prompts)
    return [answer.accept_length for answer in answers]


def test_draft_sees_after_a_tree_what_it_sees_after_a_prompt(tree: Engine, plain: Plain) -> None:
    """Hidden states of the path are in the draft's cache: it guesses as well as where the same text was read as a prompt."""
    assert going_on(tree, plain, fresh=False) == going_on(tree, plain, fresh=True)


def test_mutant_of_hidden_states_is_seen_by_the_draft(tree: Engine, plain: Plain) -> None:
    """Hidden states of the wrong nodes change no token, but what the draft guesses in the cache that they left."""
    right = going_on(tree, plain, fresh=True)
    tree.mutate("states not gathered")
    try:
        wrong = going_on(tree, plain, fresh=False)
    finally:
        tree.mutate("")
    assert wrong != right


def test_tryout_finds_nothing_wrong(tree: Engine) -> None:
    """The script for a GPU runs against the engine, finds all texts equal in float32, prints a row a setting, and puts all back."""
    assert tree.turn(ddtree_budget_from_1=9, ddtree_topk_from_1=2, ddtree_budget_from_2=0)
    before = tree.state()
    argv = [
        sys.executable,
        "-m",
        "sglang_ddtree.tryout",
        f"http://127.0.0.1:{tree.port}",
        "--tokens",
        "12",
        "--at-once",
        "2",
    ]
    done = subprocess.run(argv, cwd=PLUGIN.parent, capture_output=True, text=True, timeout=TRYOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count("6 of 6 texts equal") == 1 + 2 * 4
    assert len(done.stdout.split("accept\n")[1].splitlines()) == 5
    assert tree.state() == before


def test_start_is_told(server: Engine) -> None:
    """The start line names the knobs as specctl's profiles read them, and the hooks that were put in place are logged."""
    assert (
        f"Initialized DDTREE worker. block_size={BLOCK}, tree_budget=16, topk_cap=4, max_budget={MAX_BUDGET}, "
        f"max_topk={MAX_TOPK}, policy=none" in server.log()
    )
