"""Whether one mode ran since the start: a running engine that can be told another must not have been."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.fleet.profiles import Profiles
from specctl.ops.contact import Contact
from specctl.ops.doctor_gather import LOG_LINES, Subject, untold
from tests.fakes import SERVER, facts

CHANGE = '[2026-11-30 08:51:33] INFO:     127.0.0.1:40310 - "POST /set_internal_state HTTP/1.1" 200 OK'


def subject(profile: str) -> Subject:
    """Return a server of a built-in profile."""
    found = Profiles({}, BuiltInProfiles()).get(profile)
    assert found is not None
    server = replace(SERVER, profile=found)
    return Subject(contact=cast(Contact, None), wanted=server, server=server, facts=facts(), client=None)


@pytest.mark.parametrize(
    ("profile", "printed", "claim"),
    [
        ("lab", ["a line"], True),
        ("lab", ["a line", CHANGE, "a line"], False),
        ("sglang-0.5.23+ddtree", ["a line", CHANGE], False),
        ("lab", ["a line"] * LOG_LINES, False),
        ("lab", [], False),
        ("sglang-0.5.23", ["a line", CHANGE], True),
        ("sglang-0.5.23", [], True),
    ],
)
def test_a_live_change_and_back_is_not_one_mode(profile: str, printed: list[str], *, claim: bool) -> None:
    """Nobody told it, as far as a whole log says; an engine that cannot be told needs no log."""
    assert untold(subject(profile), printed) is claim
