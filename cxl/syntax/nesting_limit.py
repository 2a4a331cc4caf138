"""How deep a program may nest, and room for the recursion that the limit needs.

The compiler and the interpreter are recursive in the nesting of an expression, never in its length: chains such as
`a + b + c` are loops. Python's default limit of 1,000 frames would not hold `MAX_DEPTH` levels below a deep caller; frames
of pure Python functions need no C stack, so a higher limit is safe.
"""

import sys

MAX_DEPTH = 256
"""Levels of nested expressions: parentheses, branches, arguments, one postfix after the other."""
MAX_EACH = 32
"""Levels of nested `emit each`."""
_FRAMES_NEEDED = 12_000


def ensure_room() -> None:
    """Raise Python's recursion limit to what `MAX_DEPTH` levels may need; never lowers it."""
    if sys.getrecursionlimit() < _FRAMES_NEEDED:
        sys.setrecursionlimit(_FRAMES_NEEDED)


ensure_room()  # once for all, before anything measures the limit
