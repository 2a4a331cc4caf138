"""Projects whose files lie in a bucket."""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import Any

from storage.files import stores
from storage.state.lock import Held, Lease, Owner
from tests.support.object_stores import Faults, TestBucket
from tests.support.pipelines import Folder

ROWS = [{"id": "1", "amount": "10"}, {"id": "2", "amount": "20"}]
"""The report of the two orders."""


@dataclass
class Lake:
    """A folder with a pipeline, and the bucket that it reads and writes through a proxy."""

    folder: Folder
    bucket: TestBucket
    faults: Faults

    def pipeline(self, source: str = "", output: str = "", *, kind: str = "csv", path: str = "out/report.csv", head: str = "", state: str = "", keyed: bool = True) -> None:
        """Write a pipeline from `in/*.csv` to `out/report.csv`, both in the bucket, with its state there where one is named."""
        where = source or f'type: csv, glob: "{self.bucket.uri}/in/*.csv"'
        columns = "[{ name: id, type: int }, { name: amount, type: int }]"
        self.folder.write("errata.toml", self.bucket.toml + (f'[state]\npath = "{self.bucket.uri}/{state}"\n' if state else ""))
        self.folder.write(
            "pipeline.yaml",
            f"pipeline: {{ name: far }}\n{head}nodes:\n"
            f"  - {{ type: source, name: orders, config: {{ name: orders, {where}, schema: {columns}{', merge: { strategy: snapshot, primary_key: [id] }' if keyed else ''} }} }}\n"
            f'  - {{ type: output, name: report, input: orders, config: {{ name: report, type: {kind}, path: "{self.bucket.uri}/{path}"{output} }} }}\n',
        )

    def run(self) -> Any:
        """Run the pipeline; the requests of it are in `faults.seen`."""
        self.faults.seen.clear()
        stores.forget_contents()
        return self.folder.run()

    def report(self, key: str = "out/report.csv") -> list[dict[str, str]]:
        """The rows of the report."""
        return list(csv.DictReader(StringIO(self.bucket.get(key).decode())))


def winners(lease: Callable[[], Lease]) -> list[Lease]:
    """The leases that were taken when four threads ask at once. `lease` makes the one of each thread."""
    gate, won = threading.Barrier(4), list[Lease]()

    def ask(number: int) -> None:
        mine = lease()
        gate.wait()
        try:
            mine.take(Owner("here", number, 0.0, str(number)), wait=False)
        except Held:
            return
        won.append(mine)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won
