"""What all tests share: the engines, the strengths of the property tests, and the rule that Spark is asked for by mark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import hypothesis
import pytest

from storage.engines.spark.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.engines.base import Engine

ENGINES = ("sail", "spark")

SLOW = (hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large)  # a busy machine is no defect

# The suite takes the same examples each time, so that it says something about a change alone; "deep" looks for new ones.
for name, examples in {"fast": 16, "ci": 100, "deep": int(os.environ.get("ERRATA_TEST_EXAMPLES", "5000"))}.items():
    hypothesis.settings.register_profile(name, max_examples=examples, deadline=None, print_blob=True, derandomize=name != "deep", suppress_health_check=SLOW)


def pytest_configure(config: pytest.Config) -> None:
    """Commands that a test calls run on Sail unless they name an engine; property tests are short unless a profile is asked for."""
    os.environ.setdefault("ERRATA_ENGINE", "sail")
    if not config.getoption("--hypothesis-profile", default=None):
        hypothesis.settings.load_profile("fast")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that a parameter sends to Spark, before `-m` chooses; skip it where no Java is."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters and "spark" in [value for value in parameters.params.values() if isinstance(value, str)]:
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark") and find_java() is None:
            item.add_marker(pytest.mark.skip(reason="Apache Spark needs Java 17 or later"))


@pytest.fixture(autouse=True)
def jvm_where_it_is_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that is not marked for Spark starts no JVM: it names Sail wherever an engine is chosen."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.get_closest_marker("spark"):
            patch.setattr("storage.engines.spark.local._served", _unasked)
        yield


def _unasked(*_: object) -> None:
    raise AssertionError("a test without the mark 'spark' starts a JVM")


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn, started once a process."""
    return started(request.param)


@pytest.fixture(scope="session")
def sail() -> Engine:
    """The engine without a JVM, for what does not depend on the engine."""
    return started("sail")


def started(kind: str) -> Engine:
    from storage.engines import EngineChoice
    from storage.engines import engine as engine_of

    return engine_of(EngineChoice(kind=kind))
