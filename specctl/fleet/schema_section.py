"""A section of the inventory in pydantic: what every mapping of it has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of the inventory: unknown keys are refused and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    def said(self) -> dict[str, object]:
        """Return what was said, and only that, as plain mappings; model_dump would first build a serializer of every section."""
        return {name: _plain(getattr(self, name)) for name in type(self).model_fields if name in self.model_fields_set}


def _plain(value: object) -> object:
    if isinstance(value, Section):
        return value.said()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
