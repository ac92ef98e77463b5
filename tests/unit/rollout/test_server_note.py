"""The note for the agent: made from an inventory, read without one, the same for the same inventory, and without any secret."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.adapters.inventory_files import BuiltInProfiles, read_files
from specctl.errors import SpecctlError, UnsupportedError
from specctl.fleet.resolve import resolve
from specctl.fleet.types import AgentMode, AgentSettings, Fleet, Gateway, Hooks, Objective, SecretRef, SecretSource
from specctl.rollout import plain, server_note
from specctl.rollout.server_note import ReleaseNote
from tests.fakes import HOST, SERVER, with_secrets

FIELD = Path(__file__).parents[3] / "inventory" / "field.yaml"
MANIFEST = {
    "port": 30009, "bind": "0.0.0.0", "units": {"none": "none.service", "ddtree": "ddtree.service"},
    "knobs": {"ddtree": {"tree_budget": 7, "topk_cap": 2}}, "salt": "s", "who": "ann", "when": "2026-11-29",
}  # fmt: skip
KEY = SecretRef(source=SecretSource.CMD, locator="pass show router")
AGENT = AgentSettings(
    mode=AgentMode.ACT,
    objective=Objective.THROUGHPUT,
    floor_tokens_per_s=20.0,
    algos=("dflash", "ddtree"),
    knobs={"ddtree": {"tree_budget": (4, 32)}},
    gateway=Gateway(kind="sglang-router", url="http://r:1", worker="http://h:2", api_key=KEY),
    hooks=Hooks(pre_drain=("/bin/off", "a b"), post_ready=("/bin/on",), limit_s=3.0),
    calibration="/home/ann/calibration.json",
    context_tokens=(100, 4000),
)


def where(name: str) -> str:
    """Return where a key lies on the host."""
    return f"/keys/{name}"


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """The field's inventory."""
    return resolve(read_files([str(FIELD)]), BuiltInProfiles()).fleet


def test_every_server_of_the_field_comes_back(fleet: Fleet) -> None:
    """Profile, models, limits and options are read as they were; only secrets and provenance stay with the operator."""
    for host in fleet.hosts:
        for server in host.servers:
            made = server_note.make(host, server, {"3": MANIFEST}, calibrated=True)
            found = server_note.read(made.text(), where)
            assert found.server == replace(server, secrets=found.server.secrets, provenance={})
            assert set(found.server.secrets) == {"api_key", "admin_api_key"} & set(server.secrets)
            assert found.text() == made.text()


def test_what_the_agent_may_comes_back_with_its_keys() -> None:
    """Owned knobs, gateway, hooks; references point to the host's own files, and the operator's are not told."""
    server = replace(with_secrets("api_key", "admin_api_key", "hf_token"), agent=AGENT)
    text = server_note.make(HOST, server, {}, calibrated=False).text()
    found = server_note.read(text, where).server
    kept = Gateway(
        kind="sglang-router", url="http://r:1", worker="http://h:2",
        api_key=SecretRef(source=SecretSource.FILE, locator="/keys/gateway_api_key"),
    )  # fmt: skip
    assert found.agent == replace(AGENT, gateway=kept, calibration=None)
    assert {name: str(ref) for name, ref in found.secrets.items()} == {
        "api_key": "file:/keys/api_key",
        "admin_api_key": "file:/keys/admin_api_key",
    }
    assert not [word for word in ("API_KEY", "pass show", "HF_TOKEN", "hf_token", "/home/ann") if word in text]
    assert server_note.references(server)["gateway_api_key"] == KEY


def test_nothing_measured_and_no_date_is_in_it() -> None:
    """The same inventory and releases give the same text; who wrote a release and when is not told."""
    first = server_note.make(HOST, SERVER, {"3": MANIFEST}, calibrated=False).text()
    second = server_note.make(HOST, SERVER, {"3": {**MANIFEST, "who": "bob", "when": "later"}}, calibrated=False).text()
    assert first == second
    assert "ann" not in first


def test_a_release_tells_its_address_and_knobs() -> None:
    """What runs may be older than the inventory: each release answers where its manifest says."""
    note = server_note.make(HOST, SERVER, {"3": MANIFEST, "4": {}}, calibrated=False)
    assert note.releases["3"] == ReleaseNote(
        port=30009, bind="0.0.0.0", knobs={"none": {}, "ddtree": {"tree_budget": 7, "topk_cap": 2}}
    )
    assert (note.deployed("3").port, note.deployed("4").port, note.deployed("9").port) == (30009, 30001, 30001)
    assert note.as_host().state_dir == PurePosixPath("/var/lib/specctl")


def changed(change: dict[str, object]) -> str:
    """Return a note's text with some fields replaced."""
    fields = json.loads(server_note.make(HOST, SERVER, {}, calibrated=False).text())
    return json.dumps({**fields, **change})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[" * 5000, "is no JSON"),
        ("[]", "format None"),
        (changed({"server": {}}), "servernote.server lacks name"),
        (changed({"keys": "api_key"}), "servernote.keys is no list"),
        (changed({"host": {"name": 1, "state_dir": "/"}}), "servernote.host.name is no str"),
        (changed({"host": {"name": "h", "state_dir": "/", "manager": "init"}}), "is none of systemd, supervisor"),
    ],
)
def test_a_note_that_does_not_fit_says_where(text: str, words: str) -> None:
    """Damaged, or of another kind: an error with the field."""
    with pytest.raises(SpecctlError, match=words):
        server_note.read(text, where)


def test_another_format_is_unsupported_and_more_fields_are_not() -> None:
    """A newer format asks for an upgrade; a field that we do not know is left alone."""
    with pytest.raises(UnsupportedError, match="has format 2, and this is format 1"):
        server_note.read(changed({"format": 2}), where)
    assert server_note.read(changed({"later": {"x": 1}}), where).host.name == "gpu1"


@given(
    st.builds(
        AgentSettings,
        mode=st.sampled_from(AgentMode),
        objective=st.sampled_from(Objective),
        floor_tokens_per_s=st.none() | st.floats(1, 1e6),
        algos=st.lists(st.sampled_from(["none", "dflash", "ddtree"]), unique=True).map(tuple),
        knobs=st.dictionaries(
            st.text(max_size=5), st.dictionaries(st.text(max_size=5), st.tuples(st.integers(), st.integers()))
        ),
        min_dwell_s=st.floats(0, 1e9),
        switches_a_day=st.integers(0, 1000),
        outage_ok=st.booleans(),
        hooks=st.none() | st.builds(Hooks, pre_drain=st.lists(st.text()).map(tuple), limit_s=st.floats(0, 100)),
        context_tokens=st.none() | st.tuples(st.integers(), st.integers()),
    )
)
def test_any_settings_come_back(settings: AgentSettings) -> None:
    """Plain values and back: the same settings, whatever they are."""
    assert plain.load(AgentSettings, json.loads(json.dumps(plain.dump(settings)))) == settings


def test_plain_values_are_strict() -> None:
    """A number is no text, true is no number, a list has its length, and an object its required fields."""
    for value, words in (
        ({"switches_a_day": True}, "switches_a_day is no int"),
        ({"mode": "auto"}, "mode is none of observe, advise, act"),
        ({"context_tokens": [1]}, "context_tokens has 1 items, not 2"),
        ({"knobs": {"ddtree": []}}, "knobs.ddtree is no mapping"),
        ({"hooks": {"pre_drain": [1]}}, r"pre_drain\[0\] is no str"),
    ):
        with pytest.raises(plain.PlainError, match=words):
            plain.load(AgentSettings, value)
    with pytest.raises(TypeError, match="object has no plain form"):
        plain.dump({"a": object()})
