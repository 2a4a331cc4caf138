"""What S3 needs of the environment before a run: settings, and for Spark jars. It is said ahead of the run what is missing, and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.engines.choice import EngineChoice

__all__ = ["jars_missing", "on_s3", "require_jars", "require_settings", "settings_missing", "settings_refused"]

HADOOP_AWS = "hadoop-aws"
RECIPE = 'docs/deployment.md, "State on S3"'
PROFILES = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")


def on_s3(place: str) -> bool:
    """Whether a path or URI names a place on S3."""
    return place.startswith(("s3://", "s3a://"))


def settings_refused(place: str) -> str:
    """What is sure to keep a place on S3 from being reached, with what to do; empty where a try may succeed."""
    if not on_s3(place):
        return ""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if endpoint.startswith("http://") and os.environ.get("AWS_ALLOW_HTTP", "").lower() not in ("1", "true", "yes"):
        return f"the endpoint {endpoint} is without encryption, which has to be allowed: set AWS_ALLOW_HTTP=true, or name an https endpoint"
    return ""


def settings_missing(place: str) -> str:
    """What the environment may lack for a place on S3, with what to do; a machine with a role needs none of it."""
    refused = settings_refused(place)
    if refused or not on_s3(place):
        return refused
    if not any(name.startswith("AWS_") for name in os.environ) and not any(file.exists() for file in _profiles()):
        return "nothing says how to reach S3: set AWS_REGION, and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, unless this machine has a role"
    return ""


def _profiles() -> Iterable[Path]:
    folder = Path("~/.aws").expanduser()
    return (folder / "config", folder / "credentials", *(Path(os.environ[name]) for name in PROFILES if name in os.environ))


def require_settings(place: str) -> None:
    """Raise StorageError where the environment is sure to keep a place on S3 from being reached."""
    refused = settings_refused(place)
    if refused:
        raise StorageError(place, refused)


def jars_missing() -> str:
    """What Apache Spark in a JVM of this process lacks for S3; empty where it has it."""
    from storage.engines.spark.jars import found_jars, spark_home
    from storage.engines.spark.user_jars import found, given_jars

    home = spark_home()
    return "" if found(HADOOP_AWS, home, given_jars(home), found_jars()) else f"Apache Spark needs the jar {HADOOP_AWS} for S3, and nothing names it"


def require_jars(choice: EngineChoice, places: Iterable[str]) -> None:
    """Raise EngineUnavailable where Spark is to start here without the jars that a place on S3 needs."""
    from storage.engines.errors import EngineUnavailable
    from storage.engines.spark.remote import has_session

    place = next(filter(on_s3, places), None)
    if place is None or choice.kind != "spark" or choice.remote or has_session():
        return
    missing = jars_missing()
    if missing:
        ways = (f'give them with PYSPARK_SUBMIT_ARGS="--jars …" or spark-defaults.conf ({RECIPE})', "run with `--engine sail`, which needs none")
        raise EngineUnavailable(f"{place}: {missing}", ways)
