"""The spool of metrics files: one JSON object a run, swept into an archive of JSON lines."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from errata.core.failures import StorageFailed


@dataclass(frozen=True, slots=True)
class Spooled:
    """A metrics file: its run's pipeline and the object."""

    path: Path
    pipeline: str
    content: Mapping[str, object]


def spooled(folder: Path, passed: Callable[[Path], object]) -> list[Spooled]:
    """The metrics files of a folder by name; `passed` is called with other JSON files, which are passed over. Raises StorageFailed, OSError."""
    if not folder.is_dir():
        raise StorageFailed(f"there is no folder {folder}")
    found = {path: _read(path) for path in sorted(folder.glob("*.json")) if path.is_file()}
    for path, one in found.items():
        if one is None:
            passed(path)
    return [one for one in found.values() if one is not None]


def _read(path: Path) -> Spooled | None:
    try:
        content = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        return None
    if not isinstance(content, dict) or "execution_id" not in content:
        return None
    return Spooled(path, str(content.get("pipeline_name", "")), content)


def collect(folder: Path, archive: Path, passed: Callable[[Path], object], *, delete: bool) -> int:
    """Append the folder's metrics files to the archive, one line each, and give their number; `passed` as for `spooled`.

    Files are removed, where that is asked for, after the archive is safely on disk. Raises StorageFailed, OSError.
    """
    found = spooled(folder, passed)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.open("ab") as file:
        file.write(b"".join(orjson.dumps(one.content) + b"\n" for one in found))
        file.flush()
        os.fsync(file.fileno())
    for one in found if delete else ():
        one.path.unlink(missing_ok=True)
    return len(found)
