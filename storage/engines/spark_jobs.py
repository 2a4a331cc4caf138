"""What every session with a JVM behind it has in common: jobs are counted, few rows are worked on with less."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from storage.engines.base import Engine

if TYPE_CHECKING:
    import pyarrow as pa
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
    """Apache Spark whose driver this process knows: `context`, None while there is none."""

    name = "spark"
    context: "SparkContext | None" = None

    @property
    def cores(self) -> int:
        """The cores of all executors."""
        _ = self.session  # which makes the context
        return int(self.context.defaultParallelism) if self.context else 1

    @property
    def jobs(self) -> int:
        """The jobs that Spark has run since the session started."""
        if self.context is None:
            return 0
        return int(self.context._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001  # the only place that counts them all

    @contextmanager
    def sized(self, rows: int | None) -> Iterator[None]:
        """Few rows are interpreted in one partition: to compile a query, and to plan it anew after each shuffle, takes longer than to run it."""
        settings = LITTLE if rows is not None and rows <= LITTLE_ROWS else {}
        conf = self.session.conf
        before = {name: conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                conf.set(name, value)
            yield
        finally:
            for name, former in before.items():
                conf.set(name, former) if former is not None else conf.unset(name)

    def few(self, frame: "DataFrame", limit: int) -> "pa.Table | DataFrame":
        """On the driver where they are few: a commit to a Delta table costs Spark several jobs, delta-rs none. Else kept, so that it is computed once."""
        kept = frame.persist()
        self._kept.append(kept)
        rows = self.to_arrow(kept.limit(limit + 1).repartition(1))  # a limit by itself looks through the partitions job by job
        return rows if rows.num_rows <= limit else kept
