"""The log lines that name the speculative algorithm which decodes: printed at start and at each live change."""

from __future__ import annotations

from specctl.lab.serve import dialect
from specctl.lab.serve.identity import DRAFT_ARCHITECTURE
from specctl.lab.serve.resolve import Launch

MASK_TOKEN = "<|mask|>"  # noqa: S105  # a token of the vocabulary


def algorithm_lines(launch: Launch, speculation: dialect.Speculation) -> tuple[str, ...]:
    """Return the lines for an algorithm; none where nothing speculates.

    A server that claims a tree and decodes a chain prints the chain's lines.
    """
    draft = launch.draft
    if draft is None or speculation.algorithm.name is None:
        return ()
    decodes = launch.decodes(speculation)
    tree = dialect.running_algorithm(decodes).prints_tree_line
    block = decodes.knobs.get("block_size", speculation.knobs["block_size"])
    runner = f"attention_backend=torch_native, model={DRAFT_ARCHITECTURE}, block_size={block}, draft_window_size=None"
    mask = f"mask_token={MASK_TOKEN}, mask_token_id={draft.mask_token_id}, mask_token_id_override={draft.mask_token_id}"
    lines = [
        f"Initialized DFLASH draft runner. {runner}, compact_cache=False",
        f"DFLASH draft runner ready. {mask}, noise_embed_scale=1.0",
    ]
    if block != draft.block_size:
        sizes = f"using speculative_num_draft_tokens={block} but draft config block_size={draft.block_size}"
        lines.insert(0, f"DFLASH block size mismatch: {sizes}.")
    if tree:
        knobs = decodes.knobs
        lines.append(
            f"Initialized DDTREE verifier. tree_budget={knobs['tree_budget']}, topk_cap={knobs['topk_cap']}, block_size={block}"
        )
    return tuple(lines)
