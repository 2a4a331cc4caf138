"""`undoing` undoes a body that ends early."""

from __future__ import annotations

import pytest

from storage.durable import undoing


@pytest.mark.parametrize("ending", [ValueError("wrong"), KeyboardInterrupt()])
def test_a_body_that_ends_early_is_undone_and_the_error_goes_on(ending: BaseException) -> None:
    undone: list[int] = []
    with pytest.raises(type(ending)) as caught, undoing(lambda: undone.append(1)):
        raise ending
    assert (caught.value, undone) == (ending, [1])


def test_a_complete_body_is_not_undone() -> None:
    undone: list[int] = []

    def ends_early() -> int:
        with undoing(lambda: undone.append(1)):
            return 5

    assert (ends_early(), undone) == (5, [])
