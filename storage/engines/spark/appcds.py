"""Archives of loaded classes (AppCDS): the first session of a machine writes one as its JVM ends, later ones start from it.

The JVM writes the archive after the process that used it has gone, so a run does not wait for it. It writes the header last:
an archive with a header is whole, and the JVM itself refuses one that does not fit it.
"""

import os
import time
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from storage.engines.spark.jars import cache_folder
from storage.engines.spark.java import Java

__all__ = ["Archive", "archive"]

GIVEN_UP_SECONDS = 600  # after which a session that was to write the archive is taken for killed


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive for one Java and one class path. `path` may not exist yet."""

    path: Path

    @property
    def ready(self) -> bool:
        """Whether a session can start from it."""
        return self.path.is_file()

    def options(self) -> tuple[str, ...]:
        """The JVM's options: use the archive, or write it at the end."""
        self._adopt()
        if self.ready:
            return ("-Xshare:auto", f"-XX:SharedArchiveFile={self.path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        if " " in str(self.path) or not _writable(self.path.parent) or not self._claimed():
            return ()
        return (f"-XX:ArchiveClassesAtExit={self.path}.{uuid4().hex[:8]}.new", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")

    def _claimed(self) -> bool:
        """Whether this session is the one to write the archive: one at a time, it costs a core for a while."""
        mark = self.path.with_suffix(".writing")
        if mark.exists() and time.time() - mark.stat().st_mtime > GIVEN_UP_SECONDS:
            mark.unlink(missing_ok=True)
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _adopt(self) -> None:
        """Take what an earlier session has written whole."""
        for written in self.path.parent.glob(f"{self.path.name}.*.new"):
            if not _whole(written):
                continue  # still being written, or its session was killed: the header comes last
            if self.ready:
                written.unlink(missing_ok=True)
            else:
                written.replace(self.path)


def archive(java: Java, class_path: str) -> Archive:
    """The archive that fits a Java and a class path."""
    fit = blake2b(f"{java.banner}\n{java.path}\n{class_path}".encode(), digest_size=8).hexdigest()
    return Archive(cache_folder() / "jvm" / f"spark-{fit}.jsa")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _whole(written: Path) -> bool:
    with written.open("rb") as file:
        return any(file.read(4))
