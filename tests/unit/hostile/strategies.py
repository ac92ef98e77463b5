"""What a hostile engine or host may send: any JSON, numbers without end, texts that mean something to a shell or a unit."""

from __future__ import annotations

import math

from hypothesis import strategies as st

NASTY = (
    "",
    " ",
    "\0",
    "\n",
    "\r\n[Service]\nExecStart=/bin/true",
    "$(touch /tmp/owned)",
    "`id`",
    "; rm -rf / #",
    "%n%h",
    "${HOME}",
    "'\"\\",
    "-rf",
    "--inject",
    "../../../etc/passwd",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202egnp.exe",
    "\ud800",
    "٣",
    "[/bold][red]",
    "a" * 5000,
)
TEXTS = st.sampled_from(NASTY) | st.text(max_size=30)
NUMBERS = (
    st.integers()
    | st.integers(10**300, 10**400)
    | st.integers(-(10**400), -(10**300))
    | st.floats()
    | st.sampled_from([math.inf, -math.inf, math.nan, -0.0, 2**63, -1])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
JSON = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4), max_leaves=12
)


def objects(*names: str) -> st.SearchStrategy[dict[str, object]]:
    """Return objects that have some of these fields, each with anything in it, and fields of chance beside them."""
    known = st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON))
    return st.builds(lambda one, other: {**other, **one}, known, st.dictionaries(TEXTS, JSON, max_size=2))


# JSON texts that no parser of ours may end by: too deep, too long, not closed, not UTF-8.
BODIES = st.sampled_from(
    [
        b"",
        b"{",
        b"[" * 3000,
        b'{"a":' * 3000,
        b"9" * 10_000,
        b"\xff\xfe\x00",
        b"nul",
        b'{"loads":[' + b"{}," * 1000 + b"{}]}",
        b"\0" * 100,
        b"<html>502 Bad Gateway</html>",
    ]
) | st.binary(max_size=200)
