"""The training text: the sources of this Python's standard library (licence PSF-2.0), found through sysconfig.

Files are split into training and held-out ones by a hash of their path, so every machine holds out the same modules.
"""

from __future__ import annotations

import hashlib
import random
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from specctl.lab.tokenizer import Tokenizer

EXCLUDED = frozenset({"test", "tests", "site-packages", "encodings", "idlelib", "lib2to3", "__pycache__", "pydoc_data"})
MIN_FILE_CHARS = 400
HELD_OUT_PERCENT = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The texts of the files to train on and of those held out, in the order of their paths."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]


def read(stdlib: Path | None = None) -> Corpus:
    """Read the standard library's sources and split them."""
    root = stdlib or Path(sysconfig.get_paths()["stdlib"])
    train: list[str] = []
    held_out: list[str] = []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if EXCLUDED.intersection(relative.parts):
            continue
        text = _text(path)
        if text is None:
            continue
        (held_out if is_held_out(relative.as_posix()) else train).append(text)
    return Corpus(train=tuple(train), held_out=tuple(held_out))


def held_out_prompts(tokenizer: Tokenizer, count: int, length: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Return prompts of one length cut from the held-out files of this Python, never across two files."""
    rows = [tokens for tokens in map(tokenizer.encode, read().held_out) if len(tokens) > length]
    draw = random.Random(seed)
    files = draw.choices(rows, weights=[len(row) for row in rows], k=count)
    starts = [draw.randrange(len(row) - length) for row in files]
    return tuple(tuple(row[start : start + length]) for row, start in zip(files, starts, strict=True))


def is_held_out(relative: str) -> bool:
    """Tell whether the module at this path, relative to the standard library, is kept out of training."""
    return int.from_bytes(hashlib.sha256(relative.encode()).digest()[:4], "big") % 100 < HELD_OUT_PERCENT


def _text(path: Path) -> str | None:
    """Return a source file's text, or None for one that is too short or not UTF-8."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    return text if len(text) >= MIN_FILE_CHARS else None
