"""Releases are compared without their secrets, and a plan says what would change, or why nothing would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from specctl.adapters.templates import Templates
from specctl.fleet.types import Server
from specctl.ops import render
from specctl.rollout import plan as plans
from specctl.rollout.plan import ChangeKind, Plan
from specctl.rollout.release import Release, differing, next_id
from tests.fakes import HOST, LOCAL, SERVER, facts, with_secrets

ROOT = Path(__file__).parents[3]
KEY = "sk-very-secret-value"


def release(server: Server = SERVER, *, number: str = "3", **secrets: str) -> Release:
    """Render a release of the test server."""
    return render.release(Templates(working_dir=ROOT), HOST, server, release_id=number, secrets=secrets)


def manifest(made: Release) -> Mapping[str, object]:
    """Return what the host would keep of it."""
    return made.manifest(salt="salt", who="ops@here", when="2026-11-29T00:00:00+00:00", version="0.1.0")


def unit_of(made: Release, algo: str) -> str:
    """Return the text of an algo's unit."""
    found = made.file(made.units[algo])
    assert found is not None
    return found.content


def planned(wanted: str, made: Release, found: Mapping[str, object] | None, **about: object) -> Plan:
    """Plan a release against facts made of a manifest."""
    return plans.of_release(made, wanted, facts(found, **about), host="gpu1")  # type: ignore[arg-type]  # keywords of facts


def test_a_release_holds_every_algo_that_the_server_can_run() -> None:
    """Switching needs no new release: all algos are rendered into one."""
    made = release()
    assert made.units == {"none": "none.service", "dflash": "dflash.service", "ddtree": "ddtree.service"}


def test_secrets_stay_out_of_manifest_units_and_repr() -> None:
    """A secret is in its own file of mode 0600 and nowhere else."""
    made = release(with_secrets("api_key"), api_key=KEY)
    secret = made.file("engine.yaml")
    assert secret is not None
    assert secret.mode == 0o600
    assert KEY in secret.content
    others = [file.content for file in made.files if not file.secret]
    assert not [text for text in (*others, str(manifest(made)), repr(made)) if KEY in text]


def test_same_release_does_not_differ() -> None:
    """Rendered again under the host's id, nothing differs."""
    assert differing(release(), manifest(release())) == ()


def test_changed_secret_differs_though_no_unit_does() -> None:
    """A new key is a change, seen by its HMAC alone."""
    before = manifest(release(with_secrets("api_key"), api_key=KEY))
    after = release(with_secrets("api_key"), api_key="another-key-123")
    assert differing(after, before) == ("engine.yaml",)


def test_removed_file_differs() -> None:
    """A file that the new release no longer has is a difference."""
    before = manifest(release(with_secrets("api_key"), api_key=KEY))
    assert "engine.yaml" in differing(release(), before)


def test_nothing_to_do_says_why() -> None:
    """The same release, algo and an active unit leave nothing to do."""
    made = release()
    plan = planned("dflash", made, manifest(made))
    assert plan.nothing == "release 3 runs dflash already, and every file is the same"


@pytest.mark.parametrize(
    "about", [{"active": "failed"}, {"active": "inactive"}, {"drift": ("the unit file differs",)}, {"algo": "none"}]
)
def test_a_server_that_is_not_as_it_should_be_is_acted_on(about: Mapping[str, object]) -> None:
    """A stopped unit, drift or another algo is never "nothing to do"."""
    made = release()
    assert planned("dflash", made, manifest(made), **about).nothing is None


def test_algo_change_is_shown_by_kind_and_writes_nothing() -> None:
    """Another algo of the same release changes flags and knobs, and needs no new files."""
    made = release()
    plan = plans.of_release(
        made, "ddtree", replace(facts(manifest(made)), current_unit=unit_of(made, "dflash")), host="gpu1"
    )
    assert not plan.writes
    assert plan.release == "3"
    kinds = {change.kind for change in plan.changes}
    assert kinds == {ChangeKind.ALGO, ChangeKind.KNOB, ChangeKind.FLAG, ChangeKind.ENV}
    assert ("--speculative-algorithm", "DFLASH", "DDTREE") in [(c.name, c.before, c.after) for c in plan.changes]
    assert "+ExecStart=" in plan.diff
    assert "-ExecStart=" in plan.diff


def test_changed_option_writes_the_next_release() -> None:
    """A changed flag needs new files, under the number after the highest."""
    changed = release(replace(SERVER, options={**SERVER.options, "--page-size": 1}))
    plan = planned("dflash", changed, manifest(release()))
    assert plan.writes
    assert plan.release == "4"
    assert [(c.name, c.before, c.after) for c in plan.changes] == [("--page-size", "64", "1")]
    assert (plan.arguments_changed, plan.arguments) == (1, 9)


def test_first_deploy_writes_release_one() -> None:
    """A host that has nothing gets release 1."""
    plan = planned("dflash", release(number="1"), None)
    assert (plan.writes, plan.release, plan.running, plan.nothing) == (True, "1", None, None)


def test_predicted_time_is_the_median_of_this_hosts_loads() -> None:
    """The cost comes from past loads of the algo that served, not from a guess."""
    rows = tuple({"result": "done", "serving": ["1", "dflash"], "load_s": s} for s in (400.0, 500.0, 480.0))
    slow = {"result": "done", "serving": ["1", "ddtree"], "load_s": 9000.0}
    made = release()
    plan = planned("dflash", made, manifest(made), algo="none", records=(*rows, slow))
    assert plan.predicted_s == 480.0


def test_next_id_follows_the_highest_number() -> None:
    """Names that are no numbers do not count, nor does their order."""
    assert next_id(()) == "1"
    assert next_id(("2", "10", "x", "9")) == "11"


def test_supervisor_release_starts_by_a_script() -> None:
    """Where supervisor keeps the server running, each algo has its section and a script that execs the engine."""
    made = render.release(Templates(working_dir=ROOT), LOCAL, SERVER, release_id="1", secrets={})
    script = made.file("dflash.sh")
    assert script is not None
    assert script.content.splitlines()[-1].startswith("exec /opt/venv/bin/python -m engine ")
    assert "'b c'" in script.content
    section = made.file("dflash.conf")
    assert section is not None
    assert "command=/bin/sh /srv/state/chat/releases/1/dflash.sh" in section.content.splitlines()
