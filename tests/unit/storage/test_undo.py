"""What is begun is undone unless it comes to its end."""

from __future__ import annotations

import pytest

from storage.durable import undoing


@pytest.mark.parametrize("ending", [ValueError("wrong"), KeyboardInterrupt()])
def test_what_ends_early_is_undone_and_goes_on(ending: BaseException) -> None:
    undone: list[int] = []
    with pytest.raises(type(ending)) as caught, undoing(lambda: undone.append(1)):
        raise ending
    assert (caught.value, undone) == (ending, [1])


def test_what_comes_to_its_end_stays() -> None:
    undone: list[int] = []

    def ends_early() -> int:
        with undoing(lambda: undone.append(1)):
            return 5

    assert (ends_early(), undone) == (5, [])
