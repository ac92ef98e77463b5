"""The linter: what a launch says that its engine, GPUs or service manager would not take as it was meant; pure, reads no file."""
