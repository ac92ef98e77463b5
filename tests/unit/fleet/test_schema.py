"""inventory/schema.json is current, true and complete; so is the reference in docs/inventory.md."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from specctl.fleet import schema_json, schema_reference
from specctl.fleet.schema import InventoryFile

ROOT = Path(__file__).parents[3]
PROFILES = sorted((ROOT / "specctl" / "engines" / "profiles").glob("*.yaml"))
FILES = [
    ROOT / "inventory" / "example.yaml",
    ROOT / "inventory" / "field.yaml",
    ROOT / "specctl" / "ops" / "starter.yaml",
    *PROFILES,
]


def validator() -> jsonschema.Draft202012Validator:
    """Return a validator of the shipped schema."""
    shipped = json.loads((ROOT / "inventory" / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(shipped)
    return jsonschema.Draft202012Validator(shipped)


def test_the_shipped_schema_is_current() -> None:
    """inventory/schema.json is what `python -m specctl.fleet.schema` prints."""
    shipped = (ROOT / "inventory" / "schema.json").read_text(encoding="utf-8")
    assert shipped == schema_json.schema_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_ships_validates(file: Path) -> None:
    """Every inventory and profile that ships is valid by the schema that editors use."""
    assert list(validator().iter_errors(yaml.safe_load(file.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": {}},
        {"hosts": {"a": {"sudo": True}}},
        {"defaults": {"launch": {"port": 0}}},
        {"defaults": {"launch": {"limits": {"load": "20"}}}},
        {"defaults": {"launch": {"secrets": {"api_key": "sk-secret"}}}},
        {"defaults": {"launch": {"gpus": "all"}}},
        {"defaults": {"launch": {"venv": "relative"}}},
        {"servers": {"a": {"engine": "lab"}}},
        {"models": {"a": {"path": "/a", "size": 590}}},
    ],
)
def test_editors_see_what_is_wrong(wrong: dict[str, object]) -> None:
    """The schema refuses what specctl refuses, as far as one value can tell."""
    assert list(validator().iter_errors(wrong))
    with pytest.raises(ValueError, match="validation error"):
        InventoryFile.model_validate(wrong)


def test_every_key_has_a_description() -> None:
    """An editor explains every key of every section."""
    lacking = [
        f"{name}.{key}"
        for name, section in schema_json.sections().items()
        for key, value in section["properties"].items()
        if not value.get("description")
    ]
    assert lacking == []


def test_the_reference_is_current() -> None:
    """docs/inventory.md holds the tables that `python -m specctl.fleet.schema_reference` prints."""
    text = (ROOT / "docs" / "inventory.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("<!-- keys: python -m specctl.fleet.schema_reference -->\n")
    tables, end, _ = rest.partition("<!-- /keys -->")
    assert end
    assert tables.strip() == schema_reference.reference().strip()
