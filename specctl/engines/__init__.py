"""The engines, one file each, and the profiles of their builds, which are data."""
