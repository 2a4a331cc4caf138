"""Why an engine cannot be had, and what helps: the one exception of this package."""

import re
from collections.abc import Sequence

__all__ = ["EngineUnavailable"]

NO_EXECUTORS = "no executor"
ENDED = ("StatusCode.UNAVAILABLE", "SparkContext was shut down", "stopped SparkContext", "INVALID_HANDLE.SESSION")
"""What engines say once they have ended, or have begun anew without the session."""
WAITING = ("look at the cluster, then run again", "`--engine-wait SECONDS` waits longer")


class EngineUnavailable(Exception):
    """No engine of the wanted kind. `reason` is one sentence, `ways_out` the remedies, `log` the end of the engine's own output.

    `again`: the same run can succeed without any change.
    """

    def __init__(self, reason: str, ways_out: tuple[str, ...] = (), log: str = "", *, again: bool = False) -> None:
        self.reason = reason
        self.ways_out = ways_out
        self.log = log
        self.again = again
        super().__init__(reason)

    def __str__(self) -> str:
        return "\n".join([self.reason, *(f"  = help: {way}" for way in self.ways_out), *([self.log] if self.log else [])])

    @classmethod
    def no_java(cls, found: str) -> "EngineUnavailable":
        """Spark was asked for and there is no Java that it runs on."""
        return cls(
            f"Apache Spark needs Java 17 or later, and {found}",
            ("install Java 17 or 21 and put it on PATH, or name it in JAVA_HOME", "run with `--engine sail`, which needs no Java"),
        )

    @classmethod
    def no_remote(cls, url: str, cause: str) -> "EngineUnavailable":
        """A Spark Connect server does not answer."""
        return cls(
            f"no Spark Connect server answers at {url}: {cause}", ("check the address and that the server runs", "run without `--remote`")
        )

    @classmethod
    def no_jars(cls, cause: str) -> "EngineUnavailable":
        """The Delta jars are neither cached nor to be had."""
        return cls(
            f"the Delta Lake jars for Spark could not be fetched: {cause}",
            (
                "connect to the network once; later runs work off-line",
                "set ERRATA_DELTA_JARS to a folder that holds them",
                "run with `--engine sail`, which needs none",
            ),
        )

    @classmethod
    def spark_failed(cls, cause: str, log: str) -> "EngineUnavailable":
        """The session of Spark did not start."""
        return cls(f"Apache Spark did not start: {cause}", ("`errata doctor` shows what is there", "run with `--engine sail`"), log)

    @classmethod
    def stranger(cls) -> "EngineUnavailable":
        """Something else connected to the engine's port before it was closed."""
        return cls("another process of this machine connected to the engine while it started", ("see who else is at work here, and run again",), again=True)

    @classmethod
    def silent(cls) -> "EngineUnavailable":
        """The engine's server was started and does not answer."""
        return cls("the engine was started and does not answer", ("run again", "`errata doctor` shows what is there"), again=True)

    @classmethod
    def open_port(cls, others: Sequence[str]) -> "EngineUnavailable":
        """Others are logged on who could use the engine of this process."""
        return cls(
            f"this system cannot keep other users from the port of the engine, and others are logged on: {', '.join(others)}",
            (
                "where they may read and write whatever you may, set `shared_host = true` under `[engine]` in errata.toml",
                "run with `--engine spark`, which asks for a token",
            ),
        )

    @classmethod
    def no_executors(cls, master: str, seconds: float) -> "EngineUnavailable":
        """A cluster gives no executor to work."""
        return cls(f"{NO_EXECUTORS} of {master} took work for {seconds:.0f} s", WAITING, again=True)

    @classmethod
    def no_answer(cls, url: str, seconds: float) -> "EngineUnavailable":
        """A server that was there does not answer any more."""
        return cls(f"the Spark Connect server at {url} gave no answer for {seconds:.0f} s", WAITING, again=True)

    @classmethod
    def too_little(cls, has: str, command: str, needed: str) -> "EngineUnavailable":
        """The system does not let this process have what tables or an engine take."""
        return cls(f"the system lets this process have {has} (`{command}`), and it needs {needed}", (f"raise the limit, or lift it with `{command} unlimited`",))

    @classmethod
    def gone(cls, cause: str) -> "EngineUnavailable | None":
        """The server of a session ended or cannot be reached any more, by the text of a failure; None for other failures."""
        awaited = re.search(f"{NO_EXECUTORS} of .* s$", cause, re.MULTILINE)
        if awaited:
            return cls(awaited[0], WAITING, again=True)
        if not any(sign in cause for sign in ENDED):
            return None
        return cls(
            "the engine ended in the middle of its work, or cannot be reached any more",
            ("run again; where the system ended it for want of memory, `--memory-limit` has it take less",),
            again=True,
        )
