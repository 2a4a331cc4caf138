"""Jars that the user gives to Spark, by `PYSPARK_SUBMIT_ARGS` or `spark-defaults.conf`: joined with Errata's jars, which they would displace."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Given", "given_jars"]

JARS, CLASS_PATH, PACKAGES = "spark.jars", "spark.driver.extraClassPath", "spark.jars.packages"
SEPARATORS = {JARS: ",", CLASS_PATH: os.pathsep}
OPTIONS = {"--jars": JARS, "--driver-class-path": CLASS_PATH, "--packages": PACKAGES}


@dataclass(frozen=True, slots=True)
class Given:
    """What the user gives: Spark's settings for jars, and the other arguments of spark-submit."""

    settings: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    @property
    def submit_arguments(self) -> str:
        """PYSPARK_SUBMIT_ARGS without the jars that are joined with ours."""
        return shlex.join(self.arguments or ("pyspark-shell",))

    def joined(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The settings of a driver with these jars behind its own."""
        both = dict(settings)
        for name, separator in SEPARATORS.items():
            parts = [part for text in (settings.get(name, ""), self.settings.get(name, "")) for part in text.split(separator) if part]
            both |= {name: separator.join(dict.fromkeys(parts))} if parts else {}
        return both

    def mentions(self, artifact: str) -> bool:
        """Whether a jar of an artifact is among these, by its name, or in a folder that a class path names."""
        named = [part for name, text in self.settings.items() for part in text.split(SEPARATORS.get(name, ","))]
        return any(artifact in Path(part).name or _holds(part, artifact) for part in named if part)


def given_jars(home: Path) -> Given:
    """What the environment says; `home` is Spark's folder, which has a configuration where SPARK_CONF_DIR names none."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    settings, arguments = _defaults(folder / "spark-defaults.conf"), list[str]()
    words = iter(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:
        name, value = _setting(word, words)
        if name not in SEPARATORS:
            arguments += [word] if not name else ["--packages", value] if name == PACKAGES else ["--conf", f"{name}={value}"]
        if name:
            settings[name] = value
    return Given({name: value for name, value in settings.items() if name in (*SEPARATORS, PACKAGES)}, tuple(arguments))


def _setting(word: str, words: Iterator[str]) -> tuple[str, str]:
    """The setting that an argument of spark-submit makes, which may be in two words; empty where it makes none."""
    option, equals, value = word.partition("=")
    if option in OPTIONS:
        return OPTIONS[option], value if equals else next(words, "")
    if option in ("--conf", "-c"):
        name, _, said = (value if equals else next(words, "")).partition("=")
        return name, said
    return "", ""


def _defaults(file: Path) -> dict[str, str]:
    """The settings of a `spark-defaults.conf`: a name and a value a line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = [line.replace("=", " ", 1).split(None, 1) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) > 1}


def _holds(part: str, artifact: str) -> bool:
    """Whether a folder of a class path, `/opt/jars/*` or `/opt/jars`, has a jar of an artifact."""
    folder = Path(part).parent if part.endswith("*") else Path(part)
    return folder.is_dir() and any(folder.glob(f"*{artifact}*.jar"))


def found(artifact: str, home: Path, given: Given, ours: Sequence[Path] = ()) -> bool:
    """Whether the JVM will have a jar of an artifact: Spark's own, ours, or the user's."""
    return given.mentions(artifact) or any(artifact in jar.name for jar in ours) or _holds(str(home / "jars"), artifact)
