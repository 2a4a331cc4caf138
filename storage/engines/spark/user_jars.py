"""Jars that the user gives to Spark with `PYSPARK_SUBMIT_ARGS` or `spark-defaults.conf`, and whether they hold what S3 needs.

Spark would let the user's jars displace Errata's, so both are joined.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from storage.engines.choice import EngineChoice, has_session
from storage.engines.spark.jars import spark_home
from storage.errors import EngineUnavailable
from storage.uris import on_s3

__all__ = ["NEEDED_BY_S3", "RECIPE", "UserJars", "jars_missing", "require_jars", "user_jars"]

JARS, CLASS_PATH, PACKAGES = "spark.jars", "spark.driver.extraClassPath", "spark.jars.packages"
SEPARATORS = {JARS: ",", CLASS_PATH: os.pathsep}
HADOOP_AWS = "hadoop-aws"
NEEDED_BY_S3 = (HADOOP_AWS, "bundle", "analyticsaccelerator-s3")
"""The jars for S3. Maven's packages know what they need; files have to be named each."""
RECIPE = 'docs/how-to/deploy.md, "State on S3"'
OPTIONS = {"--jars": JARS, "--driver-class-path": CLASS_PATH, "--packages": PACKAGES}


@dataclass(frozen=True, slots=True)
class UserJars:
    """Spark's settings for the user's jars, and the user's other arguments of spark-submit."""

    settings: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    @property
    def submit_arguments(self) -> str:
        """PYSPARK_SUBMIT_ARGS without the jars that `joined` adds to the settings."""
        return shlex.join(self.arguments or ("pyspark-shell",))

    def joined(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a driver, with the user's jars after its own."""
        both = dict(settings)
        for name, separator in SEPARATORS.items():
            parts = [part for text in (settings.get(name, ""), self.settings.get(name, "")) for part in text.split(separator) if part]
            both |= {name: separator.join(dict.fromkeys(parts))} if parts else {}
        return both

    def mentions(self, artifact: str) -> bool:
        """Return whether the user's jars include an artifact, by file name or in a folder of the class path."""
        named = [part for name, separator in SEPARATORS.items() for part in self.settings.get(name, "").split(separator)]
        return any(artifact in Path(part).name or _holds(part, artifact) for part in named if part)

    def fetches(self, artifact: str) -> bool:
        """Return whether Spark fetches an artifact with all that it needs (`--packages`)."""
        return f":{artifact}:" in self.settings.get(PACKAGES, "")


def user_jars(home: Path) -> UserJars:
    """Return what the environment names. `home` is Spark's folder; its configuration counts unless SPARK_CONF_DIR names another."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    settings, arguments = _defaults(folder / "spark-defaults.conf"), list[str]()
    words = iter(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:
        name, value = _setting(word, words)
        if name not in SEPARATORS:
            arguments += [word] if not name else ["--packages", value] if name == PACKAGES else ["--conf", f"{name}={value}"]
        if name:
            settings[name] = value
    return UserJars({name: value for name, value in settings.items() if name in (*SEPARATORS, PACKAGES)}, tuple(arguments))


def _setting(word: str, words: Iterator[str]) -> tuple[str, str]:
    """Return name and value of the setting in an argument of spark-submit, which may take two words. Both are empty for other arguments."""
    option, equals, value = word.partition("=")
    if option in OPTIONS:
        return OPTIONS[option], value if equals else next(words, "")
    if option in ("--conf", "-c"):
        name, _, said = (value if equals else next(words, "")).partition("=")
        return name, said
    return "", ""


def _defaults(file: Path) -> dict[str, str]:
    """Read a `spark-defaults.conf`: one name and value per line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = [line.replace("=", " ", 1).split(None, 1) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) > 1}


def _holds(part: str, artifact: str) -> bool:
    """Return whether a folder of a class path (`/opt/jars/*` or `/opt/jars`) holds a jar of an artifact."""
    folder = Path(part).parent if part.endswith("*") else Path(part)
    return folder.is_dir() and any(folder.glob(f"*{artifact}*.jar"))


def jars_missing() -> str:
    """Return what Spark in a JVM of this process lacks for S3. Empty where nothing is missing."""
    home = spark_home()
    given = user_jars(home)
    if given.fetches(HADOOP_AWS):
        return ""
    missing = [name for name in NEEDED_BY_S3 if not given.mentions(name) and not _holds(str(home / "jars"), name)]
    if not missing:
        return ""
    return f"Apache Spark needs {', '.join(missing)} for S3, and nothing names {'it' if len(missing) == 1 else 'them'}"


def require_jars(choice: EngineChoice, places: Iterable[str]) -> None:
    """Raise EngineUnavailable where Spark would start in this process without the jars for a place on S3."""
    place = next(filter(on_s3, places), None)
    if place is None or choice.kind != "spark" or choice.remote or has_session():
        return
    missing = jars_missing()
    if missing:
        ways = (f'give the jars with PYSPARK_SUBMIT_ARGS="--jars …" or spark-defaults.conf ({RECIPE})', "run with `--engine sail`, which needs none")
        raise EngineUnavailable(f"{place}: {missing}", ways)
