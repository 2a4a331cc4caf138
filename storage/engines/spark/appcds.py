"""Archives of loaded classes (AppCDS): the JVM of the first session on a machine writes one when it ends, and later sessions start from it.

The JVM writes the archive after its process has gone, so a run does not wait for it. It writes the header last, so an archive with a header
is complete. The JVM itself refuses an archive that does not fit.
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

GIVEN_UP_SECONDS = 600
"""Seconds after which a session that writes the archive counts as killed."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive for one Java and one class path. `path` may not exist yet."""

    path: Path

    @property
    def ready(self) -> bool:
        """Whether a session can start from the archive."""
        return self.path.is_file()

    def options(self) -> tuple[str, ...]:
        """Return the JVM's options for using the archive, or for writing it at the end."""
        self._adopt()
        if self.ready:
            return ("-Xshare:auto", f"-XX:SharedArchiveFile={self.path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        if " " in str(self.path) or not _writable(self.path.parent) or not self._claimed():
            return ()
        return (f"-XX:ArchiveClassesAtExit={self.path}.{uuid4().hex[:8]}.new", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")

    def _claimed(self) -> bool:
        """Return whether this session may write the archive. One session at a time does, because it costs a core for a while."""
        mark = self.path.with_suffix(".writing")
        if mark.exists() and time.time() - mark.stat().st_mtime > GIVEN_UP_SECONDS:
            mark.unlink(missing_ok=True)
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _adopt(self) -> None:
        """Take over a complete archive of an earlier session."""
        for written in self.path.parent.glob(f"{self.path.name}.*.new"):
            if not _whole(written):
                continue  # still being written, or its session was killed
            if self.ready:
                written.unlink(missing_ok=True)
            else:
                written.replace(self.path)


def archive(java: Java, class_path: str) -> Archive:
    """Return the archive for a Java and a class path."""
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
