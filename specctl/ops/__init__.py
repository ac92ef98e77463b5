"""The shells: each command's work, joining pure decisions to adapters; called by cli, never printing."""
