"""The model of a server: what is nearest to it counts, files that cannot be used are told, and names fit fuller names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.control.mode import mode
from specctl.control.policy_types import Now
from specctl.control.rates import Estimate, Source
from specctl.fleet.types import Hardware
from specctl_agent.eyes import open_eyes
from specctl_agent.here import Graphics
from specctl_agent.model import Kept, Models, fitting, published
from specctl_agent.places import Place, Places
from specctl_agent.storing import Complaints
from specctl_agent.watch import Watch
from tests.agentworld import ACT, DDTREE, DFLASH, NONE, tree
from tests.unit.agent.hostworld import calibrate, lay_out
from tests.unit.agent.recorded import Said

NOW = Now(mono_s=1.0, wall_s=1_795_994_000.0)
ENTRIES = (mode("ddtree"), mode("ddtree", {"tree_budget": 16}), mode("ddtree", {"tree_budget": 8}), mode("dflash"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A server's folder; nobody listens at its port."""
    lay_out(tmp_path, 1, ACT)
    found = Places(tmp_path).find("lab")
    assert found is not None
    return found


def asked(models: Models, place: Place, wanted: object = DFLASH) -> Estimate | None:
    """Return what the models say of the chain at four requests."""
    watch = Watch(place=place, eyes=open_eyes(place), mode=DDTREE)
    return models.rates(place, watch, NOW).tokens_s(DFLASH if wanted is DFLASH else NONE, 4.0)


def test_an_entry_fits_the_fuller_name_of_what_it_measured() -> None:
    """The entry with most knobs, all of them the mode's, speaks for it; another budget does not."""
    assert fitting(DDTREE, ENTRIES) == mode("ddtree", {"tree_budget": 16})
    assert fitting(tree(32), ENTRIES) == mode("ddtree")
    assert fitting(tree(32), ENTRIES[1:]) is None
    assert fitting(NONE, ENTRIES) is None


def test_a_calibration_file_is_read_and_read_again(place: Place) -> None:
    """The file beside the note counts, a new one at once, and without one nothing is known."""
    models = Models(Complaints(Said()))
    assert asked(models, place) is None
    calibrate(place.folder, {"dflash": {"1": 100.0, "8": 800.0}})
    found = asked(models, place)
    assert found is not None
    assert (found.value, found.source) == (400.0, Source.CALIBRATED)
    assert asked(models, place, NONE) is None
    calibrate(place.folder, {"dflash": {"1": 10.0, "8": 80.0}, "none": {"1": 1.0}})
    assert (asked(models, place) or found).value == 40.0
    (place.agent_folder / "calibration.json").unlink()
    assert asked(models, place) is None


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"modes": {"warp": {"1": 1}}}), "[" * 100_000])
def test_a_file_that_cannot_be_used_is_told_once(place: Place, text: str) -> None:
    """A calibration that is none leaves nothing known, and says why once."""
    said = Said()
    models = Models(Complaints(said))
    (place.agent_folder / "calibration.json").write_text(text)
    assert [asked(models, place), asked(models, place)] == [None, None]
    assert [event["subject"] for event in said.of("trouble")] == ["calibration of lab"]


SEEN = Graphics(model="NVIDIA H200", count=8, driver="590.48")


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"gpu": "NVIDIA B200"}, "the GPU is NVIDIA H200"),
        ({"gpu_count": 4}, "the number of GPUs is 8"),
        ({"driver": "580.1"}, "the driver is 590.48"),
        ({"profile": "fork-0.5"}, "the engine profile is"),
        ({"target": "another"}, "the target is"),
        ({"draft": "another"}, "the draft is"),
        ({"tensor_parallel": 8}, "tensor parallelism is 1"),
        ({"context_tokens": [9000, 16000]}, "the context is 100 to 4000 tokens"),
        ({"gpu_count": 8, "driver": "590.48", "gpu": "NVIDIA H200", "tensor_parallel": 1}, None),
        ({"context_tokens": [3000, 16000], "prompts": "mixed", "packages": "whatever"}, None),
    ],
)
def test_a_calibration_of_something_else_is_refused_in_words(
    place: Place, told: dict[str, object], reason: str | None
) -> None:
    """Figures of another machine, engine or model count for nothing here; what is not known on either side is no difference."""
    said = Said()
    models = Models(Complaints(said))
    server = replace(place.note.server, tp=1, agent=replace(ACT, context_tokens=(100, 4000)))
    place = replace(place, note=replace(place.note, server=server))
    content = {"modes": {"dflash": {"1": 100.0, "8": 800.0}}, "holds_for": told}
    (place.agent_folder / "calibration.json").write_text(json.dumps(content))
    watch = Watch(place=place, eyes=open_eyes(place), mode=DDTREE)
    found = models.rates(place, watch, NOW, SEEN).tokens_s(DFLASH, 4.0)
    troubles = [str(event["reason"]) for event in said.of("trouble")]
    assert (found is None) == (reason is not None)
    assert all(f"does not hold here: {reason}" in each for each in troubles)
    assert bool(troubles) == (reason is not None)


def test_published_figures_are_looked_up_by_gpu_and_class(place: Place) -> None:
    """With GPU and class of model in the inventory, the published figures count; without either, none do."""

    def of(gpu: str | None, model_class: str | None) -> bool:
        server = replace(place.note.server, agent=replace(ACT, model_class=model_class))
        host = replace(place.note.host, hardware=Hardware(name="x", gpu_model=gpu))
        changed = replace(place, note=replace(place.note, server=server, host=host))
        return published(changed, Watch(place=changed, eyes=open_eyes(changed))) is not None

    assert of("NVIDIA B200", "dense-8b")
    assert of("NVIDIA B200", "MoE-30B")
    assert not of("NVIDIA B200", None)
    assert not of("NVIDIA B200", "huge")
    assert not of(None, "dense-8b")
    assert not of("NVIDIA H200", "dense-8b")


def test_answers_are_worked_out_once() -> None:
    """The policy's questions of every turn cost the model one answer each."""

    class Counting:
        modes = (DFLASH,)
        times = 0

        def tokens_s(self, mode: object, concurrency: float) -> Estimate | None:
            self.times += 1
            return None

    counting = Counting()
    kept = Kept(counting)
    assert [kept.tokens_s(DFLASH, 4.0), kept.tokens_s(DFLASH, 4.0), kept.tokens_s(NONE, 4.0)] == [None, None, None]
    assert (counting.times, kept.modes) == (2, (DFLASH,))
