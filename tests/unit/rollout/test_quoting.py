"""The quoter: what cannot stand in a unit is refused, all else comes out as systemd and the shell read it back."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.errors import UsageError
from specctl.rollout import quoting

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"), max_size=40)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--port", "--port"),
        ("", '""'),
        ("a b", '"a b"'),
        ("50%", '"50%%"'),
        ("$HOME", '"$$HOME"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("tab\there", '"tab\\there"'),
        (";", '";"'),
        ("é", '"é"'),
        ("\x1b[0m", '"\\x1b[0m"'),
    ],
)
def test_argument_is_quoted_as_systemd_reads_it(given: str, expected: str) -> None:
    """Percent and dollar are doubled, and whatever systemd would split or unescape is quoted."""
    assert quoting.argument(given) == expected


@pytest.mark.parametrize("text", ["a\nb", "a\0b", "\r", "lone \ud800"])
def test_what_no_unit_can_carry_is_refused(text: str) -> None:
    """Newline, NUL and half characters never enter a unit."""
    for quote in (quoting.argument, quoting.setting, quoting.shell_word, lambda t: quoting.assignment("A", t)):
        with pytest.raises(UsageError):
            quote(text)


@given(TEXT)
def test_quoted_text_stays_on_one_line(text: str) -> None:
    """No value can add a line to a unit."""
    assert len(quoting.argument(text).split("\n")) == 1
    assert len(quoting.assignment("NAME", text).split("\n")) == 1


@given(TEXT)
def test_shell_words_come_back(text: str) -> None:
    """A shell reads back the word that was quoted."""
    assert shlex.split(quoting.shell_word(text)) == [text]


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "A-B", "Ä"])
def test_bad_variable_names_are_refused(name: str) -> None:
    """A name that no environment can hold is an error, never a stray line."""
    with pytest.raises(UsageError):
        quoting.assignment(name, "x")


def test_dollar_is_literal_in_environment() -> None:
    """Environment= does not expand `$`, so it is not doubled there."""
    assert quoting.assignment("A", "$x%") == '"A=$x%%"'


@pytest.mark.parametrize("path", ["relative", "/with blank", "/with:colon", "/with\nline"])
def test_paths_that_would_split_are_refused(path: str) -> None:
    """LoadCredential= and EnvironmentFile= take their path unquoted, so such paths cannot be written."""
    with pytest.raises(UsageError):
        quoting.path(path)
