"""The inventory's JSON schema for editors and its reference tables, made from fleet/schema*.py and the texts under its fields."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from specctl.fleet import schema, schema_profiles

SCHEMA_ID = "https://example.com/specctl/inventory.schema.json"
MODULES = (schema, schema_profiles)
DIALECT = "https://json-schema.org/draft/2020-12/schema"


Json = dict[str, Any]  # what pydantic itself returns; it leaves this package only as text


def json_schema() -> Json:
    """Return the JSON schema of one inventory file."""
    return {"$schema": DIALECT, "$id": SCHEMA_ID, "title": "specctl inventory", **sections()["InventoryFile"]}


def sections() -> Mapping[str, Json]:
    """Return the schema of each section by its class, the whole file's first; every key with its description."""
    texts = field_texts()
    made = _tidy(schema.InventoryFile.model_json_schema())
    assert isinstance(made, dict)
    found: dict[str, Json] = {"InventoryFile": made, **made["$defs"]}
    for name, section in found.items():
        for key, text in _inherited(texts, name).items():
            if key in section["properties"]:
                section["properties"][key]["description"] = text
    return found


def schema_text() -> str:
    """Return the text of inventory/schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def field_texts() -> Mapping[str, Mapping[str, str]]:
    """Return the text under each field, by the class that it stands in."""
    nodes = [node for module in MODULES for node in ast.parse(inspect.getsource(module)).body]
    return {node.name: dict(_texts_of(node)) for node in nodes if isinstance(node, ast.ClassDef)}


def _texts_of(section: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(section.body, section.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield field.target.id, str(after.value.value)


def _inherited(texts: Mapping[str, Mapping[str, str]], name: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    section = next(vars(module)[name] for module in MODULES if name in vars(module))
    for parent in reversed(section.__mro__):
        found.update(texts.get(parent.__name__, {}))
    return found


def _tidy(value: object, *, named: bool = False) -> object:
    """Drop made-up titles and null defaults; `named` says that the keys are the inventory's own, where "title" could be one."""
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    noise = (
        ()
        if named
        else [key for key in ("title", "default") if key in value and (key == "title" or value[key] is None)]
    )
    kept = {key: item for key, item in value.items() if key not in noise}
    return {key: _tidy(item, named=not named and key in ("properties", "$defs")) for key, item in kept.items()}
