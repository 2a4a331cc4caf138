"""Sessions over the Spark Connect protocol: for Sail, for the own JVM, and for `--remote`."""

from typing import TYPE_CHECKING, cast
from uuid import uuid4

from changelog.frames import use_cache
from storage.durable import undoing

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.client.retries import RetryPolicy
    from pyspark.sql.connect.proto import ExecutePlanRequest
    from pyspark.sql.connect.session import SparkSession as ConnectSession
    from pyspark.sql.types import StructType

__all__ = ["SESSION_SETTINGS", "open_connect"]

SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # `Amount` and `amount` are two columns, as in files
}


LARGE = (("grpc.max_receive_message_length", (1 << 31) - 1),)
"""Rows come in batches of some thousands. Rows with arrays of ten thousand elements exceed the 128 MB that pyspark accepts."""
PLAIN = (("grpc.compression_enabled_algorithms_bitset", 1),)
"""Uncompressed answers. Within one machine, compression takes several times as long as reading rows."""


STEADY = (("grpc.client_idle_timeout_ms", (1 << 31) - 1),)
"""Keeps a connection open as long as its session, because a private port admits no second one."""

OWN = (("grpc.use_local_subchannel_pool", 1),)
"""Connects anew. Channels to one address share connections otherwise, also with an earlier server of that port, and wait up to two minutes after it failed."""


class _ClientCache:
    """The cache of PySpark's own client: a member of each frame. There is no public way to fill it."""

    def get(self, frame: "DataFrame") -> "StructType | None":
        """The schema of a frame where it is cached, else None."""
        return getattr(frame, "_cached_schema", None)

    def put(self, frame: "DataFrame", schema: "StructType") -> None:
        """Cache the schema of a frame that has none yet. A classic DataFrame has no such member."""
        if getattr(frame, "_cached_schema", schema) is None:
            frame._cached_schema = schema  # type: ignore[attr-defined]  # noqa: SLF001


use_cache(_ClientCache())


def open_connect(url: str, *, near: bool = False, connect: "Callable[[grpc.Channel], None] | None" = None, retries: "RetryPolicy | None" = None) -> "SparkSession":
    """Open a session at a Spark Connect URL. Other users of pyspark in the process do not share it.

    Args:
        url: The URL.
        near: The server is on this machine, and its connection ends with it. A client that could resume the connection would send two more messages
            with each query, which doubles the time of a small query.
        connect: Called to connect a channel.
        retries: How long to retry a server that is not near.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    class Channels(DefaultChannelBuilder):
        def toChannel(self) -> "grpc.Channel":  # noqa: N802  # pyspark's name
            channel = super().toChannel()
            if connect is not None:
                connect(channel)
            return channel

    builder = ConnectSession.builder.channelBuilder(Channels(url, [*LARGE, *((*PLAIN, *STEADY, *OWN) if near else ())]))
    builder._registerHook(_named_queries)  # noqa: SLF001  # there is no public way
    session = builder.create()
    with undoing(lambda: _forget(session)):
        if near:
            session.client.disable_reattachable_execute()
            session.client.set_retry_policies([])  # a retry would wait ten minutes for a server that is gone, even after an interrupt, or write rows twice
        elif retries is not None:
            session.client.set_retry_policies([retries])
        for name, value in SESSION_SETTINGS.items():
            session.conf.set(name, value)
    return cast("SparkSession", session)  # it has the methods, but another class


def _named_queries(session: "ConnectSession") -> "ConnectSession.Hook":
    """Return a hook that names each query. An interrupt ends a query at the server by name, and only resumable queries have a name by themselves."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    class Named(ConnectSession.Hook):
        def on_execute_plan(self, request: "ExecutePlanRequest") -> "ExecutePlanRequest":
            request.operation_id = request.operation_id or str(uuid4())
            return request

    return Named()


def _forget(session: "ConnectSession") -> None:
    session.release_session_on_close = False  # the server has no such session
    session.stop()  # else functions keep using it
