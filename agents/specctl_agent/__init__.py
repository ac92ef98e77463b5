"""The on-host agent: samples GPUs, host and engine, and moves the server between its algorithms when that pays."""
