"""The parts that all Spark sessions of this process share: counted jobs, and settings for small tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from changelog.lazy_imports import pa
from storage.engines.base import Engine

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

__all__ = ["SparkEngine"]

LITTLE_ROWS = 50_000
LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


class SparkEngine(Engine):
    """Apache Spark whose driver this process knows. `context` is None before the session starts."""

    name = "spark"
    context: "SparkContext | None" = None

    def __init__(self, *, speaks_connect: bool) -> None:
        super().__init__(speaks_connect=speaks_connect)
        self._little = False
        self._usual: dict[str, str] = {}

    @property
    def cores(self) -> int:
        """Cores of all executors."""
        _ = self.session  # which makes the context
        return int(self.context.defaultParallelism) if self.context else 1

    @property
    def jobs(self) -> int:
        """Number of jobs since the session started."""
        if self.context is None:
            return 0
        return int(self.context._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001  # the only place that counts them all

    @contextmanager
    def sized(self, rows: int | None) -> Iterator[None]:
        """Run queries on few rows in one partition without compiling them. To compile a query, and to plan it anew after each shuffle, takes longer than to run it."""
        before = self._little
        self._set_little(_are_few(rows))
        try:
            yield
        finally:
            self._set_little(before)

    def also_reads(self, rows: int | None) -> None:
        """Compile and distribute queries from here on, where `rows` is not small."""
        if not _are_few(rows):
            self._set_little(False)

    def _set_little(self, little: bool) -> None:
        if little == self._little:
            return
        conf = self.session.conf
        if not self._usual:
            self._usual = {name: str(conf.get(name)) for name in LITTLE}
        settings = LITTLE if little else self._usual
        if self.speaks_connect:
            conf._set_all(settings, silent=False)  # type: ignore[attr-defined]  # noqa: SLF001  # one message; `set` sends one for each
        else:
            for name, value in settings.items():
                conf.set(name, value)
        self._little = little

    def few(self, frame: "DataFrame", limit: int) -> "pa.Table | DataFrame":
        """Return the rows on the driver where they are few, because a commit costs Spark several jobs and delta-rs none.

        Else return the cached frame, so that it is computed once.
        """
        cached = frame.persist()
        self._cached.append(cached)
        rows = self.to_arrow(cached.limit(limit + 1).repartition(1))  # a limit by itself looks through the partitions job by job
        return rows if rows.num_rows <= limit else cached


def _are_few(rows: int | None) -> bool:
    return rows is not None and rows <= LITTLE_ROWS
