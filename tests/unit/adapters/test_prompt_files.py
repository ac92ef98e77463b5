"""A user's prompts: what is taken, and which line is at fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.adapters import prompt_files
from specctl.errors import UsageError
from specctl.measure.load import Prompt
from tests.examples import HOSTILE


def written(folder: Path, *lines: object) -> str:
    """Write lines, each as JSON unless it is text."""
    path = folder / "mine.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return str(path)


def test_three_ways_to_write_a_prompt(tmp_path: Path) -> None:
    """A prompt, a text, or a conversation; blank lines are passed over, ids and kinds are kept."""
    conversation = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}]
    path = written(tmp_path, {"prompt": "a", "id": 7, "kind": "mine"}, "", {"text": "b"}, {"messages": conversation})
    assert prompt_files.read(path) == (
        Prompt(id="7", kind="mine", text="a"),
        Prompt(id="file-3", kind="file", text="b"),
        Prompt(id="file-4", kind="file", text="System: Be short.\nUser: Why?\nAssistant:"),
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{half", "not JSON: "),
        ([1], "not an object but list"),
        ({}, "one of prompt, text and messages is wanted"),
        ({"prompt": "a", "text": "b"}, "not prompt and text"),
        ({"prompt": "  "}, "prompt is no text, or an empty one"),
        ({"text": 5}, "text is no text"),
        ({"messages": []}, "messages is no list of messages"),
        ({"messages": [{"role": "user"}]}, "a message has a role and a content"),
        ({"prompt": "a", "id": ["x"]}, "id is no short word"),
        ({"prompt": "a", "kind": "x\ny"}, "kind is no short word"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_fault_names_its_line(tmp_path: Path, line: object, words: str) -> None:
    """What cannot be taken is told with the file and the line."""
    path = written(tmp_path, {"prompt": "fine"}, line)
    with pytest.raises(UsageError, match=r"mine\.jsonl:2: ") as caught:
        prompt_files.read(path)
    assert words in caught.value.message


def test_file_faults_are_told(tmp_path: Path) -> None:
    """No file, an empty one, one that is no text, ids that are the same: each has its words."""
    with pytest.raises(UsageError, match="cannot be read: no such file"):
        prompt_files.read(str(tmp_path / "none.jsonl"))
    with pytest.raises(UsageError, match="no prompt in it"):
        prompt_files.read(written(tmp_path, ""))
    with pytest.raises(UsageError, match="same id"):
        prompt_files.read(written(tmp_path, {"prompt": "a", "id": "x"}, {"prompt": "b", "id": "x"}))
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b'{"prompt": "a"}\n\xff')
    with pytest.raises(UsageError, match=":2: not UTF-8 text"):
        prompt_files.read(str(path))


@given(content=st.binary(max_size=300))
@settings(max_examples=HOSTILE, deadline=None)
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any bytes give prompts or one UsageError."""
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    try:
        assert prompt_files.read(str(path))
    except UsageError as error:
        assert error.hint  # noqa: PT017  # most files are refused, some are fine
