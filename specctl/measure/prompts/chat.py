"""Prompts of the kind `chat`: questions of everyday life and work, as somebody would type them."""

from __future__ import annotations

TEXTS = (
    (
        "My sourdough bread comes out flat every time although the starter doubles in four hours. What are "
        "the three most likely reasons, and how do I find out which one it is?"
    ),
    (
        "Write a friendly letter to my neighbours that tells them about noisy work on our roof next week, "
        "with the hours, and offers coffee as an apology."
    ),
    (
        "Explain to a twelve-year-old why the sky is blue in the middle of the day and red in the evening. "
        "Use no formula."
    ),
    (
        "I have two days in Lisbon in November, I walk well and I do not care for shopping. Plan both days by"
        " the hour, with a place to eat at noon each day."
    ),
    (
        "Compare renting and buying a flat for somebody who will probably move within five years. List what "
        "speaks for each side and say what you would want to know before you decide."
    ),
    (
        "A colleague interrupts me in every meeting. Suggest what I could say to him, once in private and "
        "once in the meeting itself, without making an enemy."
    ),
    "Summarise how a bill becomes a law in a parliament with two chambers, in ten short sentences.",
    (
        "I want to begin to run after years at a desk. Give me a plan for eight weeks with three days a week,"
        " and the signs that I should slow down."
    ),
)
