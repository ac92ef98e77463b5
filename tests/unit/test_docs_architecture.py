"""docs/architecture.md and docs/dependencies.md say of templates, packages, variables and libraries what the code says."""

from __future__ import annotations

import ast
import fnmatch
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from specctl.fleet.types import UnitSettings
from specctl.ops.lease import LEASE_S
from specctl.rollout import agent_unit, unit
from specctl.rollout import launch as launches
from specctl.rollout.smoke import NEEDED_STEPS
from tests import fakes

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LIBRARIES = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CODE = re.compile(r"`([^`]+)`")
# The import name of a distribution, where it is another one.
IMPORTED_AS = {"nvidia-ml-py": "pynvml", "pyyaml": "yaml"}


def between(text: str, name: str) -> str:
    """Return a text between two marks."""
    found = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- end {name} -->")[0]
    assert found, name
    return found


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of a table's rows, its head left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def given() -> Mapping[str, set[str]]:
    """Return what each template is given, by its name."""
    server = replace(fakes.with_secrets("api_key", "token"), unit=UnitSettings(user="ops"))
    launch = launches.build(fakes.HOST, server, "dflash")
    systemd = unit.systemd_values(fakes.HOST, server, launch, "1")
    program = unit.supervisor_values(fakes.LOCAL, server, launch, "1")
    script = unit.script_values(fakes.LOCAL, server, launch, "1")
    secret = {"engine.yaml.j2": {"lines"}, "secrets.env.j2": {"lines"}}
    agent = set(agent_unit.values(host=fakes.HOST, prefix="/opt/specctl", python="/usr/bin/python3"))
    agents = {f"{name}.j2": agent for name in agent_unit.UNITS}
    return {
        "server.service.j2": set(systemd),
        "server.conf.j2": set(program),
        "launch.sh.j2": set(script),
        **secret,
        **agents,
    }


def test_what_templates_are_given_is_documented() -> None:
    """The table has each shipped template with exactly the names that it may use."""
    told = {CODE.findall(name)[0]: set(CODE.findall(names)) for name, _, names in rows(between(TEXT, "templates"))}
    assert told == given()
    assert set(told) == {path.name for path in (ROOT / "templates").iterdir()}


def test_every_package_has_its_line() -> None:
    """The structure has a line for each package and folder of the code, and none for one that is not there."""
    part = TEXT.partition("\n## Structure\n")[2].partition("\n## ")[0]
    told = {name for cells in rows(part) for name in CODE.findall(cells[0]) if name.endswith("/")}
    packages = {f"specctl/{path.parent.name}/" for path in (ROOT / "specctl").glob("*/__init__.py")}
    assert {name for name in told if name.startswith("specctl/")} == packages
    assert [name for name in told if not (ROOT / name).is_dir()] == []


def test_every_variable_is_documented() -> None:
    """Each variable of our own that the code reads is on this page or on the lab's."""
    lab = (ROOT / "docs" / "lab-server.md").read_text(encoding="utf-8")
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "specctl").rglob("*.py"))
    found = {name for source in sources for name in re.findall(r"\"(SPECCTL_[A-Z_]*[A-Z])\"", source)}
    assert {"SPECCTL_INVENTORY", "SPECCTL_SSH_CONFIG"} <= found
    assert [name for name in sorted(found) if f"`{name}`" not in TEXT + lab and f"`{name}=1`" not in lab] == []


def test_figures_are_current() -> None:
    """The figures that this page gives are those of the code."""
    assert f"An act's lease lasts {LEASE_S:.0f} s" in TEXT
    assert f"at least {NEEDED_STEPS} verify steps" in TEXT
    assert f"{unit.START_LIMIT_BURST} starts within {unit.START_LIMIT_LOADS} × `limits.load`" in TEXT


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """Return the modules of specctl and its agent that import each top-level package."""
    found: dict[str, set[str]] = {}
    files = [(ROOT, path) for path in (ROOT / "specctl").rglob("*.py")]
    files += [(ROOT / "agents", path) for path in (ROOT / "agents").rglob("*.py")]
    for root, path in files:
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in names:
                found.setdefault(name.partition(".")[0], set()).add(module)
    return {name: frozenset(modules) for name, modules in found.items()}


def required(extra: str) -> set[str]:
    """Return the distributions that an extra (or the command itself) asks for, without specctl's own."""
    project = PROJECT["project"]
    lines = project["dependencies"] if extra == "runtime" else project["optional-dependencies"][extra]
    names = {re.split(r"[\[<>=~! ]", line, maxsplit=1)[0] for line in lines}
    return names - {"specctl-fleet"}


@pytest.mark.parametrize("extra", ["runtime", "agent", "lab", "lab-train", "engine", "dev"])
def test_every_dependency_is_documented(extra: str) -> None:
    """Each table has exactly what pyproject.toml asks for, in its order, each with a licence and a reason."""
    table = list(rows(between(LIBRARIES, extra)))
    assert {cells[0] for cells in table} == required(extra)
    assert all(cells[1] and cells[3 if extra != "dev" else 2] for cells in table)


@pytest.mark.parametrize("extra", ["runtime", "agent", "lab", "lab-train", "engine"])
def test_libraries_are_imported_where_the_page_says(extra: str) -> None:
    """A library is imported by the modules named, by each of them, and by no other."""
    for cells in rows(between(LIBRARIES, extra)):
        patterns = CODE.findall(cells[2])
        modules = imports().get(IMPORTED_AS.get(cells[0], cells[0]), frozenset())
        strangers = [name for name in modules if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
        idle = [pattern for pattern in patterns if not fnmatch.filter(modules, pattern)]
        assert (cells[0], strangers, idle) == (cells[0], [], [])


def test_paramiko_is_imported_where_the_page_says() -> None:
    """The library behind Fabric has one importer too."""
    assert imports()["paramiko"] == {"specctl.adapters.ssh_link"}
    assert "imported by `specctl.adapters.ssh_link` alone" in LIBRARIES
