"""What lies on the host of each server, read again when it changes and only then."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specctl_agent.places import Places, Told
from tests.agentworld import ACT, DDTREE, DFLASH, NONE
from tests.unit.agent.hostworld import lay_out


def test_a_server_is_found_with_what_it_starts_with(tmp_path: Path) -> None:
    """Note, current release and algo, the modes that the release can start with, and where its keys lie."""
    home = lay_out(tmp_path, 1234, ACT)
    found, wrong = Places(tmp_path).look()
    place = found["lab"]
    assert (wrong, place.release, place.algo, place.deployed) == ({}, "1", "ddtree", DDTREE)
    assert set(place.startable) == {DDTREE, DFLASH, NONE}
    assert place.note.server.secrets["api_key"].locator == str(home / "agent" / "keys" / "api_key")


def test_a_switch_of_the_link_is_seen_at_once(tmp_path: Path) -> None:
    """What a restart makes current is what is deployed now; what has not changed is the same value."""
    home = lay_out(tmp_path, 1234, ACT)
    places = Places(tmp_path)
    before = places.find("lab")
    assert places.find("lab") is before
    (home / "current").unlink()
    (home / "current").symlink_to("releases/1/dflash.conf")
    after = places.find("lab")
    assert after is not None
    assert (after.deployed, before is not None and before.deployed) == (DFLASH, DDTREE)


LIVE = {
    "format": 1, "algo": "dflash", "knobs": {"block_size": 8}, "invocation": "i1", "who": "ann@desk", "at": "2026-11-30T12:00:00",
}  # fmt: skip


def test_a_live_change_is_seen_at_once(tmp_path: Path) -> None:
    """What a person told the running engine is known with the start that it was told to."""
    home = lay_out(tmp_path, 1234, ACT)
    places = Places(tmp_path)
    assert getattr(places.find("lab"), "told", "") is None
    (home / "agent" / "live.json").write_text(json.dumps(LIVE))
    place = places.find("lab")
    assert place is not None
    assert place.told == Told(mode=DFLASH, invocation="i1", who="ann@desk", at="2026-11-30T12:00:00")
    assert place.deployed == DDTREE


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", json.dumps({**LIVE, "format": 2}).encode(), json.dumps({**LIVE, "invocation": None}).encode(),
     json.dumps({**LIVE, "algo": "nope"}).encode(), json.dumps({**LIVE, "knobs": {"nope": 1}}).encode()],
)  # fmt: skip
def test_what_is_no_live_change_is_none(tmp_path: Path, content: bytes) -> None:
    """A file that cannot be meant says nothing, and the server is known all the same."""
    home = lay_out(tmp_path, 1234, ACT)
    (home / "agent" / "live.json").write_bytes(content)
    place = Places(tmp_path).find("lab")
    assert place is not None
    assert (place.told, place.deployed) == (None, DDTREE)


def test_what_is_no_server_is_told_or_left_alone(tmp_path: Path) -> None:
    """Folders without a note are nobody's; a note that cannot be meant is told by its folder; others are not disturbed."""
    lay_out(tmp_path, 1234, ACT)
    (tmp_path / ".probes").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name, text in {"broken": "{", "newer": '{"format": 99}', "odd": '{"format": 1}'}.items():
        (tmp_path / name / "agent").mkdir(parents=True)
        (tmp_path / name / "agent" / "server.json").write_text(text)
    found, wrong = Places(tmp_path).look()
    assert set(found) == {"lab"}
    assert set(wrong) == {"broken", "newer", "odd"}
    assert "format 99" in wrong["newer"]


def test_a_server_without_a_release(tmp_path: Path) -> None:
    """Where nothing is current, or the note does not know the release, nothing is thought to be deployed."""
    home = lay_out(tmp_path, 1234, ACT)
    (home / "current").unlink()
    place = Places(tmp_path).find("lab")
    assert place is not None
    assert (place.release, place.deployed, place.startable) == (None, None, ())
    assert replace(place, release="77", algo="ddtree").deployed is None


def test_no_folder_is_no_server(tmp_path: Path) -> None:
    """Before the first deploy there is nothing, and that is no trouble."""
    assert Places(tmp_path / "none").look() == ({}, {})
