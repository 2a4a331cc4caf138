"""Pages of mapped files are given back while a large file is read."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import pytest

from storage.files.local import RESIDENT, buffer_of, by_parts, by_places

SIZE = 2 * RESIDENT


@pytest.fixture
def mapped(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(SIZE))
    data = buffer_of(path, "large")
    assert isinstance(data, mmap.mmap)
    return path, data


def resident(path: Path) -> int:
    """Bytes of a mapped file that are in the memory of this process."""
    text = Path("/proc/self/smaps").read_text()
    return sum(int(size) * 1024 for size in re.findall(rf"{re.escape(str(path))}\n(?:.*\n)*?Rss: *(\d+) kB", text))


def test_places_are_read_in_order_and_few_of_them_stay(mapped):
    path, data = mapped
    seen, most = [], 0
    for group in by_places(data, range(0, SIZE, SIZE // 1000)):
        seen += group
        assert bytes(data[at] for at in group) == bytes(len(group))
        most = max(most, resident(path))
    assert seen == [*range(0, SIZE, SIZE // 1000)]
    assert 0 < most <= RESIDENT + (2 << 20)
    assert resident(path) == 0


def test_parts_are_read_in_order_and_few_of_them_stay(mapped):
    path, data = mapped
    part, seen, most = RESIDENT // 8, [], 0
    for at in by_parts(data, (at for at in range(0, SIZE, part) if data[at : at + part]), part):
        seen.append(at)
        most = max(most, resident(path))
    assert seen == [*range(0, SIZE, part)]
    assert 0 < most <= RESIDENT + (2 << 20)
    assert resident(path) == 0
