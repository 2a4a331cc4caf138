"""Sessions that somebody else started: on a Spark Connect server (`--remote`), or in this process."""

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from storage.engines.base import CLASSIC, CLIENT, Engine
from storage.engines.connect import open_connect
from storage.engines.spark.config import session_settings
from storage.engines.spark.jobs import SparkEngine
from storage.engines.waiting import PATIENCE_SECONDS, patient_policy
from storage.errors import EngineUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RemoteSpark", "SharedSpark"]

CONNECT_PORT = 15002
KNOCK_SECONDS = 10.0


class SharedSpark(SparkEngine):
    """A second classic session in the driver of this process. It does not end with the engine."""

    libraries = CLASSIC

    def __init__(self) -> None:
        super().__init__(speaks_connect=False)

    def _open(self) -> "SparkSession":
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        self.context = SparkContext.getOrCreate()
        active = SparkSession.getActiveSession() or SparkSession(self.context)
        if "Delta" not in str(active.conf.get("spark.sql.extensions", "")):
            raise EngineUnavailable.spark_failed("the session of this process was made without Delta Lake", "")
        session = active.newSession()
        for name, value in session_settings().items():
            session.conf.set(name, value)
        return session

    def _shut(self, session: "SparkSession") -> None:
        """Leave the session to whoever started it."""


class RemoteSpark(Engine):
    """A Spark Connect server (`--remote sc://…`)."""

    name = "spark"
    libraries = CLIENT

    def __init__(self, url: str, patience: float = PATIENCE_SECONDS) -> None:
        super().__init__(speaks_connect=True)
        self._url = url
        self._patience = patience

    @property
    def cores(self) -> int:
        """The server's default parallelism, 8 where it reports none."""
        return int(self.session.conf.get("spark.default.parallelism", "8") or 8)

    @property
    def jobs(self) -> None:
        """A remote server reports no jobs."""
        return None

    def _open(self) -> "SparkSession":
        from pyspark.errors import PySparkException

        try:
            _knock(self._url)
            near = is_loopback(urlsplit(self._url).hostname or "")
            return open_connect(self._url, near=near, retries=patient_policy(self._url, self._patience, self.awaits))
        except (PySparkException, OSError, ValueError) as problem:
            raise EngineUnavailable.no_remote(self._url, str(problem).splitlines()[0]) from problem

    def _shut(self, session: "SparkSession") -> None:
        session.stop()


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _knock(url: str) -> None:
    """Raise OSError where nobody listens. A client of Spark Connect would try for minutes."""
    place = urlsplit(url)
    socket.create_connection((place.hostname or "", place.port or CONNECT_PORT), timeout=KNOCK_SECONDS).close()
