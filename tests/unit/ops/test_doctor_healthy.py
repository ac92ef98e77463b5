"""A healthy engine raises nothing: the doctor's load, probe, log and trace over modes, loads and requests drawn by chance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from specctl.control.mode import Mode, mode
from specctl.doctor import lines, replay
from specctl.doctor.evidence import Evidence, Served
from specctl.doctor.judge import judge
from specctl.ops import doctor_look
from specctl.ops.doctor_files import reader_of
from specctl.ops.doctor_probe import Prober, Size
from tests.doctorlab import Patient, lab, patient
from tests.examples import SOAKING, examples
from tests.labserver import wait_until

RUNS = examples(50)
SMALL = Size(requests=5, tokens=16, picks=6, pairs=4, again=3)
VOCABULARY = 1000
WORDS = (
    "def",
    "class",
    "return",
    "import",
    "for",
    "while",
    "if",
    "else",
    "self",
    "none",
    "true",
    "value",
    "index",
    "name",
)

pytestmark = pytest.mark.soak if SOAKING else pytest.mark.slow  # one server; a run is as long as its requests


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Patient, Path]]:
    """One server for all runs, that prints a line for every eighth step and traces."""
    folder = tmp_path_factory.mktemp("healthy")
    with lab(folder, more=("--decode-log-interval", "8", "--max-running-requests", "6")) as server:
        yield patient(server.ready()), folder / "verify.jsonl"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run does, drawn from its number."""

    number: int

    @property
    def chance(self) -> random.Random:
        """Return the run's own chance, anew."""
        return random.Random(self.number)

    def mode(self) -> Mode:
        """Draw an algo and its knobs."""
        draw = self.chance
        algo = draw.choice(["none", "dflash", "ddtree", "ddtree", "ddtree"])
        knobs = {"block_size": draw.randint(2, 8), "tree_budget": draw.randint(1, 40), "topk_cap": draw.randint(1, 16)}
        kept = {"none": (), "dflash": ("block_size",), "ddtree": tuple(knobs)}[algo]
        return mode(algo, {name: knobs[name] for name in kept})

    def requests(self) -> list[dict[str, Any]]:
        """Draw requests: their texts, lengths, ends and sampling."""
        draw = random.Random(-1 - self.number)
        return [self._request(draw) for _ in range(draw.randint(1, 9))]

    @staticmethod
    def _request(draw: random.Random) -> dict[str, Any]:
        text = " ".join(draw.choices(WORDS, k=draw.randint(1, 30)))
        wanted: dict[str, Any] = {"text": text, "tokens": draw.randint(1, 60)}
        if draw.random() < 0.3:
            wanted |= {"temperature": draw.choice([0.5, 1.0]), "sampling_seed": draw.randrange(1 << 30)}
        if draw.random() < 0.3:
            wanted |= {"stop_token_ids": draw.sample(range(VOCABULARY), 60), "ignore_eos": False}
        return wanted

    def prompts(self) -> list[tuple[int, ...]]:
        """Draw prompts of token ids for the probe."""
        draw = self.chance
        return [tuple(draw.randrange(VOCABULARY) for _ in range(draw.randint(2, 40))) for _ in range(SMALL.requests)]


def load(one: Patient, run: Run) -> tuple[list[Any], list[int]]:
    """Send a run's requests at a concurrency of its own, and return answers and request numbers."""
    wanted = run.requests()
    with ThreadPoolExecutor(max_workers=run.chance.randint(1, 6)) as pool:
        named = [{**each, "rid": f"run{run.number}-{at}"} for at, each in enumerate(wanted)]
        answers = list(pool.map(lambda each: one.lab.generate(**each).json(), named))
    return answers, list(range(len(wanted)))


def served(answers: list[Any]) -> tuple[Served, ...]:
    """Return the answers as the doctor's own load tells them."""
    infos = [answer["meta_info"] for answer in answers]
    return tuple(
        Served(
            tokens=info["completion_tokens"],
            verify_calls=info.get("spec_verify_ct"),
            finish=info["finish_reason"]["type"],
        )
        for info in infos
    )


def observe(one: Patient, path: Path, run: Run) -> Evidence:
    """Return the evidence of one run."""
    running = run.mode()
    one.lab.post("/set_internal_state", {"server_args": {"verify_trace": 1}})
    one.switch(running)
    begun = len(one.lab.log())
    before = doctor_look.look(one.client)
    answers, _ = load(one, run)
    wait_until(lambda: one.lab.get("/v1/loads").json()["loads"][0]["num_running_reqs"] == 0, what="an idle server")
    log = lines.read(one.lab.log()[begun:].splitlines(), reader_of(one.server.profile))
    streamed = {f"run{run.number}-{at}": answer["output_ids"] for at, answer in enumerate(answers)}
    whole = replay.check(path.open("rb"), streamed=streamed)
    prober = Prober(client=one.client, host="lab", mode=running, size=SMALL)
    probe, replayed = prober.run(run.prompts())
    assert whole.malformed == 0
    assert replayed is not None
    assert (probe.traced, bool(probe.picks)) == (replayed.sums.steps > 0, running.algo != "none" or not probe.traced)
    return replace(
        one.evidence(running),
        log=log,
        served=served(answers),
        served_alone=True,
        served_log=log,
        observations=(before, doctor_look.look(one.client)),
        probe=probe,
        replay=whole if whole.divergences else replayed,
    )


@pytest.mark.parametrize("number", range(RUNS))
def test_a_healthy_run_raises_nothing(number: int, healthy: tuple[Patient, Path]) -> None:
    """Whatever mode, load and requests chance draws, no check finds anything."""
    one, path = healthy
    run = Run(number)
    report = judge(observe(one, path, run))
    assert [(found.id, found.message) for found in report.findings] == [], (run.mode(), run.requests())
