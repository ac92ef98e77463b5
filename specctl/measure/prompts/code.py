"""Prompts of the kind `code`: beginnings of Python modules, and tasks to program."""

from __future__ import annotations

TEXTS = (
    '''"""Read a table of measurements and say which sensors drifted."""

import csv
import statistics
from pathlib import Path


class Sensor:
    """One sensor with its readings in the order of time."""

    def __init__(self, name):
        self.name = name
        self.readings = []

    def add(self, at, value):
        self.readings.append((at, value))

    def drift(self):
''',
    """def merge_intervals(intervals):
    \"\"\"Return the union of intervals as a sorted list of disjoint ones.\"\"\"
    result = []
    for start, end in sorted(intervals):
""",
    """import heapq
from collections import defaultdict


class Graph:
    def __init__(self):
        self.edges = defaultdict(dict)

    def connect(self, a, b, weight):
        self.edges[a][b] = weight
        self.edges[b][a] = weight

    def shortest_path(self, start, goal):
        queue = [(0, start, [])]
        seen = set()
        while queue:
""",
    """Write a Python class for a least-recently-used cache with a limit on the sum of the sizes of its entries.
Show the class first, then five tests for pytest, each with one sentence that says what it promises.
""",
    """import argparse
import logging
import sys

log = logging.getLogger(__name__)


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description="Copy files to another folder and verify their digests.")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--jobs", type=int, default=4)
""",
    """# The function below is slow for long lists because it looks through the whole list for each element.
# Rewrite it so that it takes linear time, keep the order of the first appearances, and explain the change.

def unique(values):
    result = []
    for value in values:
        if value not in result:
            result.append(value)
    return result
""",
    """class Tokenizer:
    \"\"\"Split an arithmetic expression into numbers, names, operators and parentheses.\"\"\"

    OPERATORS = "+-*/^"

    def __init__(self, text):
        self.text = text
        self.position = 0

    def __iter__(self):
        return self

    def __next__(self):
""",
    """Write a shell script that keeps the newest seven daily backups and the newest four weekly ones in a folder, names what it
would delete when it is called with --dry-run, and refuses to run when the folder is empty. Use POSIX sh.
""",
)
