"""Merge a `--config FILE` into the command line, with SGLang 0.5.23's rules and its blind spot.

Values of the command line win. Only the two-token form is merged: `--config=FILE` parses and is silently ignored (recorded).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_FLAG = "--config"


def merge(argv: Sequence[str]) -> list[str]:
    """Return argv with the file's options put before it; raise ValueError when the file is not a YAML mapping."""
    if _FLAG not in argv:
        return list(argv)
    at = argv.index(_FLAG)
    if at + 1 >= len(argv):
        raise ValueError("No config file specified after --config flag")
    rest = [*argv[:at], *argv[at + 2 :]]
    if _FLAG in rest:
        raise ValueError("Multiple config files specified! Only one allowed.")
    return [*_arguments(_read(Path(argv[at + 1]))), *rest]


def _read(path: Path) -> Mapping[str, object]:
    """Return the file's mapping."""
    import yaml

    if path.suffix not in {".yaml", ".yml"}:
        raise ValueError(f"Config file must be YAML format, got: {path.suffix}")
    if not path.is_file():
        raise ValueError(f"Config file not found: {path}")
    document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if not isinstance(document, dict):
        raise TypeError("Config file must contain a dictionary at root level")
    return document


def _arguments(document: Mapping[str, object]) -> Iterator[str]:
    """Yield the options that the mapping stands for; booleans are switches, lists repeat the option."""
    for key, value in document.items():
        name = "--" + str(key).replace("_", "-")
        if value is True:
            yield name
        elif isinstance(value, list):
            for item in value:
                yield from (name, str(item))
        elif value is not None and value is not False:
            yield from (name, str(value))
