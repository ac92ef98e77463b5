"""Preflight: what would keep a launch from working on a host, told before the old server is touched; pure, one file a subject."""
