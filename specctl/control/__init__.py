"""What the on-host agent knows and decides: samples, profile, throughput model, policy.

Pure: `now` is an argument and nothing is read.
"""
