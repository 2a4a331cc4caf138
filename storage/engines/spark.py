"""Apache Spark: in the process, on a cluster by its master, or behind a Spark Connect server (the `spark` engine)."""

import os
from typing import TYPE_CHECKING

from storage.engines.base import Engine
from storage.engines.choice import EngineChoice
from storage.engines.connect import open_connect
from storage.engines.failure import EngineUnavailable
from storage.engines.java import any_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Spark(Engine):
    name = "spark"

    def __init__(self, choice: EngineChoice) -> None:
        super().__init__(speaks_connect=False)
        self._choice = choice

    @property
    def cores(self) -> int:
        return self._choice.threads or os.cpu_count() or 1

    @property
    def jobs(self) -> int | None:
        return None

    def _open(self) -> "SparkSession":
        raise EngineUnavailable.no_java(f"{any_java()} is not used yet")

    def _shut(self, session: "SparkSession") -> None:
        session.stop()


class RemoteSpark(Engine):
    """A Spark Connect server elsewhere."""

    name = "spark"

    def __init__(self, url: str) -> None:
        super().__init__(speaks_connect=True)
        self._url = url

    @property
    def cores(self) -> int:
        return int(self.session.conf.get("spark.default.parallelism", "8") or 8)

    @property
    def jobs(self) -> None:
        return None

    def _open(self) -> "SparkSession":
        return open_connect(self._url)

    def _shut(self, session: "SparkSession") -> None:
        session.stop()
