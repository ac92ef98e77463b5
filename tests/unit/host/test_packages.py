"""Versions of an interpreter's packages, read from its folders."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specctl.host import packages


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment as venv lays it out, with a base installation that its interpreter links to."""
    base, made = tmp_path / "base", tmp_path / "venv"
    for prefix in (base, made):
        (prefix / "bin").mkdir(parents=True)
        (prefix / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (base / "bin" / "python3.12").write_text("")
    (made / "bin" / "python").symlink_to("../../base/bin/python3.12")
    (made / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = false\n")
    _install(base, "torch", "2.1")
    _install(made, "sglang", "0.5.23")
    _install(made, "Flashinfer_Python", "0.7.2")
    return made


def _install(prefix: Path, name: str, version: str, record: str = "a,b,c\n") -> Path:
    folder = prefix / "lib" / "python3.12" / "site-packages" / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "RECORD").write_text(record)
    return folder


def _versions(python: Path, *names: str) -> dict[str, str | None]:
    return {name: found.version if found else None for name, found in packages.versions(str(python), names).items()}


def test_names_are_compared_as_registries_do(venv: Path) -> None:
    """Case, dots, dashes and underscores do not matter; what is missing is None; the base's packages are not the venv's."""
    found = _versions(venv / "bin" / "python", "sglang", "flashinfer.python", "torch")
    assert found == {"sglang": "0.5.23", "flashinfer.python": "0.7.2", "torch": None}


def test_system_packages_count_where_the_environment_includes_them(venv: Path) -> None:
    """include-system-site-packages brings the base's packages in, behind its own."""
    config = venv / "pyvenv.cfg"
    config.write_text(config.read_text().replace("false", "true"))
    _install(venv.parent / "base", "sglang", "0.4")
    assert _versions(venv / "bin" / "python", "sglang", "torch") == {"sglang": "0.5.23", "torch": "2.1"}


def test_a_link_to_an_environments_python_is_followed(venv: Path, tmp_path: Path) -> None:
    """An interpreter named by a link elsewhere is that environment's; one by one, so as not to pass it by."""
    link = tmp_path / "python-of-the-engine"
    link.symlink_to(venv / "bin" / "python")
    assert _versions(link, "sglang") == {"sglang": "0.5.23"}


def test_the_digest_tells_builds_of_one_version_apart(venv: Path) -> None:
    """Two builds of one version differ by their list of files or by where they came from."""
    python = str(venv / "bin" / "python")
    first = packages.versions(python, ["sglang"])["sglang"]
    folder = venv / "lib" / "python3.12" / "site-packages" / "sglang-0.5.23.dist-info"
    (folder / "direct_url.json").write_text('{"url": "https://example.org/fork"}')
    second = packages.versions(python, ["sglang"])["sglang"]
    assert first is not None
    assert second is not None
    assert first.version == second.version
    assert first.digest != second.digest


def test_an_interpreter_that_is_not_there_has_none(tmp_path: Path) -> None:
    """Nothing is found for a path that leads nowhere, without an error."""
    assert _versions(tmp_path / "bin" / "python", "sglang") == {"sglang": None}


def test_this_interpreters_own_packages_are_found() -> None:
    """The real thing: the environment that runs this test."""
    assert _versions(Path(sys.executable), "pytest") == {"pytest": pytest.__version__}
