"""The tokenizer's training: a byte-level BPE over the training files, and the corpus as one row of token ids."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from specctl.lab.train.plan import END_OF_TEXT_ID, SPECIAL_TOKENS, VOCAB_SIZE


def train(texts: Iterable[str], path: Path) -> None:
    """Train the BPE on these texts and write `tokenizer.json`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))


def encode_all(texts: Iterable[str], path: Path) -> NDArray[np.int64]:
    """Return the texts' tokens in one row, each text followed by the end-of-text token."""
    tokenizer = Tokenizer.from_file(str(path))
    rows = [[*encoding.ids, END_OF_TEXT_ID] for encoding in tokenizer.encode_batch(list(texts))]
    return np.concatenate([np.array(row, dtype=np.int64) for row in rows])
