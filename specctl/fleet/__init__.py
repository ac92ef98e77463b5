"""The inventory: schema, check, resolve and select; pure (files are read by adapters/inventory_files.py)."""
