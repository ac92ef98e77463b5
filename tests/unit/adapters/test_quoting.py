"""One argv as one command line."""

from __future__ import annotations

import pytest

from specctl.adapters.quoting import MAX_LINE_BYTES, command_line
from specctl.errors import UsageError


def test_plain_words_stay_plain() -> None:
    """What needs no quotes gets none, and the shell is replaced by the program."""
    assert command_line(["systemctl", "is-active", "specctl-kimi"]) == b"exec systemctl is-active specctl-kimi"


def test_special_characters_are_quoted() -> None:
    """Spaces, quotes, dollars and unicode are literal; undecodable bytes are themselves."""
    assert command_line(["echo", "a b", "$HOME", "it's", "é", "\udcff", ""]) == (
        b"exec echo 'a b' '$HOME' 'it'\"'\"'s' '\xc3\xa9' '\xff' ''"
    )


def test_longest_line_is_taken_and_a_longer_one_refused() -> None:
    """The limit is the kernel's for one argument."""
    room = MAX_LINE_BYTES - len("exec true ")
    assert len(command_line(["true", "x" * room])) == MAX_LINE_BYTES
    with pytest.raises(UsageError, match="131072 bytes"):
        command_line(["true", "x" * (room + 1)])


@pytest.mark.parametrize("argv", [[], [""], ["a\0"], ["a", "b\0c"]])
def test_what_no_program_can_be_given_is_refused(argv: list[str]) -> None:
    """Nothing to run, or a NUL, is a usage error."""
    with pytest.raises(UsageError):
        command_line(argv)
