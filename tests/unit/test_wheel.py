"""The wheel: it holds all that specctl needs, asks for no more than it must, and works where there is no checkout."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = frozenset({"numpy", "safetensors", "sglang", "starlette", "tokenizers", "torch", "uvicorn"})
BASE = frozenset(
    {"fabric", "jinja2", "matplotlib", "paramiko", "pydantic", "pyyaml", "rich", "supervisor", "textual", "typer"}
)
EXAMPLE = "specctl/_shipped/inventory/example.yaml"
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
# What no import names, so that only a look into the wheel tells whether it is there.
CONTENT = (
    EXAMPLE,
    "specctl/_shipped/inventory/schema.json",
    "specctl/_shipped/requirements/agent.lock",
    "specctl/engines/profiles/lab.yaml",
    "sglang_ddtree/dist-info/METADATA",
    "sglang_ddtree/dist-info/entry_points.txt",
    "specctl/engines/profiles/sglang-0.5.23+ddtree.yaml",
    "specctl/engines/profiles/sglang-0.5.23.yaml",
    "specctl/engines/profiles/sglang-pr29907.yaml",
    "specctl/host/boot.py",
    "specctl/lab/models/dflash/model.safetensors",
    "specctl/lab/models/target/model.safetensors",
    "specctl/lab/models/target/tokenizer.json",
    "specctl/ops/starter.yaml",
    "specctl/ops/starter_lab.yaml",
    "specctl/py.typed",
    "specctl_agent/py.typed",
)
FOREIGN_SUFFIXES = (".pyc", ".log", ".pt", ".tmp")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """Build the wheel by its backend alone, which asks no index for anything."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return zipfile.Path(folder / done.stdout.split()[-1])


@pytest.fixture(scope="module")
def names(wheel: zipfile.Path) -> frozenset[str]:
    """Name every file in the wheel."""
    return frozenset(wheel.root.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.Path, names: frozenset[str]) -> Message:
    """Read the wheel's METADATA."""
    (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    return email.message_from_string((wheel / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def unpacked(wheel: zipfile.Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel to a folder far from the checkout."""
    folder = tmp_path_factory.mktemp("unpacked")
    wheel.root.extractall(folder)
    return folder


def specctl(unpacked: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the unpacked wheel's specctl, which finds its dependencies in this environment and itself in the wheel."""
    program = f"import sys; sys.path.insert(0, {str(unpacked)!r}); from specctl.cli.main import main; main()"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPECCTL_", "PYTHONPATH"))}
    argv = [sys.executable, "-P", "-c", program, *words]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_every_module_and_datum_is_there(names: frozenset[str]) -> None:
    """The wheel holds each source of the package, the templates, the example, schema, profiles, starters, models and py.typed."""
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "specctl").rglob("*.py")}
    templates = {f"specctl/_shipped/templates/{path.name}" for path in (ROOT / "templates").glob("*.j2")}
    assert sources | templates | set(CONTENT) <= names
    assert len(templates) > 1


def test_nothing_else_is_there(names: frozenset[str]) -> None:
    """No test, benchmark, cache or checkpoint travels with the wheel: the command, the agent, the plugin and their metadata."""
    assert {name.split("/")[0].partition("-")[0] for name in names} == {
        "sglang_ddtree",
        "specctl",
        "specctl_agent",
        "specctl_fleet",
    }
    assert not [name for name in names if name.endswith(FOREIGN_SUFFIXES)]


def test_licence_is_named_and_carried(metadata: Message, names: frozenset[str]) -> None:
    """The licence is an SPDX expression, and its text is in the wheel."""
    assert metadata["License-Expression"] == "Apache-2.0"
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]


def test_base_install_is_light(metadata: Message) -> None:
    """Without an extra, neither torch nor sglang nor what the lab engine serves with is asked for."""
    asked = metadata.get_all("Requires-Dist", [])
    base = {requirement_name(line) for line in asked if "extra ==" not in line}
    assert base == BASE
    assert not base & HEAVY


def test_extras_exist(metadata: Message) -> None:
    """The extras are those that the documents name, and only `lab-train` brings torch, only `engine` sglang."""
    assert set(metadata.get_all("Provides-Extra", [])) == {"agent", "dev", "engine", "lab", "lab-train"}
    asked = metadata.get_all("Requires-Dist", [])
    of = {
        extra: {requirement_name(line) for line in asked if line.endswith(f"extra == '{extra}'")}
        for extra in ("agent", "engine", "lab", "lab-train")
    }
    assert of["agent"] == {"nvidia-ml-py", "psutil"}
    assert of["engine"] == {"sglang"}
    assert "numpy" in of["lab"]
    assert "torch" not in of["lab"]
    assert "torch" in of["lab-train"]


def requirement_name(line: str) -> str:
    """Return the distribution that a Requires-Dist line asks for."""
    found = re.match(r"[\w.-]+", line)
    assert found, line
    return found[0].lower()


def test_wheel_runs_without_the_checkout(unpacked: Path, tmp_path: Path) -> None:
    """The version, a rendered unit and the starter come from the wheel's own files."""
    version = specctl(unpacked, tmp_path, "--version")
    assert (version.returncode, version.stdout) == (0, f"specctl {version_of(unpacked)}\n"), version.stderr

    example = str(unpacked / EXAMPLE)
    rendered = specctl(unpacked, tmp_path, "render", "-i", example, "--host", "ct200", "--algo", "dflash")
    assert rendered.returncode == 0, rendered.stderr
    assert "ExecStart=" in rendered.stdout
    assert str(ROOT) not in rendered.stdout

    assert specctl(unpacked, tmp_path, "init", "--lab").returncode == 0
    assert f"{unpacked}/specctl/lab/models/target" in (tmp_path / "inventory.yaml").read_text()
    checked = specctl(unpacked, tmp_path, "inventory", "check")
    assert checked.returncode == 0, checked.stderr


def version_of(unpacked: Path) -> str:
    """Return the version in the wheel's metadata folder's name."""
    (found,) = unpacked.glob("specctl_fleet-*.dist-info")
    return found.name.removeprefix("specctl_fleet-").removesuffix(".dist-info")
