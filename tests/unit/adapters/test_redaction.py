"""Known secrets never survive in text, bytes or nested values."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.adapters.redaction import MARK, SHORTEST, Redactor

KEY = "sk-Äb/c+d=e'f\"g&h i"
secrets = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=SHORTEST, max_size=12)
# Few letters make overlaps likely, between secrets and with their surroundings.
tight = st.text("ab[]redacted%5B", min_size=SHORTEST, max_size=6)


@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        quote(KEY),
        quote(KEY, safe=""),
        quote_plus(KEY),
        quote(KEY).lower(),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps({"key": KEY}))[1:-1],
        repr(KEY)[1:-1],
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
    ],
)
def test_every_usual_spelling_is_blotted_out(spelled: str) -> None:
    """A secret is found as it is, in URLs, in JSON (nested too), in a repr and in base64."""
    text = Redactor([KEY]).redact(f"before {spelled} after")
    assert text.startswith("before ")
    assert text.endswith(" after")
    assert MARK in text
    assert "sk-" not in text
    assert base64.b64encode(KEY.encode()).decode()[:12] not in text


@pytest.mark.parametrize("prefix", ["", "u", "us", "user:", "user1:"])
def test_base64_of_a_longer_text_hides_the_secret_inside(prefix: str) -> None:
    """Basic authentication and the like do not carry a key out, wherever in the text it stands."""
    encoded = base64.b64encode(f"{prefix}long-secret-key-0123456789{prefix}".encode()).decode()
    blotted = Redactor(["long-secret-key-0123456789"]).redact(encoded)
    assert MARK in blotted
    assert len(blotted.replace(MARK, "")) <= len(encoded) - 30


@given(
    st.lists(st.one_of(secrets, tight), min_size=1, max_size=4),
    st.lists(st.one_of(st.text(), st.integers(0, 3)), max_size=12),
)
def test_no_known_secret_survives(values: list[str], parts: list[str | int]) -> None:
    """However secrets and text are strung together, the outcome holds none of them, in str and in bytes."""
    text = "".join(values[part % len(values)] if isinstance(part, int) else part for part in parts)
    redactor = Redactor(values)
    blotted = redactor.redact(text)
    assert not [value for value in values if value in blotted]
    raw = redactor.redact_bytes(text.encode("utf-8", "surrogatepass"))
    assert not [value for value in values if value.encode() in raw]


@given(st.text())
def test_text_without_secrets_is_untouched(text: str) -> None:
    """Nothing but secrets is replaced."""
    redactor = Redactor(["\ue000\ue001\ue002\ue003"])
    assert redactor.redact(text.replace("\ue000", "")) == text.replace("\ue000", "")


def test_nested_values_are_blotted_out_whole() -> None:
    """Keys and values of every container are looked through; other values stay as they are."""
    value = {
        "a": ["hush-hush", ("x hush-hush", 3, None)],
        "hush-hush": {"b": b"hush-hush"},
        "s": frozenset({"hush-hush"}),
    }
    assert Redactor(["hush-hush"]).redact_value(value) == {
        "a": [MARK, (f"x {MARK}", 3, None)],
        MARK: {"b": MARK.encode()},
        "s": frozenset({MARK}),
    }


def test_overlapping_secrets_leave_no_piece() -> None:
    """Where two secrets overlap in the text, both go whole, under one mark."""
    assert Redactor(["abcdef", "defghi"]).redact("<abcdefghi>") == f"<{MARK}>"


def test_short_values_are_not_taken() -> None:
    """A value too short to be a secret does not garble the text."""
    assert Redactor(["a", "", "abc"]).redact("abc abc") == "abc abc"


def test_mark_is_chosen_around_the_secrets() -> None:
    """A secret that is part of the usual mark is not printed by the mark."""
    redactor = Redactor(["redacted"])
    assert "redacted" not in redactor.redact("it was redacted")


def test_megabytes_take_milliseconds() -> None:
    """Ten secrets in 4 MB of log cost well under a second."""
    redactor = Redactor([f"sk-{number:032x}" for number in range(10)])
    text = ("2026-01-01 INFO decode batch, gen throughput 123.4 token/s\n" * 70_000) + "sk-" + "0" * 31 + "7"
    started = time.process_time()
    blotted = redactor.redact(text)
    assert time.process_time() - started < 1.0
    assert blotted.endswith(f"\n{MARK}")
