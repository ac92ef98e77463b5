"""Whether the real engine's environment is whole, told without running any of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sglang import environment

PACKAGES = "lib/python3.11/site-packages"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder that is named as the environment; it does not exist yet."""
    found = tmp_path / "venv"
    monkeypatch.setenv(environment.VARIABLE, str(found))
    return found


def make(path: Path) -> None:
    """Make an empty file and the folders to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_absent_environment_says_how_to_make_it(folder: Path) -> None:
    """Without an environment the reason names the folder, the command and the variable."""
    reason = environment.missing()
    assert reason is not None
    assert [word in reason for word in (str(folder), "make sglang-env", environment.VARIABLE)] == [True] * 3


def test_other_version_is_refused(folder: Path) -> None:
    """An environment with another SGLang is not the engine that the recordings are of."""
    make(folder / "bin" / "python")
    make(folder / PACKAGES / "sglang-0.5.22.dist-info" / "METADATA")
    assert (
        environment.missing()
        == f"{folder} has no SGLang {environment.VERSION}: remove the folder and run `make sglang-env`"
    )


def test_models_are_the_last_to_come(folder: Path) -> None:
    """An environment whose making was interrupted lacks its models, and one that has them is whole."""
    make(folder / "bin" / "python")
    make(folder / PACKAGES / f"sglang-{environment.VERSION}.dist-info" / "METADATA")
    assert environment.missing() == f"{folder} has no models: run `make sglang-env`"
    make(environment.models() / "target" / "config.json")
    assert environment.missing() is None


def test_variable_names_the_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The variable wins over the default, which lies in the user's cache."""
    assert environment.venv() == folder
    monkeypatch.delenv(environment.VARIABLE)
    assert environment.venv() == Path.home() / ".cache" / "specctl-sglang" / "venv"


def test_folder_that_a_unit_does_not_see_is_refused() -> None:
    """Units run with PrivateTmp, so that an environment below /tmp could not be started."""
    assert environment.hidden(Path("/opt/venv"), Path("/tmp/venv")) == (
        "a unit has a /tmp of its own and does not see /tmp/venv: move it elsewhere"
    )
    assert environment.hidden(Path("/opt/venv"), Path("/tmpfs/venv")) is None
