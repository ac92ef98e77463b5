"""No speculation: the target decodes one token a step."""

from __future__ import annotations

from specctl.algos.types import Algo, Shape

ALGO = Algo(name="none", shape=Shape.NONE, summary="autoregressive decoding without a draft")
