"""The terminal dashboard: Textual's one place. It shows values and asks `ops` for acts; it decides nothing."""
