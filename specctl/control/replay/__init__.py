"""Replays of load through a switching policy: request traces with queueing, and concurrency series.

Pure: traces are read by adapters/trace_files.py; ops/simulate.py and benchmarks/policy.py call this package.
"""
