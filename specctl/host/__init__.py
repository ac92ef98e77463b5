"""What runs on a host without being installed there: standard library only, Python 3.8 or later, sent over the connection."""
