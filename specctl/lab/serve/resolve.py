"""What SGLang checks in its parent process before anything loads: algorithm, paths, configurations, context length.

Each refusal ends the start with a traceback and exit code 1, its last line being SGLang's own text where there is one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from specctl.lab.config import DraftConfig, TargetConfig
from specctl.lab.errors import ModelError
from specctl.lab.serve import dialect
from specctl.lab.serve.options import Options
from specctl.lab.types import Mode

TOKENIZER_FILE = "tokenizer.json"
RESERVED_INPUT_TOKENS = 6
"""SGLang keeps these of the context back: a context of 2048 takes inputs of 2042."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A start that has passed the parent's checks; `decodes` differs from the claimed mode only under an injected fault."""

    options: Options
    target: TargetConfig
    draft: DraftConfig | None
    speculation: dialect.Speculation
    context_length: int

    @property
    def max_input_tokens(self) -> int:
        """Return the longest prompt that is admitted."""
        return self.context_length - RESERVED_INPUT_TOKENS

    def decodes(self, claimed: dialect.Speculation) -> Mode:
        """Return the mode that really decodes when this one is claimed."""
        faults = self.options.faults
        if claimed.algorithm.algo == "ddtree" and faults.has("claims-ddtree-runs-linear"):
            return claimed.changed("DFLASH", {}).mode
        if claimed.algorithm.algo == "dflash" and faults.has("claims-dflash-runs-none"):
            return claimed.changed(None, {}).mode
        return claimed.mode


def resolve(options: Options) -> Launch:
    """Check what the command line points at and return the launch; raise ValueError or OSError as SGLang does."""
    algorithm = dialect.algorithm(options.speculative_algorithm)
    if options.verify_trace is not None and not options.verify_trace.absolute().parent.is_dir():
        raise OSError(f"--verify-trace: there is no folder '{options.verify_trace.parent}'")
    if algorithm.name is not None and options.speculative_draft_model_path is None:
        raise ValueError(f"{algorithm.name} speculative decoding requires setting --speculative-draft-model-path.")
    target = _target(options.model_path)
    draft = None if options.speculative_draft_model_path is None else _draft(options.speculative_draft_model_path)
    knobs = _knobs(options, algorithm, draft)
    return Launch(
        options=options,
        target=target,
        draft=draft,
        speculation=dialect.Speculation(algorithm=algorithm, knobs=knobs),
        context_length=_context_length(options.context_length, target),
    )


def _document(folder: Path) -> object:
    """Return the folder's parsed config.json."""
    if not folder.is_dir():
        raise OSError(
            f"Repo id must be in the form 'repo_name' or 'namespace/repo_name': '{folder}'. Use `repo_type` argument if needed."
        )
    path = folder / "config.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OSError(f"It looks like the config file at '{path}' is not a valid JSON file.") from error


def _target(folder: Path) -> TargetConfig:
    """Return the target's configuration, its tokenizer being there."""
    document = _document(folder)
    if not (folder / TOKENIZER_FILE).is_file():
        raise ValueError(
            f"Couldn't instantiate the backend tokenizer from one of: \n(1) a `tokenizers` library serialization file: {folder}"
        )
    return TargetConfig.parse(document, str(folder / "config.json"))


def _draft(folder: Path) -> DraftConfig:
    """Return the drafter's configuration."""
    return DraftConfig.parse(_document(folder), str(folder / "config.json"))


def _knobs(options: Options, algorithm: dialect.Algorithm, draft: DraftConfig | None) -> dict[str, int]:
    """Return every knob that the command line or the drafter gives, checked against each other."""
    knobs = {"tree_budget": dialect.DEFAULT_TREE_BUDGET, "topk_cap": dialect.DEFAULT_TOPK_CAP}
    if draft is not None:
        knobs["block_size"] = draft.block_size
    for key, knob in dialect.KNOB_KEYS.items():
        given: int | None = getattr(options, key)
        if given is not None:
            if given < 1:
                raise ValueError(
                    f"{algorithm.name or 'DFLASH'} requires --{key.replace('_', '-')} to be positive, got {given}."
                )
            knobs[knob] = given
    return _with_draft_tokens(options, algorithm, knobs)


def _with_draft_tokens(options: Options, algorithm: dialect.Algorithm, knobs: dict[str, int]) -> dict[str, int]:
    """Apply --speculative-num-draft-tokens, which for a chain is the block size under another name."""
    wanted = options.speculative_num_draft_tokens
    if wanted is None or algorithm.draft_tokens is None:
        return knobs
    if options.speculative_dflash_block_size is None and algorithm.algo == "dflash":
        knobs["block_size"] = wanted
    if algorithm.draft_tokens(knobs) != wanted:
        raise ValueError(
            "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ. "
            f"For {algorithm.name} they must match. speculative_num_draft_tokens={wanted}, counted {algorithm.draft_tokens(knobs)}."
        )
    return knobs


def _context_length(wanted: int | None, target: TargetConfig) -> int:
    """Return the context length, refusing one that the model was not made for."""
    derived = target.max_position_embeddings
    if wanted is not None and wanted > derived:
        raise ValueError(
            f"Warning: User-specified context_length ({wanted}) is greater than the derived context_length ({derived}). "
            "This may lead to incorrect model outputs."
        )
    if wanted is not None and wanted <= RESERVED_INPUT_TOKENS:
        raise ModelError(f"context_length is {wanted}, expected more than {RESERVED_INPUT_TOKENS}")
    return wanted or derived
