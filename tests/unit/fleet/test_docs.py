"""Every example of docs/inventory.md is a sound inventory, or prints what the document says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specctl.adapters.inventory_files import BuiltInProfiles, read_bytes
from specctl.cli.inventory import app
from specctl.fleet.resolve import resolve

TEXT = (Path(__file__).parents[3] / "docs" / "inventory.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def test_the_document_has_examples() -> None:
    """The examples are found."""
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_sound(example: str) -> None:
    """What the document shows is an inventory without problems."""
    assert resolve([read_bytes("example.yaml", example.encode())], BuiltInProfiles()).fleet.files == ("example.yaml",)


def test_the_shown_provenance_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`inventory show --provenance` of the layers example prints the document's lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (example,) = [text for text in EXAMPLES if text.startswith("# layers.yaml")]
    Path("layers.yaml").write_text(example, encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    result = CliRunner().invoke(app, ["show", "-i", "layers.yaml", "--host", "gpu1", "--provenance"])
    printed = [" ".join(line.split()) for line in result.output.splitlines()]
    assert [" ".join(line.split()) for line in shown.splitlines()] == [
        line for line in printed if line.startswith(("options", "env"))
    ]
