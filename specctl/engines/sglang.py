"""SGLang and its forks: how the capability probe asks the engine's own interpreter what it knows (engine facts §1, §7)."""

from __future__ import annotations

from specctl.engines._sglang_log import GRAMMAR
from specctl.engines._sglang_metrics import METRICS
from specctl.engines.types import Engine

# A clean argument parse proves nothing: the name of the algorithm is a free string there and dies at configuration.
# A plugin that fails to load is only logged: its reason is why a name is not known.
PROBE = """
import json, logging, sys
answer = {"version": None, "knows": {}, "error": None}
class Failed(logging.Handler):
    said = []
    def emit(self, record):
        if "plugin" in record.getMessage().lower():
            error = record.exc_info and record.exc_info[1]
            self.said.append(record.getMessage() + (": %s: %s" % (type(error).__name__, error) if error else ""))
try:
    from importlib.metadata import version
    answer["version"] = version("sglang")
    try:
        from sglang.srt.plugins import load_plugins
        logging.getLogger().addHandler(Failed(logging.ERROR))
        load_plugins()
    except ImportError:
        pass
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
    for name in sys.argv[1:]:
        try:
            SpeculativeAlgorithm.from_string(name)
            answer["knows"][name] = True
        except (ValueError, KeyError):
            answer["knows"][name] = False
            answer["error"] = "; ".join(Failed.said) or None
except Exception as error:
    answer["error"] = "%s: %s" % (type(error).__name__, error)
print(json.dumps(answer))
"""

ENGINE = Engine(name="sglang", summary="SGLang and forks of it", probe=PROBE, log=GRAMMAR, metrics=METRICS)
