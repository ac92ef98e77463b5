"""Files that cannot be read, or not as YAML, are one clear problem each, at once and without an exception."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from specctl.adapters.inventory_files import MOST_BYTES, BuiltInProfiles, read_bytes, read_file, read_files
from specctl.adapters.inventory_yaml import DEEPEST, MOST_NODES, compose
from specctl.fleet.positions import Branch, Scalar

NOBODY = 65534


def said(content: bytes) -> str:
    """Return the problem of a content."""
    problem = read_bytes("f.yaml", content).problem
    assert problem is not None
    return str(problem)


def refused(path: Path) -> str:
    """Return what is wrong with a path."""
    problem = read_file(str(path)).problem
    assert problem is not None
    assert problem.file == str(path)
    return problem.message


def test_a_file_becomes_a_tree_that_knows_its_lines(tmp_path: Path) -> None:
    """Keys and values stand at their line and column, both from one; a byte order mark counts for nothing."""
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbfa:\n  b: 1\n")
    root = read_file(str(file)).root
    assert isinstance(root, Branch)
    inner = root.entries[0][1]
    assert isinstance(inner, Branch)
    key, value = inner.entries[0]
    assert isinstance(value, Scalar)
    assert [(node.place.line, node.place.column) for node in (key, value)] == [(2, 3), (2, 6)]


def test_paths_that_are_no_readable_file(tmp_path: Path) -> None:
    """Missing, a folder, a loop of links, a file below a file, a name too long, a NUL in the name: each in words."""
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    file = tmp_path / "file.yaml"
    file.write_text("a: 1")
    assert refused(tmp_path / "missing.yaml") == "there is no such file"
    assert refused(tmp_path) == f"is a folder: name its files, such as {tmp_path / '*.yaml'}"
    assert refused(loop) == "is a symbolic link that leads back to itself"
    assert refused(file / "below") == "there is no such file: a part of its path is not a folder"
    assert refused(tmp_path / ("a" * 300)) == "its path is too long"
    assert refused(tmp_path / "nul\0.yaml") == "its name holds a NUL byte"


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """A file of another's is named as such; root, who may read all, is somebody else for the moment."""
    file = tmp_path / "f.yaml"
    file.write_text("a: 1")
    file.chmod(0)
    who = os.geteuid()
    try:
        if who == 0:
            os.seteuid(NOBODY)
        assert refused(file) == "may not be read by this user"
    finally:
        os.seteuid(who)


def test_a_file_over_five_megabytes(tmp_path: Path) -> None:
    """A large file is refused by its size before any of it is parsed."""
    file = tmp_path / "f.yaml"
    file.write_bytes(b"# " + b"x" * MOST_BYTES)
    assert refused(file) == "is over 5 MB, which no inventory is"


def test_a_device_without_end_is_over_five_megabytes() -> None:
    """An endless file is read only up to the limit."""
    assert refused(Path("/dev/zero")) == "is over 5 MB, which no inventory is"


def test_other_encodings_are_named() -> None:
    """What is not UTF-8 is refused at the byte that shows it."""
    assert said("a: é".encode("latin-1")) == "f.yaml:1:4: is not UTF-8: byte 0xe9"
    assert said(b"ok: 1\nb: \xff\n") == "f.yaml:2:4: is not UTF-8: byte 0xff"
    assert said("a: 1".encode("utf-16")) == "f.yaml:1:1: is UTF-16, not UTF-8: save it as UTF-8"


def test_control_characters_are_named() -> None:
    """NUL bytes and other control characters are refused at their place."""
    assert said(b"a: 1\nb: x\0y") == "f.yaml:2:5: holds a NUL byte"
    assert said(b"a: \x07") == "f.yaml:1:4: holds a control character (U+0007)"


def test_a_file_given_twice(tmp_path: Path) -> None:
    """The same file under two names is one file."""
    file = tmp_path / "f.yaml"
    file.write_text("a: 1")
    (tmp_path / "g.yaml").symlink_to(file)
    first, second = read_files([str(file), str(tmp_path / "g.yaml")])
    assert first.problem is None
    assert second.problem is not None
    assert second.problem.message == f"is given twice (as {file})"


def bomb(levels: int) -> bytes:
    """Return text whose aliases expand to nine to the power of `levels` values."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(levels)]
    return "\n".join(lines).encode()


def test_an_alias_bomb_costs_nothing() -> None:
    """An exponential expansion is refused where it passes the limit, after linear work."""
    began = time.process_time()
    assert said(bomb(25)) == f"f.yaml:6:20: expands to over {MOST_NODES} values: an inventory has far fewer"
    assert time.process_time() - began < 1.0


def test_few_aliases_are_fine() -> None:
    """An anchor may be used again."""
    assert read_bytes("f.yaml", b"a: &x {k: v}\nb: *x\nc: *x").problem is None


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused_before_it_hurts(opening: str) -> None:
    """A hundred thousand levels are one problem, in no time."""
    began = time.process_time()
    assert f"is nested over {DEEPEST} levels deep" in said(opening.encode() * 100_000)
    assert time.process_time() - began < 2.0


def test_aliases_cannot_nest_deeper_than_text_can() -> None:
    """A tower of aliases has the same limit."""
    lines = ["a0: &a0 [x]"] + [f"a{n + 1}: &a{n + 1} [*a{n}]" for n in range(40)]
    assert f"is nested over {DEEPEST} levels deep by the alias" in said("\n".join(lines).encode())


def test_many_values_are_refused() -> None:
    """A file of more values than any inventory has is refused early."""
    assert f"expands to over {MOST_NODES} values" in said(b"- x\n" * (MOST_NODES + 1))


def test_built_in_profiles_are_files_of_their_own_name() -> None:
    """Every built-in profile is in the file of its name, in the shape of an inventory."""
    shelf = BuiltInProfiles()
    assert shelf.names() == ("lab", "sglang-0.5.23", "sglang-0.5.23+ddtree", "sglang-pr29907")
    for name in shelf.names():
        label, root = shelf.tree(name)
        assert label == f"built-in {name}.yaml"
        assert isinstance(root, Branch)
        (section,) = root.entries
        assert isinstance(section[1], Branch)
        (profile,) = section[1].entries
        assert isinstance(profile[0], Scalar)
        assert profile[0].source == name


def test_the_slow_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml, its own parser gives the same tree."""
    text = "a: &x {b: [1, 'two', ~]}\nc: *x\n"
    fast = compose(text)
    monkeypatch.delattr("yaml.CSafeLoader")
    assert compose(text) == fast
