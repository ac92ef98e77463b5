"""Plain scalars are read only where all versions of YAML agree, and every value keeps its place."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from specctl.fleet.positions import Place, Scalar, dotted, scalar_value, shorten

HERE = Place(line=1, column=1)


def plain(text: str) -> Scalar:
    """Return a scalar without quotes."""
    return Scalar(place=HERE, source=text, plain=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("0.85", 0.85),
        ("1.5e+3", 1500.0),
        (".5", 0.5),
        ("0.5.23", "0.5.23"),
        ("none", "none"),
        ("8m", "8m"),
        ("0-7", "0-7"),
    ],
)
def test_plain_scalars_have_one_meaning(text: str, expected: object) -> None:
    """Null, booleans, decimal numbers and text are told apart."""
    assert scalar_value(plain(text)) == expected


@pytest.mark.parametrize(
    "text", ["no", "ON", "Yes", "off", "010", "0x1F", "0o17", "0b11", "1_000", "12:30", "1e5", "1.5e3", "1_0.5"]
)
def test_what_readers_disagree_about_is_refused(text: str) -> None:
    """A scalar that YAML 1.1 and 1.2 read differently is a fault, and so it is in quotes only text."""
    with pytest.raises(ValueError, match=r"readers"):
        scalar_value(plain(text))
    assert scalar_value(Scalar(place=HERE, source=text, plain=False)) == text


@pytest.mark.parametrize("text", [".nan", ".inf", "-.INF", "1.0e+999", "9" * 19, "9" * 5000])
def test_numbers_without_end_are_refused(text: str) -> None:
    """What is not finite, or larger than every reader keeps exactly, is a fault."""
    with pytest.raises(ValueError, match=r"finite|too large"):
        scalar_value(plain(text))


@given(st.from_regex(r"\A[-+.0-9_:eExob]{1,8}\Z") | st.text(alphabet="0123456789.eE-+_:nyotrufalsNYO~", max_size=6))
@example("0._")
@example("-.0")
@example("1_0.5")
def test_a_plain_scalar_is_read_as_pyyaml_reads_it_or_refused(text: str) -> None:
    """Whatever is accepted has the meaning that YAML 1.1 gives it, except for dates, which are text here."""
    try:
        ours = scalar_value(plain(text))
    except ValueError:
        return
    resolver = yaml.SafeLoader("")
    tag = resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # the stubs lack it
    if tag in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"):
        assert ours == text
        return
    assert ours == resolver.construct_object(yaml.ScalarNode(tag, text))


def test_paths_are_written_as_people_write_them() -> None:
    """Indices stand in brackets, and keys that would be misread in quotes."""
    assert dotted(("hosts", "gpu1", "groups", 0)) == "hosts.gpu1.groups[0]"
    assert dotted(("hosts", "", "a b", "x\x00y", "k2.6")) == 'hosts.""."a b"."x\\x00y".k2.6'


def test_long_text_is_cut() -> None:
    """A message never grows with what it quotes."""
    assert len(shorten("a" * 1000)) == 48
    assert shorten("tab\tnew\nline") == "tab\\x09new\\x0aline"
