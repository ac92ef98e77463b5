"""A load is refused where somebody acts on the server; reading is not."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from specctl.errors import LockHeldError
from specctl.ops.contact import Contact
from specctl.ops.doctor import Examined, refuse_while_acting
from specctl.ops.doctor_gather import Subject
from specctl.rollout.facts import Lease
from tests import fakes


class Reached:
    """A contact of which only the host is asked for."""

    host = fakes.HOST


def subject(lease: Lease | None) -> Subject:
    """Return a server that is reached, with that lease."""
    return Subject(
        contact=cast(Contact, Reached()),
        wanted=fakes.SERVER,
        server=fakes.SERVER,
        facts=replace(fakes.facts(), lease=lease),
        client=None,
    )


def test_a_load_beside_an_act_is_refused() -> None:
    """The error says who acts, why, and what to do."""
    with pytest.raises(LockHeldError) as error:
        refuse_while_acting(subject(Lease(owner="ops@here", reason="deploy")))
    assert str(error.value) == "gpu1: ops@here acts on server chat (deploy): a load would mean nothing now"
    assert error.value.hint


def test_a_server_that_nobody_acts_on_is_loaded() -> None:
    """Without a lease there is nothing to refuse."""
    refuse_while_acting(subject(None))


def test_a_lost_host_has_its_error_in_place_of_a_report() -> None:
    """The object for programs says why there is nothing."""
    told = Examined(host="gpu1", server="chat", error=LockHeldError("held")).as_wire()
    assert (told["findings"], told["passed"], told["unknown"]) == ([], [], [])
    error = told["error"]
    assert isinstance(error, dict)
    assert error["kind"] == "lock-held"
