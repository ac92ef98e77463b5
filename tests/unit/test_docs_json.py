"""docs/json.md says of every `--json` output what the code prints: the same fields, and null where null can come."""

from __future__ import annotations

import ast
import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
import typer
from typer.testing import CliRunner

from specctl import errors
from specctl.cli import acting, inventory, lint, render
from specctl.control.live_plan import LivePlan
from specctl.control.mode import Mode
from specctl.control.sight import AgentSight, Decided, GpuSight, Loading, Source
from specctl.control.sight_wire import as_wire
from specctl.errors import InventoryError, Problem, SpecctlError, UsageError
from specctl.fleet import wire
from specctl.fleet.types import Hardware, Limits, Model, Origin, UnitSettings
from specctl.host.lease import Lease
from specctl.ops import lease as leases
from specctl.ops.deploy import Request, Rollout
from specctl.rollout import facts as rollout_facts
from specctl.rollout.guarded import Guard
from specctl.rollout.outcome import Outcome
from specctl.rollout.plan import Change, ChangeKind, Plan
from specctl.rollout.preflight.types import Report
from specctl.rollout.record import Act, Record, Result
from specctl.ui.theme import console
from tests import fakes, sights

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
FIELD = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \|", re.MULTILINE)
LIVE_PLAN = LivePlan(host="gpu1", server="chat", old=Mode("none"), new=Mode("dflash"), starts=Mode("none"))
PLAN = Plan(host="gpu1", server="chat", algo="none", release="1", writes=True, running=None)
FULL_PLAN = replace(
    PLAN,
    running=("1", "none"),
    nothing="why",
    note=True,
    predicted_s=1.0,
    checks=Report(),
    changes=(
        Change(kind=ChangeKind.FLAG, name="--x", before="1", after=None),
        Change(kind=ChangeKind.ENV, name="X", before=None, after="2"),
    ),
)
RECORD = Record(
    act=Act.DEPLOY, result=Result.DONE, server="chat", host="gpu1", who="ops@here", at="2026-11-29T14:02:11+00:00"
)
PAIR = ("1", "none")
FULL_RECORD = replace(
    RECORD, release="1", algo="none", previous=PAIR, serving=PAIR, proof="proven", cause="why", load_s=1.0, weights_bytes=1,
    invocation="i1", specctl="0.1.0", reason="why",
)  # fmt: skip
OUTCOME = Outcome(host="gpu1")
FULL_OUTCOME = Outcome(
    host="gpu1", server="chat", error=UsageError("what"), record=RECORD, plan=PLAN, skipped="the canary failed"
)
GUARD = Guard(phase="gating")
FULL_GUARD = Guard(
    phase="watching", act="deploy", who="ops@here", aim=("2", "none"), back=PAIR, hard_left_s=9.0, reason="why"
)
ERROR = SpecctlError("what")
FULL_ERROR = SpecctlError("what", hint="do", host="gpu1")
HARDWARE = Hardware(name="big")
FULL_HARDWARE = Hardware(
    name="big",
    gpu_model="B300",
    gpu_count=8,
    gpu_memory_bytes=1,
    interconnect="nvlink",
    note="note",
    verify_cliff_tokens=8,
)
MODEL = Model(name="big", path="/big")
FULL_MODEL = Model(name="small", path="/small", size_bytes=1, block_size=8, target="big")
BARE_HOST = replace(fakes.HOST, address=None)
FULL_HOST = replace(fakes.HOST, user="ops", port=22, identity_file="/key", hardware=HARDWARE)
BARE_SERVER = replace(fakes.SERVER, draft=None)
FULL_SERVER = replace(
    fakes.SERVER, tp=8, cuda_home="/cuda", served_name="big", working_dir="/srv", limits=Limits(),
    unit=UnitSettings(user="ops", memory_max="1"),
)  # fmt: skip
ORIGIN = Origin(layer="built in")
FULL_ORIGIN = Origin(layer="defaults", file="inventory.yaml", line=1, column=1)
MANUAL = Lease(
    token=1,
    owner="ops@here",
    reason=None,
    boot="another",
    acquired_s=0.0,
    acquired_wall=9e9,
    ttl_s=None,
    expires_s=None,
)
TIMED = MANUAL._replace(reason="why", acquired_wall=0.0, ttl_s=45.0, expires_s=1.0)


def documented(heading: str) -> Mapping[str, str]:
    """Return the fields of one of the document's tables, each with its type."""
    found = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].partition("<!--")[0]
    assert found, f"docs/json.md has no part {heading}"
    return {name.strip("`"): kind for names, kind in FIELD.findall(found) for name in names.split(", ")}


def hold(heading: str, bare: Mapping[str, object], full: Mapping[str, object]) -> None:
    """Hold an object with nothing known, and with everything, against its table: its fields, and `or null` of those that may be."""
    fields = documented(heading)
    assert set(fields) == set(bare) == set(full)
    assert {name for name, kind in fields.items() if kind.endswith("or null")} == {
        name for name, value in bare.items() if value is None
    }
    assert None not in full.values()
    json.dumps(full, allow_nan=False)


def part(values: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return an object inside another."""
    found = values[name]
    assert isinstance(found, Mapping)
    return found


def _of_status() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield the objects of `specctl status`."""
    bare, full = as_wire(sights.BARE), as_wire(sights.FULL)
    yield "Status", bare, full
    yield "Mode", part(full, "live"), part(full, "live")
    yield "Loading", as_load(Loading(phase="start")), part(full, "loading")
    yield "Figure", _figure(None), _figure(0.4)
    yield "GpuNow", _gpu(GpuSight(index=0, age_s=None, source=Source.FACTS)), _gpu(sights.gpus(1, 1.0)[0])
    yield "AgentNow", part(as_wire(replace(sights.BARE, agent=AgentSight())), "agent"), part(full, "agent")
    decided = part(as_wire(replace(sights.BARE, agent=AgentSight(decision=Decided(text="hold")))), "agent")
    yield "Decided", part(decided, "decision"), part(part(full, "agent"), "decision")
    bare_lease = part(as_wire(replace(sights.BARE, lease=rollout_facts.Lease(owner="ann"))), "lease")
    yield "Holder", bare_lease, part(full, "lease")


def _figure(age_s: float | None) -> Mapping[str, object]:
    sight = replace(sights.BARE, running=sights.whole(1, age_s))
    return part(part(as_wire(sight), "figures"), "running")


def _gpu(gpu: GpuSight) -> Mapping[str, object]:
    rows = as_wire(replace(sights.BARE, gpus=(gpu,)))["gpus"]
    assert isinstance(rows, list)
    found = rows[0]
    assert isinstance(found, Mapping)
    return found


def as_load(load: Loading) -> Mapping[str, object]:
    """Return a load as status prints it."""
    return part(as_wire(replace(sights.BARE, loading=load)), "loading")


def pairs() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield each documented object as it is with nothing known and with everything."""
    yield "Plan", PLAN.as_wire(), FULL_PLAN.as_wire()
    yield "LivePlan", LIVE_PLAN.as_wire(), replace(LIVE_PLAN, tell={"ddtree_budget": 7}).as_wire()
    yield "Outcome", OUTCOME.as_wire(), FULL_OUTCOME.as_wire()
    yield "Record", RECORD.as_wire(), FULL_RECORD.as_wire()
    yield from _of_status()
    yield "Guard", GUARD.as_wire(), FULL_GUARD.as_wire()
    yield "Lease", MANUAL.as_wire(), TIMED.as_wire()
    yield "Hardware", part(wire.host_values(FULL_HOST), "hardware"), _full_hardware()
    yield "Connect", part(wire.host_values(BARE_HOST), "connect"), part(wire.host_values(FULL_HOST), "connect")
    yield "Model", wire.model_values(MODEL), wire.model_values(FULL_MODEL)
    yield "Limits", part(wire.server_values(BARE_SERVER), "limits"), part(wire.server_values(FULL_SERVER), "limits")
    yield "Unit", part(wire.server_values(BARE_SERVER), "unit"), part(wire.server_values(FULL_SERVER), "unit")
    yield "Origin", _origin(ORIGIN), _origin(FULL_ORIGIN)


def _full_hardware() -> Mapping[str, object]:
    return part(wire.host_values(replace(FULL_HOST, hardware=FULL_HARDWARE)), "hardware")


def _origin(origin: Origin) -> Mapping[str, object]:
    return part(wire.origin_values({"port": origin}), "port")


@pytest.mark.parametrize(("heading", "bare", "full"), [pytest.param(*row, id=row[0]) for row in pairs()])
def test_an_objects_fields_are_documented(heading: str, bare: Mapping[str, object], full: Mapping[str, object]) -> None:
    """The table has the object's fields, and says `or null` of exactly those that can be null."""
    hold(heading, bare, full)


def test_a_changes_fields_are_documented() -> None:
    """A change has two nullable ends, one of them at a time."""
    rows = FULL_PLAN.as_wire()["changes"]
    assert isinstance(rows, list)
    fields = documented("Change")
    assert all(set(row) == set(fields) for row in rows)
    assert {name for row in rows for name, value in row.items() if value is None} == {
        name for name, kind in fields.items() if kind.endswith("or null")
    }
    assert all(f"`{kind.value}`" in TEXT.partition("\n## Change\n")[2] for kind in ChangeKind)


def test_errors_and_problems_are_documented() -> None:
    """An error's fields, an inventory's problems, and of every kind its exit code."""
    fields = documented("Error")
    assert set(fields) == {*ERROR.as_json(), "problems"}
    assert {name for name, kind in fields.items() if kind.endswith("or null")} == {
        name for name, value in ERROR.as_json().items() if value is None
    }
    assert None not in FULL_ERROR.as_json().values()
    problem = Problem(file="a.yaml", line=None, column=None, path="", message="what")
    rows = InventoryError([problem]).as_json()["problems"]
    assert isinstance(rows, list)
    nullable = {name for name, kind in documented("Problem").items() if kind.endswith("or null")}
    assert (set(documented("Problem")), nullable) == (
        set(rows[0]),
        {name for name, value in rows[0].items() if value is None},
    )


def _subclasses(kind: type[SpecctlError]) -> Iterator[type[SpecctlError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def between(name: str) -> str:
    """Return the document's text between two marks."""
    return TEXT.partition(f"<!-- {name} -->")[2].partition(f"<!-- end {name} -->")[0]


def test_every_kind_of_error_has_its_exit_code() -> None:
    """The table of kinds is the hierarchy of errors, in the order of their codes."""
    rows = [
        (kind, int(code)) for kind, code in re.findall(r"^\| `([\w-]+)` \| (\d+) \|$", between("kinds"), re.MULTILINE)
    ]
    ours = {each.kind: each.exit_code for each in _subclasses(SpecctlError) if each.__module__ == "specctl.errors"}
    assert dict(rows) == ours
    assert [code for _, code in rows] == sorted(code for _, code in rows)


def test_every_exit_code_is_documented() -> None:
    """The table of exit codes has every code that specctl can end with, and no other."""
    rows = [int(code) for code in re.findall(r"^\| (\d+) \|", between("exit codes"), re.MULTILINE)]
    assert rows == sorted(value for name, value in vars(errors).items() if name.startswith("EXIT_"))


def test_every_result_is_documented() -> None:
    """The table of results has each one that a record can hold."""
    rows = re.findall(r"^\| `([^`]+)` \|", between("results"), re.MULTILINE)
    assert rows == [result.value for result in Result]
    assert all(f"`{act.value}`" in TEXT.partition("\n## Record\n")[2].partition("\n## ")[0] for act in Act)


def printed(capsys: pytest.CaptureFixture[str]) -> Mapping[str, object]:
    """Return the JSON document that stands on stdout."""
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, Mapping)
    return found


def told(command: str) -> set[str]:
    """Return the keys of the result that the table of commands gives to one."""
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| {command}")]
    return set(re.findall(r'"(\w+)":', row))


def test_results_of_acts_have_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """An act, its dry run and a health check print the objects that the table of commands names."""
    acting.finish([OUTCOME], acting.Manner(as_json=True), shown=False)
    assert set(printed(capsys)) == told("`deploy`, `switch`") == told("`start`, `stop`")
    rollout = Rollout(
        request=Request(act=Act.DEPLOY),
        selected=(),
        prepared=(),
        failed=(FULL_OUTCOME,),
        interrupted=threading.Event(),
    )
    acting.show_plan(rollout, acting.Manner(as_json=True, dry_run=True), console())
    assert set(printed(capsys)) == {"plans", "failed"}
    acting.finish_health({("gpu1", "chat"): FULL_ERROR}, as_json=True)
    health = printed(capsys)
    rows = health["health"]
    assert isinstance(rows, list)
    assert (set(health), set(rows[0])) == (told("`health`"), set(documented("Health")))


def test_locks_have_the_documented_fields(tmp_path: Path) -> None:
    """A free server, a locked one and one that cannot be asked, over a real session on this machine."""
    here = replace(fakes.LOCAL, python=sys.executable, state_dir=PurePosixPath(tmp_path))
    absent = replace(here, name="absent", python="/nonexistent/python")
    (taken,) = leases.acquire([(here, fakes.SERVER)], "why", steal=False)
    (lost,) = leases.statuses([(absent, fakes.SERVER)])
    (free,) = leases.release([(here, fakes.SERVER)])
    fields = set(documented("Lock"))
    assert set(taken) == set(free) == fields - {"exit_code"}
    assert (free["lease"], lost["lease"], set(lost)) == (None, None, fields)
    assert isinstance(taken["lease"], dict)
    assert set(taken["lease"]) == set(documented("Lease"))


def run(*words: str) -> Mapping[str, object]:
    """Run a command that needs no host and return the JSON document that it prints."""
    app = typer.Typer()
    app.add_typer(inventory.app, name="inventory")
    render.mount(app)
    lint.mount(app)
    result = CliRunner().invoke(app, [*words, "--json"], standalone_mode=False)
    assert result.exception is None, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, Mapping)
    return found


def first(found: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the first object of a list."""
    rows = found[key]
    assert isinstance(rows, list)
    assert isinstance(rows[0], Mapping)
    return rows[0]


def test_inventory_and_render_have_the_documented_fields() -> None:
    """Hosts, servers and launches of the field's inventory, as the commands print them."""
    field = str(ROOT / "inventory" / "field.yaml")
    listed = first(run("inventory", "list", "-i", field), "hosts")
    assert set(listed) == set(documented("Host")) - {"provenance"}
    assert set(first(listed, "servers")) == set(documented("Server")) - {"provenance"}
    shown = first(run("inventory", "show", "-i", field, "--host", "ct200"), "hosts")
    assert (set(shown), set(first(shown, "servers"))) == (set(documented("Host")), set(documented("Server")))
    launch = first(run("render", "-i", field, "--host", "ct200"), "launches")
    assert set(launch) == set(documented("Launch"))


def test_findings_and_rules_have_the_documented_fields() -> None:
    """What the linter says of the field's inventory, and the list of its rules."""
    found = run("lint", "-i", str(ROOT / "inventory" / "field.yaml"))
    finding = first(found, "findings")
    assert (set(found), set(finding)) == (told("`lint` "), set(documented("Finding")))
    assert set(part(finding, "origin")) == set(documented("Origin"))
    rules = run("lint", "--rules")
    assert (set(rules), set(first(rules, "rules"))) == (told("`lint --rules`"), set(documented("Rule")))


def test_nullable_fields_of_hosts_and_servers_are_documented() -> None:
    """What an inventory may leave out is null, and said to be."""
    for heading, values in (("Host", wire.host_values(BARE_HOST)), ("Server", wire.server_values(BARE_SERVER))):
        nullable = {name for name, kind in documented(heading).items() if kind.endswith("or null")}
        assert nullable == {name for name, value in values.items() if value is None}


def test_a_check_has_the_documented_fields(tmp_path: Path) -> None:
    """Sound and unsound, a check's fields are in its table."""
    fields = set(documented("Check"))
    sound = run("inventory", "check", "-i", str(ROOT / "inventory" / "field.yaml"))
    (tmp_path / "bad.yaml").write_text("servers: {a: {enginee: lab}}\n", encoding="utf-8")
    unsound = run("inventory", "check", "-i", str(tmp_path / "bad.yaml"))
    assert (sound["sound"], unsound["sound"]) == (True, False)
    assert set(sound) | set(unsound) == fields
    assert set(first(unsound, "problems")) == set(documented("Problem"))


# What a verdict's story is told in, beside the words that ops itself says.
STORY = {"dead", "failed", "stalled", "timed-out", "because", "log", "remedy"}


def said(method: str) -> set[str]:
    """Return the names that ops gives to what it reports, read from its source."""
    found = set()
    for path in (ROOT / "specctl" / "ops").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
                continue
            by_turn = method == "final" and ast.unparse(node.func.value) == "turn"
            name = node.args[0 if by_turn else 1]
            if isinstance(name, ast.Constant):
                found.add(str(name.value))
    return found


def test_the_names_of_events_are_documented() -> None:
    """docs/json-events.md has each name of a step and of something that stays said, and no other."""
    text = (ROOT / "docs" / "json-events.md").read_text(encoding="utf-8")
    finals = text.partition("\n## `final`")[2]
    rows = re.findall(r"^\| (`[^|]+) \|", finals, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)} == said("final") | STORY
    (names,) = re.findall(r"^Names are (.*)\.$", text, re.MULTILINE)
    assert set(re.split(r", | and ", names)) == said("step")
