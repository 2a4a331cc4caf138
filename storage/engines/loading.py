"""Imports of the engines' libraries, in one place and one order.

Modules of pyspark import each other in circles. Two threads that enter such a circle at different modules each see half a module. So the
thread that asks for an engine imports all that the engine needs, and only then hands the start on to a thread of its own, which imports nothing.
"""

import os
from importlib import import_module

from storage.engines.process_limits import enough_for_engines

__all__ = ["CLASSIC", "CLIENT", "JVM", "SAIL", "load"]

CLASSIC = ("pyspark.sql", "pyspark.errors")
"""What a session within this process is made of."""
CLIENT = (*CLASSIC, "pyspark.sql.connect.session", "grpc._channel", "grpc._auth", "grpc._plugin_wrapping")
"""What a client of Spark Connect is made of. gRPC imports the last three when it opens a channel."""
JVM = ("pyspark.java_gateway", "py4j.protocol", *CLIENT)
"""The same with what starts a JVM."""
SAIL = ("pysail.spark", *CLIENT)
"""The same with the server of Sail."""


def load(modules: tuple[str, ...]) -> None:
    """Import modules in this order. What is loaded already costs nothing. Raises EngineUnavailable where the process may not have what they take."""
    enough_for_engines()
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # else starting a JVM later makes gRPC warn on standard error
    for module in modules:
        import_module(module)
