"""One bed for all tests of this folder that a process runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.end_to_end.hostile.bed import Bed


@pytest.fixture(scope="session")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    one = Bed(tmp_path_factory.mktemp("hostile"))
    yield one
    one.close()
