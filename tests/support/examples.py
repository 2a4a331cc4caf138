"""How many examples a property test takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., Any])


def examples(most: int, least: int = 4, **more: Any) -> Callable[[Test], Test]:
    """Decorate a property test with a number of examples that depends on the hypothesis profile.

    Args:
        most: examples in `make deep`.
        least: the fewest in `make test`, which takes an eighth of `most`.
        more: further settings of hypothesis.
    """
    counts = {"test": max(least, most // 8), "deep": most}
    return settings(max_examples=counts.get(settings.get_current_profile_name(), settings.default.max_examples), **more)
