"""The lab's errors: a model folder that cannot be served, told in one sentence."""

from __future__ import annotations


class ModelError(ValueError):
    """A model's files are missing, corrupt or do not fit together."""
