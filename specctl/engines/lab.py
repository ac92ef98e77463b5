"""The lab engine: specctl's own small speculative server, which speaks SGLang's dialect (docs/lab-engine.md)."""

from __future__ import annotations

from specctl.engines._sglang_log import GRAMMAR
from specctl.engines._sglang_metrics import METRICS
from specctl.engines.types import Engine

PROBE = """
import json, sys
answer = {"version": None, "knows": {}, "error": None}
try:
    from specctl.lab.serve.dialect import ALGORITHMS
    from importlib.metadata import PackageNotFoundError, version
    try:
        answer["version"] = version("specctl-fleet")
    except PackageNotFoundError:
        pass
    answer["knows"] = {name: name in ALGORITHMS for name in sys.argv[1:]}
except Exception as error:
    answer["error"] = "%s: %s" % (type(error).__name__, error)
print(json.dumps(answer))
"""

ENGINE = Engine(
    name="lab", summary="the lab engine of specctl", probe=PROBE, log=GRAMMAR, metrics=METRICS, needs_gpu=False
)
