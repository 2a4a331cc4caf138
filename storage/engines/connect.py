"""Sessions over the Spark Connect protocol: Sail's and those of `--remote`."""

from typing import TYPE_CHECKING, cast
from uuid import uuid4

from storage.durable import undoing

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import RetryPolicy
    from pyspark.sql.connect.proto import ExecutePlanRequest
    from pyspark.sql.connect.session import SparkSession as ConnectSession

__all__ = ["SESSION_SETTINGS", "open_connect"]

SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # `Amount` and `amount` are two columns, as in the files that they come from
}


LARGE = (("grpc.max_receive_message_length", (1 << 31) - 1),)
"""Rows come in batches of some thousands, however long they are: those that hold an array of ten thousand elements each are larger than the 128 MB that pyspark takes."""
PLAIN = (("grpc.compression_enabled_algorithms_bitset", 1),)
"""What has a server send its answers as they are: within one machine, to compress and expand them takes several times as long as all else of reading rows."""


STEADY = (("grpc.client_idle_timeout_ms", (1 << 31) - 1),)
"""What has a connection last as long as its session: a private port admits no second one."""


def open_connect(url: str, *, near: bool = False, connect: "Callable[[grpc.Channel], None] | None" = None, retries: "RetryPolicy | None" = None) -> "SparkSession":
    """A new session at a Spark Connect URL. It is not shared with other users of pyspark in the process.

    `near` says that the server is on this machine: a connection to it is lost with the server, and cannot be taken up again. A client
    that could take it up would send two more messages with each query, which takes as long again as a small query does. `connect` has a channel connect.
    `retries` says for how long a server that is not near is asked again.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    class Channels(DefaultChannelBuilder):
        def toChannel(self) -> "grpc.Channel":  # noqa: N802  # pyspark's name
            channel = super().toChannel()
            if connect is not None:
                connect(channel)
            return channel

    builder = ConnectSession.builder.channelBuilder(Channels(url, [*LARGE, *((*PLAIN, *STEADY) if near else ())]))
    builder._registerHook(_named_queries)  # noqa: SLF001  # there is no public way
    session = builder.create()
    with undoing(lambda: _forget(session)):
        if near:
            session.client.disable_reattachable_execute()
            session.client.set_retry_policies([])  # to try again is to wait ten minutes for a server that is gone, by an interrupt even now, or to write rows twice
        elif retries is not None:
            session.client.set_retry_policies([retries])
        for name, value in SESSION_SETTINGS.items():
            session.conf.set(name, value)
    return cast("SparkSession", session)  # by its methods, though not by its class


def _named_queries(session: "ConnectSession") -> "ConnectSession.Hook":
    """Each query gets its name here: an interrupt ends the one of this name at the server, and only queries that can be taken up again have one by themselves."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    class Named(ConnectSession.Hook):
        def on_execute_plan(self, request: "ExecutePlanRequest") -> "ExecutePlanRequest":
            request.operation_id = request.operation_id or str(uuid4())
            return request

    return Named()


def _forget(session: "ConnectSession") -> None:
    session.release_session_on_close = False  # the server knows of none
    session.stop()  # else it stays the session that functions look at
