"""Prompts of the kind `maths`: problems to be worked out step by step."""

from __future__ import annotations

TEXTS = (
    (
        "A tank is filled by one pipe in 6 hours and by a second one in 4 hours, and a drain empties it in 12"
        " hours. All three are open. How long does it take until the tank is full? Work it out step by step."
    ),
    (
        "Show that the sum of the first n odd numbers is n squared. Give a proof by induction first, then one"
        " by a picture described in words."
    ),
    (
        "A bag holds 5 red, 4 blue and 3 green balls. Three balls are drawn without putting any back. What is"
        " the probability that all three have different colours? Show each step and give the answer as a "
        "fraction."
    ),
    ("Find all pairs of whole numbers x and y with x * y = 3 * x + 2 * y + 18. Explain why there are no others."),
    (
        "The temperature of a cup of tea falls from 90 to 60 degrees in ten minutes in a room of 20 degrees. "
        "Assume Newton's law of cooling. When is it down to 40 degrees? Derive the formula before you use it."
    ),
    (
        "Let f(x) = x^3 - 6x^2 + 9x + 2. Find where it grows, where it falls, its extrema and its inflection "
        "point, and sketch the curve in words."
    ),
    (
        "A ladder of 5 metres leans against a wall. Its foot slides away at 0.3 metres a second. How fast "
        "does its top slide down when the foot is 3 metres from the wall? Name each quantity before you "
        "differentiate."
    ),
    (
        "In how many ways can eight people sit at a round table if two of them refuse to sit beside each "
        "other? Count in two ways and compare the results."
    ),
)
