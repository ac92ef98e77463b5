"""The half of purity that import contracts cannot see: names of modules that have a pure and an impure side."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURE = ("algos", "control", "doctor", "engines", "fleet", "lint", "measure", "rollout", "ui")
CALLS = frozenset({"open", "print", "input", "eval", "exec", "__import__"})
METHODS = frozenset({"now", "utcnow", "today", "read_text", "write_text", "read_bytes", "write_bytes", "cwd", "home"})


def impurities(source: str) -> Iterator[str]:
    """Yield what a module's source reaches outside for, beside impure modules and what it does when run as a program."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not ast.unparse(node).startswith("if __name__ == '__main__'")]
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="pathlib", names=names):
                yield from (f"pathlib.{name.name}" for name in names if not name.name.startswith("Pure"))
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name == "pathlib")
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS:
                yield f".{name}"


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_call_nothing_impure(package: str) -> None:
    """No module of a pure package opens a file, prints, or asks for the date or the working folder."""
    paths = sorted((ROOT / "specctl" / package).rglob("*.py"))
    found = {path.name: tuple(impurities(path.read_text(encoding="utf-8"))) for path in paths}
    assert {name: calls for name, calls in found.items() if calls} == {}
    assert len(paths) > 1


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("from pathlib import Path, PurePosixPath", ("pathlib.Path",)),
        ("import pathlib", ("pathlib",)),
        ("open('x').read()", ("open",)),
        ("datetime.now(UTC)", (".now",)),
        ("from pathlib import PurePosixPath\nPurePosixPath('x').name", ()),
    ],
)
def test_impurity_is_seen(source: str, seen: tuple[str, ...]) -> None:
    """The check itself finds what it is for, and nothing in pure code."""
    assert tuple(impurities(source)) == seen
