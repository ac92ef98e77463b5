"""The tables of docs/inventory.md: every key of the inventory, what it takes and what it means, made from the schema.

`python -m specctl.fleet.schema_reference` prints them; a test holds the document to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from specctl.fleet import schema_json, schema_types, units

# The order of docs/inventory.md: from what people write most to what they write once.
_TABLES: Mapping[str, str] = {
    "InventoryFile": "The file",
    "HostSection": "hosts.NAME",
    "ConnectSection": "connect",
    "GroupSection": "groups.NAME",
    "SharedSection": "defaults",
    "ServerSection": "servers.NAME",
    "LaunchSection": "launch",
    "LimitsSection": "limits",
    "AgentSection": "agent",
    "GatewaySection": "agent.gateway",
    "HooksSection": "agent.hooks",
    "UnitSection": "unit",
    "SecretsSection": "secrets",
    "ModelSection": "models.NAME",
    "HardwareSection": "hardware.NAME",
    "GpusSection": "hardware.NAME.gpus",
    "ProfileSection": "engine_profiles.NAME",
    "LiveTableSection": "engine_profiles.NAME.live_table",
    "AlgoSection": "engine_profiles.NAME.algos.ALGO",
    "EvidenceSection": "engine_profiles.NAME.algos.ALGO.live_proof",
}
_KINDS: Mapping[str, str] = {
    schema_types.PATH_PATTERN: "absolute path",
    schema_types.LINE_PATTERN: "text",
    schema_types.NAME_PATTERN: "text",
    schema_types.WORD_PATTERN: "word",
    schema_types.SECRET_PATTERN: "reference",
    schema_types.URL_PATTERN: "address",
    units.DURATION_PATTERN: "duration",
    units.SIZE_PATTERN: "size",
}


_WHOLE_KINDS = (
    (schema_types.FLAG_SCHEMA, "flag value"),
    (schema_types.GPU_SCHEMA, "GPUs"),
    (schema_types.TEXTS_SCHEMA, "text or list of text"),
    (schema_types.ARGV_SCHEMA, "list of text"),
    (schema_types.BOUNDS_SCHEMA, "[lowest, highest]"),
)


def reference() -> str:
    """Return the tables of docs/inventory.md: every key of every section, what it takes and what it means."""
    made = schema_json.sections()
    parts = []
    for name, title in _TABLES.items():
        section = made[name]
        rows = [
            f"| `{key}`{' (required)' if key in section.get('required', ()) else ''} | {_kind(value)} | {value['description']} |"
            for key, value in section["properties"].items()
            if name != "ServerSection" or key not in made["LaunchSection"]["properties"]
        ]
        inline = "Every key of [launch](#launch) may stand here too.\n\n" if name == "ServerSection" else ""
        parts.append(f"### {title}\n\n{inline}| key | takes | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _kind(value: Mapping[str, object]) -> str:
    """Say what a property takes."""
    for known, words in _WHOLE_KINDS:
        if value.get("anyOf") == known["anyOf"]:
            return words
    choices = value.get("anyOf")
    if isinstance(choices, list):
        return " or ".join(dict.fromkeys(_kind(choice) for choice in choices if choice != {"type": "null"}))
    if "enum" in value:
        return " or ".join(f"`{choice}`" for choice in _listed(value["enum"]))
    if "$ref" in value:
        return _link(str(value["$ref"]).rpartition("/")[2])
    below = value.get("additionalProperties")
    if isinstance(below, dict):
        return f"mapping of {_kind(below)}"
    if value.get("type") == "array":
        items = value.get("items")
        return f"list of {_kind(items)}" if isinstance(items, dict) else "list"
    if value.get("type") == "integer":
        low, high = value.get("minimum"), value.get("maximum")
        return "whole number" if low is None else f"{low} to {high}" if high is not None else f"{low} or more"
    return _KINDS.get(str(value.get("pattern")), _scalar(value))


def _scalar(value: Mapping[str, object]) -> str:
    words = {"string": "text", "number": "number", "boolean": "true, false"}
    return " or ".join(words[kind] for kind in _listed(value.get("type")) if kind in words)


def _listed(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _link(section: str) -> str:
    title = _TABLES[section]
    anchor = title.lower().replace(".", "").replace(" ", "-")
    return f"[{title}](#{anchor})"


if __name__ == "__main__":
    print(reference(), end="")
