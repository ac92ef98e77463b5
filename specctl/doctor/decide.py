"""What decides a check that the evidence did not: few sentences, so that a person reads each once."""

from __future__ import annotations

HOST = "a look at the host: specctl doctor --host H"
LIVE = "measure verify steps a second beside tokens: specctl doctor --host H --live"
LOAD = "some minutes of load: clients, or specctl bench --host H --concurrency 1,8"
ANSWERS = "an engine that answers"
METRICS = "engine metrics: options: {enable-metrics: true}, and a deploy"
GPUS = "GPUs that can be asked: nvidia-smi on the host, or its agent (specctl agent install)"
LOG = "decode lines of the log: let it serve, or give a log (--log FILE)"
BENCH = "throughput of two modes at one concurrency: specctl bench, specctl calibrate, or --figures FILE"
