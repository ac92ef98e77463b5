"""The start-up log of SGLang (read on 0.5.23) as a grammar; the lab engine writes the same dialect.

Known texts live beside this file: what an operator's input causes in _sglang_input.py, what the machine causes in
_sglang_machine.py, what merely follows from a cause in _sglang_aftermath.py.
"""

from __future__ import annotations

import re

from specctl.engines._log_types import LogGrammar, Phase, PhaseMark, ProgressMark
from specctl.engines._sglang_aftermath import CONSEQUENCES, NOTES
from specctl.engines._sglang_input import INPUT_CAUSES
from specctl.engines._sglang_machine import LAST_RESORTS, MACHINE_CAUSES, PORT_TAKEN

_WEIGHTS = (Phase.TARGET_WEIGHTS, Phase.DRAFT_WEIGHTS)
_COUNT = r"(?P<done>\d{1,9})/(?P<total>\d{1,9})"

# "[2026-11-29 16:39:06 TP0] ", with milliseconds and DP, PP, EP ranks where there are such.
_PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?P<rank>(?: [A-Z]{2,4}\d{1,4}){0,6})\] ?")

_PROBED = (
    "ready|health|health_generate|model_info|server_info|get_model_info|get_server_info|metrics|v1/loads|v1/models|ping"
)

GRAMMAR = LogGrammar(
    prefix=_PREFIX,
    load_begin=re.compile(r"^Load weight begin\b"),
    load_end=re.compile(r"^Load weight end\b"),
    marks=(
        PhaseMark(phase=Phase.DISTRIBUTED, pattern=re.compile(r"^Init parallel begin\b|^sglang is using nccl")),
        PhaseMark(phase=Phase.KV_POOL, pattern=re.compile(r"^KV Cache is allocated\b|^Memory pool end\b")),
        PhaseMark(phase=Phase.GRAPHS, pattern=re.compile(r"^Capture .{0,80}\bbegin\b", re.IGNORECASE)),
        PhaseMark(
            phase=Phase.WARMUP,
            pattern=re.compile(r"^Engine startup timings\b|Application startup complete\.|Uvicorn running on "),
        ),
    ),
    progress=(
        ProgressMark(
            phases=_WEIGHTS,
            pattern=re.compile(rf"Loading [\w -]{{1,60}} shards: {{1,8}}\d{{1,3}}% Completed \| {_COUNT}"),
            wording="{done} of {total} shards",
        ),
        ProgressMark(
            phases=_WEIGHTS,
            pattern=re.compile(rf"Multi-thread loading shards: {{1,8}}\d{{1,3}}% Completed \| {_COUNT}"),
            wording="{done} of {total} shards",
        ),
        ProgressMark(
            phases=(Phase.GRAPHS,),
            pattern=re.compile(
                rf"Capturing (?:batches|num tokens) \([^)]{{0,120}}\)[^|]{{0,40}}\|(?:[^|]{{0,120}}\|)? {{0,8}}{_COUNT}"
            ),
            wording="bs {done} of {total}",
        ),
        ProgressMark(  # the bar's first writing bears no batch size yet
            phases=(Phase.GRAPHS,),
            pattern=re.compile(rf"^ {{0,4}}\d{{1,3}}%\|[^|]{{0,120}}\| {{0,8}}{_COUNT} \["),
            wording="bs {done} of {total}",
        ),
    ),
    capture=re.compile(r"^Capture (?P<name>[\w -]{1,60}?) (?:cuda|cpu) graphs? begin\b", re.IGNORECASE),
    noise=(re.compile(rf'"(?:GET|HEAD) /(?:{_PROBED})(?:\?[^" ]{{0,300}})? HTTP/\d\.\d" \d{{3}}'),),
    private=(re.compile(r"^server_args=|^Receive: obj=|^Finish: obj=|launch_command"),),
    texts=(*INPUT_CAUSES, *MACHINE_CAUSES, *LAST_RESORTS, *CONSEQUENCES, *NOTES),
    port_taken=PORT_TAKEN,
    stray_errors=frozenset(
        {"EOFError", "asyncio.exceptions.CancelledError", "asyncio.CancelledError", "BrokenPipeError"}
    ),
)
