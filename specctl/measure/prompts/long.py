"""Prompts of the kind `long`: a journal of a warehouse of some thousand entries' length, and a question about it at the end.

Made by rule and not by chance, so that every specctl has the same text; about 24,000 characters each, which is some 6,000 to 9,000
tokens.
"""

from __future__ import annotations

CHARACTERS = 24_000
_GOODS = ("bolts", "cables", "filters", "gaskets", "hinges", "lamps", "panels", "pumps", "sensors", "valves", "washers")
_PLACES = (
    "the north gate",
    "the south gate",
    "dock three",
    "dock seven",
    "the cold room",
    "the upper rack",
    "the workshop",
)
_ACTS = ("arrived at", "left by", "were moved to", "were counted in", "were repacked in", "were inspected in")
_PEOPLE = ("Amira", "Bjarne", "Chiara", "Davit", "Elif", "Farid", "Greta", "Hana", "Ismail")
_QUESTIONS = (
    "Which goods left the warehouse most often, and by which gate? Quote the entries that you counted.",
    "Write a report of one page on what went wrong in this journal, with the numbers of the entries.",
    "Make a table of all movements of pumps and valves, with the number of the entry, the count and the person.",
    "Summarise the journal for a new colleague: who does what, where things lie, and what to look out for.",
)


def journal(variant: int) -> str:
    """Return one journal; another variant has other entries in the same manner."""
    lines: list[str] = ["Journal of the warehouse", ""]
    size = 0
    number = 0
    while size < CHARACTERS:
        number += 1
        mixed = number * (17 + 2 * variant) + number * number * (3 + variant)
        goods = _GOODS[mixed % len(_GOODS)]
        act = _ACTS[(mixed // 7) % len(_ACTS)]
        place = _PLACES[(mixed // 3) % len(_PLACES)]
        person = _PEOPLE[(mixed // 5) % len(_PEOPLE)]
        count = 3 + mixed % 97
        lines.append(f"Entry {number}: {count} {goods} {act} {place}; signed by {person}.")
        size += len(lines[-1]) + 1
    return "\n".join(lines)


TEXTS = tuple(f"{journal(variant)}\n\n{question}\n" for variant, question in enumerate(_QUESTIONS))
