"""The rules, a file a subject; each file defines RULES, found by lint/catalogue.py."""
