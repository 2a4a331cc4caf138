"""A project's folder beside a bucket of a real S3 server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from storage.stores import client
from storage.stores.connections import reach_by_environment
from tests.support.lakes import Lake
from tests.support.object_stores import KEY, SECRET, Faults, TestBucket, proxied
from tests.support.pipelines import Folder


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The secrets of the connection; what Errata sets for tables is taken back."""
    monkeypatch.setattr(client, "PAUSE", 0.001)
    with mock.patch.dict(os.environ, LAKE_KEY=KEY, LAKE_SECRET=SECRET):
        yield
        reach_by_environment([])


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Two orders in a bucket that Errata reaches through a proxy, and a pipeline that writes a report."""
    with proxied() as (port, faults):
        made = Lake(Folder(tmp_path), TestBucket.new(port), faults)
        made.pipeline()
        made.bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")
        yield made


@pytest.fixture
def far(tmp_path: Path) -> Lake:
    """The same with the state in the bucket too, which tables reach without a proxy: the library of tables lets no thread of this process answer meanwhile."""
    made = Lake(Folder(tmp_path), TestBucket.new(), Faults())
    made.pipeline(state="state")
    made.bucket.put("in/a.csv", "id,amount\n1,10\n2,20\n")
    return made
