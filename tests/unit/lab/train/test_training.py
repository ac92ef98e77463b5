"""The training pipeline, small enough to run whole: it resumes, and what it writes is what the lab loads."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from specctl.lab.engine import load_models
from specctl.lab.train import corpus
from specctl.lab.train.plan import DRAFT, TARGET, Plan, Schedule
from tests.unit.lab.runs import NONE, request, run, tree

SCHEDULE = Schedule(steps=6, batch=2, muon_lr=0.02, adam_lr=0.004, warmup_steps=2, decay_from=0.5)
TINY = Plan(
    target=dataclasses.replace(TARGET, hidden_size=32, num_hidden_layers=4, intermediate_size=64),
    draft=dataclasses.replace(DRAFT, hidden_size=32, intermediate_size=96, target_layer_ids=(0, 1, 3)),
    sequence=32,
    target_schedule=SCHEDULE,
    generated_sequences=8,
    generated_length=144,
    generation_batch=4,
    draft_schedule=SCHEDULE,
    anchors=4,
    validation_sequences=2,
)


@pytest.fixture
def stdlib(tmp_path: Path) -> Path:
    """Return a folder that looks like a small standard library."""
    root = tmp_path / "lib"
    for index in range(40):
        folder = root / ("test" if index % 8 == 0 else "package")
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"def function_{index}_{line}(value):\n    return value + {line}\n" for line in range(40))
        (folder / f"module_{index}.py").write_text("\n".join(lines))
    (root / "package" / "tiny.py").write_text("x = 1\n")
    (root / "package" / "latin.py").write_bytes(b"# \xe9" * 400)
    return root


def test_the_rate_warms_up_holds_and_decays() -> None:
    """Learning rates rise over the warm-up, stay, then fall linearly to a twentieth."""
    schedule = Schedule(steps=100, batch=1, muon_lr=1.0, adam_lr=1.0, warmup_steps=10, decay_from=0.5)
    factors = [schedule.factor(step) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert set(factors[9:51]) == {1.0}
    assert factors[75] == pytest.approx(0.5)
    assert factors[99] == pytest.approx(0.05)


def test_the_corpus_leaves_tests_and_odd_files_out_and_splits_by_path(stdlib: Path) -> None:
    """Tests, stubs and files that are not UTF-8 are skipped; the same modules are held out on every machine."""
    texts = corpus.read(stdlib)
    assert len(texts.train) + len(texts.held_out) == 35
    held_out = [index for index in range(40) if corpus.is_held_out(f"package/module_{index}.py")]
    assert [text.split("_")[1] for text in texts.held_out] == [
        str(index) for index in sorted(held_out, key=str) if index % 8
    ]


def test_a_run_writes_models_that_load_and_a_second_run_adds_nothing(stdlib: Path, tmp_path: Path) -> None:
    """All stages run, the lab decodes losslessly with the result, and resuming a finished run writes the same bytes."""
    pytest.importorskip("torch")
    from specctl.lab.train import __main__ as training

    work, out = tmp_path / "work", tmp_path / "out"
    training.train(TINY, work_folder(work), out, stdlib)
    first = {path.name: path.read_bytes() for path in (out / "dflash").iterdir()}
    models = load_models(out / "target", out / "dflash")
    generations = [request("a", models.tokenizer.encode("def function"))]
    assert run(models, tree(8, 4), generations).tokens == run(models, NONE, generations).tokens
    training.train(TINY, work, out, stdlib)
    assert {path.name: path.read_bytes() for path in (out / "dflash").iterdir()} == first


def work_folder(path: Path) -> Path:
    """Make a folder and return it."""
    path.mkdir()
    return path
