"""The command line: one file a command group; parse, call one op, render."""
