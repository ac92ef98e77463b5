"""Checks of the models on the host: are their files whole, and does the draft fit the target."""

from __future__ import annotations

from specctl.rollout.model_facts import ModelConfig, ModelFacts
from specctl.rollout.preflight.subject import Subject
from specctl.rollout.preflight.types import Check, Level, Verdict, failed, passed, unknown, warned
from specctl.rollout.preflight.words import size


def _whole(subject: Subject, which: str) -> Verdict | None:
    """Look whether a model's folder is there and complete."""
    path = subject.path_of(which)
    if path is None:
        return None
    found = subject.model(which)
    if not path.startswith("/"):
        return unknown(f"{path} is no folder on the host: the engine would fetch it itself")
    if found is None or found.there is None:
        return unknown(f"{path} was not looked at")
    if not found.there:
        return failed(f"there is no folder {path}, or it may not be read")
    if found.missing_count:
        some = ", ".join(found.missing)
        return failed(f"{path} lacks {found.missing_count} of the files that its index names: {some}")
    if found.files == 0:
        return failed(f"{path} has no weights in it")
    disk = subject.machine.disk(path)
    kind = f" on {disk.filesystem}" if disk is not None and disk.filesystem else ""
    return passed(f"{size(found.size_bytes)}{kind}" if found.size_bytes is not None else f"{found.files} files{kind}")


def target_whole(subject: Subject) -> Verdict | None:
    """Look at the target's folder."""
    return _whole(subject, "target")


def draft_whole(subject: Subject) -> Verdict | None:
    """Look at the draft's folder, where the algo needs a draft."""
    return _whole(subject, "draft")


def _clashes(draft: ModelConfig, target: ModelConfig) -> list[str]:
    """Return in which ways a draft cannot be this target's."""
    found = []
    for name, ours, theirs in (
        ("hidden size", draft.hidden_size, target.hidden_size),
        ("vocabulary", draft.vocab_size, target.vocab_size),
        ("target layers", draft.target_layers, target.layers),
    ):
        if ours is not None and theirs is not None and ours != theirs:
            found.append(f"{name} {ours}, the target has {theirs}")
    if draft.mask_token is not None and target.vocab_size is not None and draft.mask_token >= target.vocab_size:
        found.append(f"mask token {draft.mask_token}, outside the target's vocabulary of {target.vocab_size}")
    beyond = [n for n in draft.target_layer_ids or () if target.layers is not None and n > target.layers]
    if beyond:
        found.append(f"reads layer {beyond[0]} of a target that has {target.layers}")
    return found


def _configs(subject: Subject) -> tuple[ModelFacts | None, ModelConfig | None, ModelConfig | None]:
    draft, target = subject.model("draft"), subject.model("target")
    return draft, draft.config if draft else None, target.config if target else None


def draft_fits(subject: Subject) -> Verdict | None:
    """Look whether draft and target belong together, by both their config.json and by the inventory."""
    if subject.path_of("draft") is None:
        return None
    _, draft, target = _configs(subject)
    clashes = _clashes(draft, target) if draft and target else []
    if clashes:
        return failed(f"the draft does not fit: {'; '.join(clashes)}")
    meant = subject.server.draft.target if subject.server.draft else None
    if meant is not None and meant != subject.server.target.name:
        return warned(f"the inventory calls the draft one of {meant}, and the target is {subject.server.target.name}")
    if draft is None or target is None:
        return unknown("config.json of draft and target could not both be read")
    known = [name for name, value in (("hidden size", draft.hidden_size), ("vocabulary", draft.vocab_size)) if value]
    return (
        passed(f"{' and '.join(known)} agree")
        if known
        else unknown("the draft's config.json does not say what it fits")
    )


def block_size(subject: Subject) -> Verdict | None:
    """Compare the block size with the one that the draft was trained for; longer is poor, shorter is well."""
    asked = subject.knobs.get("block_size")
    if subject.path_of("draft") is None or asked is None:
        return None
    draft = _configs(subject)[1]
    trained = draft.block_size if draft else None
    if trained is None and subject.server.draft is not None:
        trained = subject.server.draft.block_size
    if trained is None:
        return unknown("the draft does not say for which block size it was trained")
    if asked > trained:
        return warned(f"block size {asked}, and the draft was trained for {trained}: what lies beyond is guesswork")
    return passed(f"block size {asked}, the draft was trained for {trained}")


CHECKS = (
    Check(
        id="P014",
        title="the target's files are whole",
        worst=Level.FAIL,
        remedy="finish the download on {host}, or correct the target's path in the inventory",
        why="Every file that the safetensors index names must be there; a link that points nowhere is missing.",
        look=target_whole,
    ),
    Check(
        id="P015",
        title="the draft's files are whole",
        worst=Level.FAIL,
        remedy="finish the download on {host}, or correct the draft's path in the inventory",
        why="The engine loads the draft after the target: a missing one would show only after minutes.",
        look=draft_whole,
    ),
    Check(
        id="P016",
        title="the draft fits the target",
        worst=Level.FAIL,
        remedy="name the draft that was trained for this target (draft: of server {server})",
        why="Hidden size, vocabulary, number of layers, layers read and mask token are compared, from both config.json.",
        look=draft_fits,
    ),
    Check(
        id="P017",
        title="the block size is one that the draft knows",
        worst=Level.WARN,
        remedy="set knobs.dflash.block_size to what the draft was trained for, or less",
        why="A draft of block 16 drafts 8 well; one of block 8 drafts 16 badly. The engine itself only logs a line.",
        look=block_size,
    ),
)
