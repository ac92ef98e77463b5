"""The lab engine: a small speculative server that decodes for real on one CPU core; nothing above it imports it."""
