"""Real hosts for the tests: N machines with systemd and sshd, in a network of their own.

Tests get them from the `fleet` fixture (conftest.py), people from `python -m tests.fleet`. Nothing here imports specctl.
"""
