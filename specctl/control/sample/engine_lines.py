"""Fold an engine's log lines: decode lines, the lines that only a tree prints, and texts that are known to be fatal.

Pure. Lines come from a log that anybody's prompt may get into: each is cut to MAX_LINE, every search is linear in it, and what is
kept is numbers and ids of known texts, never the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from specctl.control.sample.engine import DecodeLine, EngineLines, TreeLine
from specctl.control.sample.numbers import count, word
from specctl.engines._log_types import MAX_LINE, LogGrammar, TextKind

MAX_FATAL = 8
TREE_LINE = r"DDTREE metrics:"
"""What a tree prints where its profile says nothing else: a line of it speaks against any other algo."""
_DECODE = "Decode batch"
_ROUTINE = ("Prefill batch", ' HTTP/1.1" ')
"""Most lines of a busy server: nothing is looked for in them, for sixty patterns a line would cost more than all else."""
_RUNNING = re.compile(r"#running-req: (\d{1,9})\b")
_QUEUED = re.compile(r"#queue-req: (\d{1,9})\b")
_LENGTH = re.compile(r"\baccept len: ([\d.]{1,12})")
_GRAPH = re.compile(r"\bgraph: (True|False)\b")
_FIGURES = {
    "batch": re.compile(r"\bbs=(\d{1,9})\b"),
    "tree_budget": re.compile(r"\bbudget=(\d{1,9})\b"),
    "nodes": re.compile(r"\bavg_actual_nodes=([\d.]{1,12})"),
    "accepted_drafts": re.compile(r"\bavg_accepted_drafts=([\d.]{1,12})"),
    "commit": re.compile(r"\bavg_commit_len=([\d.]{1,12})"),
    "depth": re.compile(r"\bavg_accepted_depth=([\d.]{1,12})"),
}


@dataclass(frozen=True, slots=True)
class LineReader:
    """What to look for: the tree line of a build (named groups bear the names of TreeLine's fields) and an engine's texts."""

    tree: re.Pattern[str]
    grammar: LogGrammar


def reader(grammar: LogGrammar, tree_line: str | None) -> LineReader:
    """Make a reader; a tree line that is no regular expression is as if none were given."""
    try:
        tree = re.compile(tree_line or TREE_LINE)
    except re.error:
        tree = re.compile(TREE_LINE)
    return LineReader(tree, grammar)


def fold(lines: EngineLines, texts: Iterable[str], reading: LineReader, lost: int = 0) -> EngineLines:
    """Add log lines, in their order; `lost` more were skipped. Never raises, whatever the text."""
    found = replace(lines, lost=lines.lost + lost) if lost else lines
    for text in texts:
        found = _one(found, text[:MAX_LINE], reading)
    return found


def _one(lines: EngineLines, text: str, reading: LineReader) -> EngineLines:
    if _DECODE in text:
        return replace(
            lines,
            decode_lines=lines.decode_lines + 1,
            last_decode=decode_line(text),
            since_tree=lines.since_tree + 1,
            # A tree's line follows each decode line: two decode lines with none between them mean that no tree decodes.
            last_is_tree=False if lines.since_tree > 0 else lines.last_is_tree,
        )
    if any(word in text for word in _ROUTINE):
        return lines
    match = reading.tree.search(text)
    if match is not None:
        last = tree_line(text, match)
        return replace(lines, tree_lines=lines.tree_lines + 1, last_tree=last, last_is_tree=True, since_tree=0)
    text_id = fatal(text, reading.grammar)
    if text_id is None or text_id in lines.fatal[-1:]:
        return lines
    return replace(lines, fatal=(*lines.fatal, text_id)[-MAX_FATAL:])


def decode_line(text: str) -> DecodeLine:
    """Return what a decode line says; a part that it does not have is None."""
    graph = _GRAPH.search(text)
    return DecodeLine(
        running=count(_number(_RUNNING, text)),
        queued=count(_number(_QUEUED, text)),
        accept_length=_number(_LENGTH, text),
        graph=None if graph is None else graph[1] == "True",
    )


def tree_line(text: str, match: re.Match[str]) -> TreeLine:
    """Return what a tree's line says: by the groups of its profile's pattern, and by the field's own words for the rest."""
    named = {name: word(said) for name, said in match.groupdict().items() if said is not None}
    found = {name: named[name] if name in named else _number(pattern, text) for name, pattern in _FIGURES.items()}
    return TreeLine(
        batch=count(found["batch"]),
        tree_budget=count(found["tree_budget"]),
        nodes=found["nodes"],
        accepted_drafts=found["accepted_drafts"],
        commit=found["commit"],
        depth=found["depth"],
    )


def fatal(text: str, grammar: LogGrammar) -> str | None:
    """Return the id of the known cause or consequence of a death that a line bears; None for any other line."""
    prefix = grammar.prefix.match(text)
    text = text if prefix is None else text[prefix.end() :]
    if any(pattern.search(text) for pattern in (*grammar.private, *grammar.noise)):
        return None
    known = (one for one in grammar.texts if one.kind is not TextKind.NOTE)
    return next((one.id for one in known if one.pattern.search(text)), None)


def _number(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    return None if match is None else word(match[1])
