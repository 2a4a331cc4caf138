"""Sessions over the Spark Connect protocol: Sail's and those of `--remote`."""

import os
from typing import TYPE_CHECKING, cast

from storage.undo import undoing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

__all__ = ["SESSION_SETTINGS", "open_connect"]

SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # `Amount` and `amount` are two columns, as in the files that they come from
}


def open_connect(url: str) -> "SparkSession":
    """A new session at a Spark Connect URL. It is not shared with other users of pyspark in the process."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # else starting a JVM later makes gRPC warn on standard error
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session = ConnectSession.builder.remote(url).create()
    with undoing(lambda: _forget(session)):
        for name, value in SESSION_SETTINGS.items():
            session.conf.set(name, value)
    return cast("SparkSession", session)  # by its methods, though not by its class


def _forget(session: "ConnectSession") -> None:
    session.release_session_on_close = False  # the server knows of none
    session.stop()  # else it stays the session that functions look at
